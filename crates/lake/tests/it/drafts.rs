//! Drafts: what they say is what a table says that was made and opened, and they are tables as soon as somebody commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use arrow::datatypes::SchemaRef;
use object_store::memory::InMemory;
use tributary_lake::datafusion::catalog::TableProvider as _;
use tributary_lake::{Commit, Error, Lake, Operation, Progress, ReadOptions, Table};
use tributary_specs::{Check, Column, DataType, TableName, TableSpec};
use tributary_testkit::Controls;

use crate::toy::lake_over;

fn lake() -> Lake {
    lake_over(Arc::new(InMemory::new()), Controls::none())
}

/// Tables of all kinds.
fn specs() -> Vec<TableSpec> {
    let table = |name: &str, columns: Vec<Column>| TableSpec::new(TableName::new("silver", name), columns);
    let id = || Column::new("id", DataType::Long);
    let mut total = Column::new("total", DataType::Decimal { precision: 12, scale: 2 });
    (total.default, total.comment) = (Some("0.00".to_owned()), Some("in euro".to_owned()));
    let nested = DataType::Struct(vec![id(), Column::new("tags", DataType::Array(Box::new(DataType::String)))]);
    let map = DataType::Map(Box::new(DataType::String), Box::new(nested.clone()));
    vec![
        table("plain", vec![id()]),
        TableSpec {
            cluster_by: vec!["id".to_owned()],
            checks: vec![Check { name: "positive".to_owned(), expression: "total >= 0".to_owned() }],
            comment: Some("orders as they stand".to_owned()),
            properties: BTreeMap::from([("pipelines.x".to_owned(), "y".to_owned())]),
            row_changes: true,
            ..table("clustered", vec![id(), total])
        },
        TableSpec {
            partition_by: vec!["day".to_owned()],
            ..table("partitioned", vec![Column::new("day", DataType::Date), id(), Column::new("at", DataType::Timestamp)])
        },
        table("nested", vec![id(), Column::new("of", nested), Column::new("by", map), Column::new("raw", DataType::Binary)]),
    ]
}

/// A table as it is made and written to.
async fn made(lake: &Lake, spec: &TableSpec) -> Result<Table> {
    let table = lake.create(spec).await?;
    let position = Progress { app_id: "tributary:made".to_owned(), expected: None, version: 0 };
    let commit = Commit { operation: Operation::Write, progress: vec![position], ..Commit::default() };
    let _ = table.commit(commit).await?;
    Ok(table.refresh().await?)
}

/// All that a table says of itself, its identity and times left out; the schemas of what reads it.
async fn said(table: &Table) -> Result<(String, [SchemaRef; 4])> {
    let layout = (table.partition_columns(), table.cluster_columns(), table.features(), table.comment());
    let is = (table.version(), table.columns(), table.checks(), table.properties());
    let log = (table.progress_with_prefix("").await?, table.files().await?, table.at_version(0).await?.version());
    let read = [table.schema(), table.provider().await?.schema(), table.keyed_provider().await?.schema(), table.change_schema()];
    Ok((format!("{layout:?} {is:?} {log:?}"), read))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_says_what_the_table_would_say() -> Result<()> {
    for spec in specs() {
        let (of_table, of_draft) = (lake(), lake());
        let table = said(&made(&of_table, &spec).await?).await?;
        let draft = of_draft.draft(&spec).await?;
        assert_eq!(said(&draft).await?, table, "{}", spec.name);
        let found = of_draft.table(&spec.name).await?.expect("it was made");
        assert_eq!((said(&found).await?, found.identity()), (table, draft.identity()));
        assert_eq!(of_draft.difference(&spec).await?, vec![]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_is_committed_to_is_a_table() -> Result<()> {
    let lake = lake();
    for spec in specs() {
        let draft = lake.draft(&spec).await?;
        assert!(matches!(lake.draft(&spec).await, Err(Error::Store { .. })), "a table is drafted once");
        let position = Progress { app_id: "job".to_owned(), expected: None, version: 7 };
        let _ = draft.commit(Commit { operation: Operation::Write, progress: vec![position], ..Commit::default() }).await?;
        let table = lake.table(&spec.name).await?.expect("it was committed to");
        assert_eq!((table.version(), table.progress("job").await?, table.progress("tributary:made").await?), (2, Some(7), Some(0)));
        assert_eq!((draft.refresh().await?.version(), table.identity()), (2, draft.identity()));
        let rows = futures::TryStreamExt::try_collect::<Vec<_>>(table.read(ReadOptions::default()).await?).await?;
        assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 0);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_table_can_be_is_no_draft() -> Result<()> {
    let lake = lake();
    let empty = TableSpec::new(TableName::new("silver", "empty"), vec![]);
    assert!(matches!(lake.draft(&empty).await, Err(Error::Spec { .. })));
    assert!(lake.table(&empty.name).await?.is_none());
    Ok(())
}
