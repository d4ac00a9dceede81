//! Sorting along curves: what is read afterwards, and that rows stay what they are.

use anyhow::Result;
use tributary_fault::Fault;
use tributary_lake::{Curve, DataFile};
use tributary_maintenance::{Error, Options, Status, Task};

use crate::world::{append, at_once, content, done, lake, mark, open, spec, store};

/// A file holds so few rows that a table has some.
fn small_files() -> [(String, String); 1] {
    [("delta.targetFileSize".to_owned(), "3kb".to_owned())]
}

/// Files that may hold a row of these values.
fn hit(files: &[DataFile], values: &[(&str, i64)]) -> usize {
    use tributary_lake::datafusion::common::ScalarValue;
    let may = |file: &&DataFile| {
        values.iter().all(|(column, value)| {
            let stats = &file.stats.columns[*column];
            let value = Some(ScalarValue::Int64(Some(*value)));
            stats.min <= value && value <= stats.max
        })
    };
    files.iter().filter(may).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clustered_table_is_looked_into_in_few_files_by_each_of_its_columns() -> Result<()> {
    let lake = lake(store());
    let mut declared = spec(&[], &["x", "id"]);
    declared.properties.extend(small_files());
    lake.create(&declared).await?;
    for start in 0..8 {
        // Each file has the whole range of both columns.
        append(&lake, (0..16_384).map(|at| at * 8 + start)).await?;
    }
    let before = content(&lake).await?;
    let unsorted = open(&lake).await?.files().await?;
    assert_eq!(hit(&unsorted, &[("id", 40_000)]), unsorted.len());
    let report = done(&lake, &Task::Cluster, &at_once()).await?;
    assert_eq!(report.tables[0].status, Status::Done);
    assert_eq!(content(&lake).await?, before);
    let files = open(&lake).await?.files().await?;
    assert!(files.len() >= 8, "{} files", files.len());
    for (column, value) in [("id", 40_000), ("x", 500)] {
        assert!(hit(&files, &[(column, value)]) * 2 <= files.len(), "{column}: {} of {}", hit(&files, &[(column, value)]), files.len());
    }
    assert!(hit(&files, &[("id", 40_000), ("x", 500)]) <= 3);
    for file in &files {
        let cube = file.arranged().cube.unwrap();
        assert_eq!((file.clustering_provider(), cube.curve), (Some("liquid"), Curve::Hilbert));
        assert_eq!(cube.columns, ["x", "id"]);
    }
    let entry = &open(&lake).await?.history(Some(1)).await?[0];
    assert_eq!(entry.parameters["clusterBy"], r#"["x","id"]"#);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_new_is_clustered() -> Result<()> {
    let lake = lake(store());
    lake.create(&spec(&[], &["x"])).await?;
    append(&lake, 0..5000).await?;
    done(&lake, &Task::Cluster, &at_once()).await?;
    let old = open(&lake).await?.files().await?[0].path.clone();
    append(&lake, 5000..5050).await?;
    let report = done(&lake, &Task::Auto, &at_once()).await?;
    assert_eq!((report.tables[0].read.files, report.tables[0].written.files), (1, 1));
    assert!(open(&lake).await?.files().await?.iter().any(|file| file.path == old));
    // Rows that go later leave the cube as it is.
    mark(&lake, 0, &(0..2000).collect::<Vec<_>>()).await?;
    let before = content(&lake).await?;
    done(&lake, &Task::Optimize, &at_once()).await?;
    assert_eq!(content(&lake).await?, before);
    let files = open(&lake).await?.files().await?;
    assert!(files.iter().all(|file| file.deletion_vector.is_none() && file.arranged().cube.is_some()), "{files:?}");
    assert!(done(&lake, &Task::Cluster, &at_once()).await?.nothing_to_do());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn feat_04_nulls_under_z_order_are_neither_lost_nor_mixed_and_the_second_time_adds_no_file() -> Result<()> {
    let lake = lake(store());
    let mut declared = spec(&[], &[]);
    declared.properties.extend(small_files());
    lake.create(&declared).await?;
    append(&lake, 0..10_000).await?;
    let before = content(&lake).await?;
    let task = Task::ZOrder(vec!["x".to_owned(), "id".to_owned()]);
    done(&lake, &task, &at_once()).await?;
    assert_eq!(content(&lake).await?, before);
    let table = open(&lake).await?;
    let files = table.files().await?;
    assert!(files.len() > 1);
    let nulls: u64 = files.iter().filter_map(|file| file.stats.columns["x"].null_count).sum();
    assert_eq!(nulls, 5000);
    assert!(files.iter().any(|file| file.stats.columns["x"].null_count != Some(2500)), "nulls are not strewn");
    assert!(files.iter().all(|file| file.clustering_provider().is_none()), "a table that is not clustered has no provider");
    assert!(done(&lake, &task, &at_once()).await?.nothing_to_do());
    assert!(done(&lake, &Task::Optimize, &at_once()).await?.nothing_to_do(), "compaction leaves the order");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_says_its_z_order_gets_it_by_itself_and_one_that_says_it_wrongly_is_compacted() -> Result<()> {
    for (said, files) in [("x, id", 1), ("x, y", 0)] {
        let lake = lake(store());
        let mut declared = spec(&[], &[]);
        declared.properties.insert("pipelines.autoOptimize.zOrderCols".to_owned(), said.to_owned());
        lake.create(&declared).await?;
        append(&lake, 0..50).await?;
        append(&lake, 50..100).await?;
        let before = content(&lake).await?;
        done(&lake, &Task::Auto, &at_once()).await?;
        assert_eq!(content(&lake).await?, before);
        let left = open(&lake).await?.files().await?;
        let ordered = left.iter().filter_map(|file| file.arranged().cube).filter(|cube| cube.columns == ["x", "id"]).count();
        assert_eq!((left.len(), ordered), (1, files), "{said}");
        assert!(done(&lake, &Task::Auto, &at_once()).await?.nothing_to_do());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_larger_than_the_memory_spills() -> Result<()> {
    use std::sync::Arc;
    use tributary_lake::{Lake, LakeOptions, Stores};
    let options = LakeOptions { memory_limit: 16 << 20, ..LakeOptions::default() };
    let lake = Lake::open(Stores::wrap(store() as Arc<_>, url::Url::parse("memory:///lake/")?), options)?;
    lake.create(&spec(&[], &["x", "id"])).await?;
    for start in 0..4 {
        append(&lake, start * 150_000..(start + 1) * 150_000).await?;
    }
    let before = content(&lake).await?;
    let report = done(&lake, &Task::Cluster, &at_once()).await?;
    assert_eq!(report.tables[0].status, Status::Done);
    assert!(content(&lake).await? == before, "rows changed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_ordered_one_way_only_and_by_columns_that_it_has() -> Result<()> {
    let lake = lake(store());
    lake.create(&spec(&["note"], &[])).await?;
    append(&lake, 0..10).await?;
    let refused = async |task: Task| done(&lake, &task, &Options::default()).await.unwrap_err().downcast::<Error>().unwrap();
    assert_eq!(refused(Task::Cluster).await.to_string(), "`silver.orders` has no clustering columns");
    let of = |column: &str| Task::ZOrder(vec!["id".to_owned(), column.to_owned()]);
    assert_eq!(refused(of("y")).await.to_string(), "`silver.orders` cannot be ordered by column `y`: there is no such column");
    assert!(refused(of("note")).await.to_string().ends_with("the table is partitioned by it"));
    assert_eq!(refused(of("note")).await.code().to_string(), "MT0003");
    Ok(())
}
