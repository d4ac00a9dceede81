//! What is refused, and what is said then.

use std::error::Error as _;

use anyhow::Result;
use tributary_fault::Fault;
use tributary_gold_agg::{Error, Options};
use tributary_specs::{Column, DataType, ExpectationAction, GoldSpec, Refresh};
use tributary_testkit::frame;

use crate::world::{World, name};

async fn world() -> Result<World> {
    let world = World::new();
    world.append("silver.orders", &frame!("id: long | amount: long | name: string\n 1 | 5 | a\n 2 | 0 | b")).await?;
    Ok(world)
}

fn view(query: &str) -> GoldSpec {
    GoldSpec::new(name("gold.view"), query)
}

fn chain(error: &Error) -> String {
    let mut text = format!("{}: {error}", error.code());
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!("\n  because {}", error.to_string().lines().next().unwrap_or_default());
        cause = error.source();
    }
    if let Some(command) = error.next_command() {
        text += &format!("\n  next: {command}");
    }
    text
}

#[tokio::test]
async fn golden_error_texts_are_as_a_person_agreed_to() -> Result<()> {
    let world = world().await?;
    world.run(&GoldSpec::new(name("gold.made"), "SELECT id, amount FROM silver.orders")).await?;
    let declared = [Column::new("id", DataType::Integer), Column::new("other", DataType::Date)];
    let rule = |expression: &str| view("SELECT id FROM silver.orders").with_expectation("ok", expression, ExpectationAction::Warn);
    let cases = [
        view("SELECT id FROM orders"),
        view("SELEKT id"),
        view("SELECT 1; SELECT 2"),
        view("SELECT id FROM silver.orders VERSION AS OF 1"),
        view("SELECT id FROM silver.ordres"),
        view("SELECT * FROM gold.view"),
        view("SELECT idd FROM silver.orders"),
        view("SELECT id / amount AS ratio FROM silver.orders"),
        view("SELECT random() AS r FROM silver.orders"),
        view("SELECT sum(amount) FROM silver.orders"),
        view("SELECT id, amount AS ID FROM silver.orders"),
        view("SELECT NULL AS nothing FROM silver.orders"),
        view("SELECT id, amount FROM silver.orders").with_schema(declared),
        view("SELECT sum(DISTINCT id) AS n FROM silver.orders").with_refresh(Refresh::Incremental),
        GoldSpec::new(name("gold.made"), "SELECT CAST(id AS STRING) AS id FROM silver.orders"),
        rule("amount > 1"),
        rule("id + 1"),
        rule("id >"),
    ];
    let mut text = String::new();
    for spec in cases {
        let error = world.run(&spec).await.expect_err(&spec.query);
        text += &format!("{}\n{}\n\n", spec.query, chain(&error));
        assert!(error.to_string().contains("gold."), "{error} names the view");
    }
    tributary_testkit::assert_golden!("tests/golden/errors.txt", text);
    Ok(())
}

#[tokio::test]
async fn a_view_built_in_code_names_its_sources() -> Result<()> {
    let build: tributary_gold_agg::Build = std::sync::Arc::new(|context, _| Box::pin(async move { context.sql("SELECT 1 AS one").await }));
    let options = Options { build: Some(build), ..Options::default() };
    let error = tributary_gold_agg::run(&world().await?.lake, &view("one"), &options).await.unwrap_err();
    assert!(matches!(error, Error::NoSources { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_failed_refresh_leaves_the_view_as_it_was() -> Result<()> {
    let world = world().await?;
    let spec = view("SELECT id, CAST(name AS BIGINT) AS n FROM silver.orders");
    world.replace("silver.orders", &frame!("id: long | amount: long | name: string\n 1 | 5 | 12")).await?;
    world.run(&spec).await?;
    world.replace("silver.orders", &frame!("id: long | amount: long | name: string\n 1 | 5 | twelve")).await?;
    let error = world.run(&spec).await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error:?}");
    assert!(!chain(&error).contains("twelve"), "a row's value is nobody's business: {}", chain(&error));
    assert_eq!((world.version("gold.view").await?, world.rows("gold.view").await?.len()), (1, 1));
    Ok(())
}

#[tokio::test]
async fn a_cancelled_run_writes_nothing() -> Result<()> {
    let world = world().await?;
    let options = Options::default();
    options.cancel.cancel();
    let error = tributary_gold_agg::run(&world.lake, &view("SELECT id FROM silver.orders"), &options).await.unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(world.lake.table(&name("gold.view")).await?.is_none());
    Ok(())
}
