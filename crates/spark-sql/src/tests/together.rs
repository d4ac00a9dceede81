//! The common types of expressions: DOUBLE beats DECIMAL, whole numbers with FLOAT are DOUBLE, a date with a timestamp is a timestamp.

use super::*;

/// The one value that a text tells, and its type.
async fn value(text: &str) -> String {
    let rows = rows(&format!("select typeof(x), x from ({text}) t(x)")).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut told: Vec<String> = rows[1..].iter().map(|row| row.join(" ")).collect();
    told.sort();
    told.join(", ")
}

#[tokio::test]
async fn doubles_and_decimals_are_compared_as_doubles() {
    for (condition, told) in [
        ("1e-17D > 0.0", "true"),
        ("0.0 < 1e-17D", "true"),
        ("0.1D + 0.2D = 0.3", "false"),
        ("0.1D + 0.2D <> 0.3", "true"),
        ("0.1D + 0.2D <=> 0.3", "false"),
        ("1e-20D <= 0.0", "false"),
        ("0.0 >= 1e-20D", "false"),
        ("1e-20D between 0.0 and 1.0", "true"),
        ("0.0 between 1e-20D and 1", "false"),
        ("0.1D + 0.2D in (0.3, 0.4)", "false"),
        ("0.3 in (0.1D + 0.2D, 1e300D)", "false"),
        ("1e-20D = (select 0.0)", "false"),
        ("double('NaN') > 0.5", "true"),
        ("double('Infinity') > 0.5", "true"),
        ("1e300D > 0.5", "true"),
        ("1e16D > 0.5", "true"),
        ("case 1e-20D when 0.0 then true else false end", "false"),
        ("0.1F = 0.1", "false"),
        ("0.5F = 0.5", "true"),
        ("16777217 = 16777216F", "false"),
        ("16777216F < 16777217", "true"),
        ("16777217L in (16777216F)", "false"),
        ("16777217 between 16777216F and 16777216F", "false"),
        ("16777217 <=> 16777216F", "false"),
    ] {
        assert_eq!(value(&format!("select {condition}")).await, format!("boolean {told}"), "{condition}");
    }
    for (condition, rows) in [
        ("0.5D in (select 0.50)", 1),
        ("1e-20D in (select 0.0)", 0),
        ("0.0 not in (select 1e-20D)", 1),
        ("16777217 in (select 16777216F)", 0),
        ("16777217 not in (select distinct 16777216F)", 1),
    ] {
        assert_eq!(lines(&format!("select 1 one where {condition}")).await.len(), 1 + rows, "{condition}");
    }
}

#[tokio::test]
async fn values_of_which_one_is_told_are_of_the_common_type() {
    for (expression, told) in [
        ("coalesce(null, 1e-20D, 0.5)", "double 1e-20"),
        ("coalesce(0.5, 1e-20D)", "double 0.5"),
        ("nvl(1e-20D, 0.5)", "double 1e-20"),
        ("ifnull(1e-20D, 0.5)", "double 1e-20"),
        ("nvl2(1, 1e-20D, 0.5)", "double 1e-20"),
        ("if(true, 1e-20D, 0.5)", "double 1e-20"),
        ("case when true then 1e-20D else 0.5 end", "double 1e-20"),
        ("case when false then 0.5 else 1e-20D end", "double 1e-20"),
        ("nullif(1e-20D, 0.0)", "double 1e-20"),
        ("greatest(1e-20D, 0.0)", "double 1e-20"),
        ("least(1e-20D, 0.5)", "double 1e-20"),
        ("array(1e-20D, 0.5)[0]", "double 1e-20"),
        ("map('a', 1e-20D, 'b', 0.5)['a']", "double 1e-20"),
        ("coalesce(array(1e-20D), array(0.5))[0]", "double 1e-20"),
        ("1e-20D + 0.0", "double 1e-20"),
        ("0.0 - 1e-20D", "double -1e-20"),
        ("1e-20D * 1.0", "double 1e-20"),
        ("coalesce(16777217, 1F)", "double 16777217.0"),
        ("if(true, 16777217L, 1F)", "double 16777217.0"),
        ("case when true then 1S else 1.5F end", "double 1.0"),
        ("16777217 + 0F", "double 16777217.0"),
        ("coalesce(0.1F, 1Y)", "double 0.10000000149011612"),
        ("coalesce(date'2024-02-29', timestamp'2024-01-01 00:00:00')", "timestamp 2024-02-29T00:00:00Z"),
        ("nvl(timestamp'2024-01-01 01:00:00', date'2024-02-29')", "timestamp 2024-01-01T01:00:00Z"),
        ("case when true then date'2024-02-29' else timestamp'2024-01-01 00:00:00' end", "timestamp 2024-02-29T00:00:00Z"),
    ] {
        assert_eq!(value(&format!("select {expression}")).await, told, "{expression}");
    }
}

#[tokio::test]
async fn rows_of_several_queries_are_of_the_common_type() {
    for (text, told) in [
        ("values (0.5), (1e-20), (123456789.123456789D)", "double 0.5, double 123456789.12345679, double 1e-20"),
        ("values (null), (1e-20), (1), (0.5)", "double 0.5, double 1.0, double 1e-20, double null"),
        ("values (16777217), (1F)", "double 1.0, double 16777217.0"),
        ("values (-(0.5)), (1e-20 * 1)", "double -0.5, double 1e-20"),
        ("values (date'2024-02-29'), (timestamp'2024-01-01 00:00:00')", "timestamp 2024-01-01T00:00:00Z, timestamp 2024-02-29T00:00:00Z"),
        ("select x from (select 1e-20D x union all select 0.5 union all select 2) order by 1", "double 0.5, double 1e-20, double 2.0"),
        ("select x from (select null x union all select 0.5 union all select 1e-20D) order by 1", "double 0.5, double 1e-20, double null"),
        ("select x from (select 0.5 x union select 5e-1D)", "double 0.5"),
        ("select 0.50 intersect select 0.5D", "double 0.5"),
        ("select 0.0 intersect select 1e-20D", ""),
        ("select 0.0 except select 1e-20D", "double 0.0"),
        ("select 16777217 except select 16777216F", "double 16777217.0"),
        ("select x + 1 from (select 0.5 x union all select 1.5D) order by 1", "double 1.5, double 2.5"),
        (
            "select date'2024-02-29' union all select timestamp'2024-02-29 00:00:00'",
            "timestamp 2024-02-29T00:00:00Z, timestamp 2024-02-29T00:00:00Z",
        ),
    ] {
        assert_eq!(value(text).await, told, "{text}");
    }
}

#[tokio::test]
async fn columns_meet_as_literals_do() {
    assert_eq!(lines("select order_id from silver.orders where weight > 0.4 order by 1").await, ["Order_Id", "1", "2"]);
    assert_eq!(lines("select weight * amount from silver.orders where order_id = 1").await[1], "5.25");
    let sides = "(select 1e-20D k union all select 0.5) a join (select 0.0 k union all select 0.50) b";
    for on in ["on a.k = b.k", "on a.k <=> b.k", "on b.k = a.k and a.k < 1"] {
        assert_eq!(lines(&format!("select a.k from {sides} {on}")).await, ["k", "0.5"], "{on}");
    }
    let (doubles, decimals) = ("(values (1e-20D), (0.5D)) a(k)", "(values (0.0), (0.50)) b(k)");
    for join in ["on a.k = b.k", "using (k)", "on a.k <=> b.k"] {
        assert_eq!(lines(&format!("select count(*) n from {doubles} join {decimals} {join}")).await, ["n", "1"], "{join}");
        assert_eq!(lines(&format!("select count(*) n from {decimals} join {doubles} {join}")).await, ["n", "1"], "{join}");
    }
    assert_eq!(lines("select count(*) n from (values (16777217)) a(k) join (values (16777216F)) b(k) on a.k = b.k").await, ["n", "0"]);
    assert_eq!(
        lines("select count(*) n from (values (0.0)) b(k) where exists (select 1 from (values (1e-20D)) a(k) where a.k = b.k)").await[1],
        "0"
    );
}

#[tokio::test]
async fn conditions_of_rows_are_of_the_common_type() {
    let context = SessionContext::new();
    prepare(&context);
    let columns = RecordBatch::try_from_iter([("d", Arc::new(Float64Array::from(vec![1e-20, f64::NAN, 1e16, 0.5])) as ArrayRef)]).unwrap();
    let schema = DFSchema::try_from(columns.schema()).unwrap();
    for (condition, expected) in [("d > 0.0", [true, true, true, true]), ("d between 0.5 and 1e300", [false, false, true, true])] {
        let expression = crate::expression(&context.state(), condition, None, &schema, &[]).unwrap();
        let physical = context.create_physical_expr(expression, &schema).unwrap();
        let told = physical.evaluate(&columns).unwrap().into_array(4).unwrap();
        let told: Vec<bool> = told.as_any().downcast_ref::<BooleanArray>().unwrap().iter().flatten().collect();
        assert_eq!(told, expected, "{condition}");
    }
}
