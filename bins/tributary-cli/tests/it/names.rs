//! Tables that are typed with their catalogue.

use crate::commands::Shop;

/// `main` is the catalogue unless somebody says otherwise.
#[test]
fn the_catalogue_of_the_run_may_stand_before_every_table_that_is_typed() {
    let shop = Shop::new();
    shop.says(0, &["run"]);
    for command in [
        &["run", "--only", "MAIN.gold.by_status"][..],
        &["run", "--full-refresh", "main.gold.by_status"],
        &["plan", "--only", "main.gold.by_status"],
        &["setup", "--only", "`main`.gold.by_status"],
        &["explain", "main.gold.by_status"],
        &["ddl", "main.gold.by_status"],
        &["show", "history", "main.gold.by_status"],
        &["show", "sample", "main.gold.by_status"],
        &["show", "lineage", "main.gold.by_status"],
    ] {
        let said = shop.says(0, command);
        let short: Vec<String> = command.iter().map(|word| word.replace("MAIN.", "").replace("`main`.", "").replace("main.", "")).collect();
        let short: Vec<&str> = short.iter().map(String::as_str).collect();
        if matches!(command[0], "ddl" | "show" | "plan") {
            assert_eq!(said, shop.says(0, &short), "{command:?}");
        }
    }
    for command in [&["run", "--only"][..], &["run", "--full-refresh"], &["setup", "--only"], &["ddl"], &["show", "history"]] {
        let said = shop.says(2, &[command, &["dev.gold.by_status"][..]].concat());
        assert!(said.contains("the catalogue `dev`, and this command is about the catalogue `main`"), "{command:?} {said}");
        assert!(said.contains("tributary show tables --catalogue dev"), "{command:?} {said}");
    }
    let said = shop.says(2, &["explain", "dev.gold.by_status"]);
    assert!(said.contains("`dev.gold.by_status` is of the catalogue `dev`, and this lake's catalogue is `main`"), "{said}");
    assert!(said.contains("tributary show tables --catalogue dev"), "{said}");
}
