//! Texts that ask for much: what is executed, and what is refused before it costs anything.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_double_with_each_other_are_refused_before_they_are_written_out() {
    // each calls the one before it twice, names its parameter twice, or calls it once
    for (body, most, what) in [
        ("{}(x) + {}(x)", 16, "come to more than 20000 operations"),
        ("{}(x + x)", 20, "come to more than 20000 operations"),
        ("case when x > 1 then {}(x) when x > 2 then {}(x) else {}(x) end", 12, "come to more than 20000 operations"),
        ("{}(x) + 1", 201, "comes to more than 200 levels"),
    ] {
        let (context, own, ended) = with_functions(most, body);
        let (at, error) = ended.unwrap_err();
        let told = error.to_string();
        assert!(told.contains(what) && told.contains(&format!("`main.f.f{}`", at - 1)) && told.contains("(line 1, column "), "{told}");
        // what comes before them is called
        let last = format!("f.f{}", at - 2);
        let value = one_value(&context, &own, &format!("select {last}(1)")).await;
        assert!(value.is_ok(), "{last}: {value:?}");
    }
    let (context, own, ended) = with_functions(9, "{}(x) + {}(x)");
    assert!(ended.is_ok());
    assert_eq!(one_value(&context, &own, "select f.f8(1)").await.unwrap(), "512");
    let many = vec!["f.f8(1)"; 40].join(" + ");
    let told = one_value(&context, &own, &format!("select\n  {many}")).await.unwrap_err().to_string();
    assert!(
        told.starts_with("a text whose calls of `main.f.f8` and others come to more than 20000 operations")
            && told.contains("(line 2, column 3)"),
        "{told}"
    );
    // nested calls multiply by how often the parameter stands in the body
    let (context, own, _) = with_functions(2, "x * x + {}(x)");
    let nested = (0..12).fold("2".to_owned(), |inside, _| format!("f.f1({inside})"));
    let told = one_value(&context, &own, &format!("select {nested}")).await.unwrap_err().to_string();
    assert!(told.contains("come to more than 20000 operations"), "{told}");
}

#[test]
fn a_from_of_more_tables_than_anybody_joins_is_refused() {
    assert!(Text::parse(&chain(500, false)).is_ok());
    for text in [
        chain(501, false),
        format!("select 1 from {}a", "a, ".repeat(500)),
        format!("select 1 from ({}) join a", "a join ".repeat(499) + "a"),
    ] {
        let refused = Text::parse(&text).unwrap_err().to_string();
        assert!(refused.starts_with("a FROM of more than 500 tables") && refused.contains("(line 1, column "), "{refused}");
    }
}

#[test]
fn a_with_of_more_names_than_anybody_reads_is_refused() {
    let named = |count: usize| {
        let rest: String = (1..count).map(|n| format!(", c{n} as (select a from c{})", n - 1)).collect();
        format!("with c0 as (select 1 as a){rest} select a from c{}", count - 1)
    };
    assert!(Text::parse(&named(500)).is_ok());
    for text in [named(501), format!("select * from ({})", named(2000))] {
        let refused = Text::parse(&text).unwrap_err().to_string();
        assert!(refused.starts_with("a WITH of more than 500 names") && refused.contains("(line 1, column "), "{refused}");
    }
}
