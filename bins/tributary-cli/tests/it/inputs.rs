//! Files that the command line names and that cannot be read: a person must mend them, so a retry is not asked for.

use crate::commands::Shop;

#[test]
fn a_file_of_statements_that_is_no_text_or_not_there_is_bad_input() {
    let shop = Shop::new();
    std::fs::write(shop.path("latin.sql"), b"select '\xe9'").unwrap();
    std::fs::write(shop.path("nul.sql"), b"select 1\0;").unwrap();
    for file in ["latin.sql", "missing.sql", "."] {
        let said = shop.says(2, &["sql", "-f", file]);
        assert!(said.contains(&format!("error[CL0033]: {file} cannot be read: ")), "{said}");
    }
    let said = shop.says(2, &["sql", "-f", "nul.sql"]);
    assert!(said.contains("nul.sql"), "{said}");
}

#[test]
fn a_plan_that_is_not_there_is_bad_input() {
    let said = Shop::new().says(2, &["run", "--plan", "missing.json"]);
    assert!(said.contains("\"code\":\"CL0033\"") && said.contains("the plan missing.json cannot be read: "), "{said}");
}

#[test]
fn a_mistake_of_a_pipeline_in_a_file_has_its_place_and_its_code_once() {
    let shop = Shop::new();
    std::fs::write(shop.path("deep.sql"), "CREATE OR REFRESH MATERIALIZED VIEW gold.t AS\n  SELECT nothing(1) FROM nowhere WHERE;\n")
        .unwrap();
    let said = shop.says(2, &["sql", "-f", "deep.sql"]);
    let once = "error[PS0013]: deep.sql:2:39: the query of gold.t cannot be read: expected an expression, found the end of the statement\n";
    assert!(said.starts_with(once), "{said}");
}
