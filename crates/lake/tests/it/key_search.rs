//! Rows looked for by their keys: what is found is what a scan of everything finds, and what can hold none of the keys is not read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType as Arrow, Int64Type};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use tributary_lake::{Commit, DELETION_VECTORS_ON, KeyProbe, KeySearch, KeySet, NewFile, Operation, Reads, RowMarks, Table};
use tributary_specs::{Column, DataType, TableName, TableSpec};
use tributary_testkit::Law;

use crate::shop::{Shop, append, batch, committed};

/// Looks for keys, and counts the rows whose keys it is shown.
#[derive(Debug)]
struct Counting {
    keys: KeySet,
    shown: AtomicU64,
}

impl KeyProbe for Counting {
    fn columns(&self) -> &[String] {
        self.keys.names()
    }

    fn hits(&self, keys: &RecordBatch) -> Result<Vec<u32>, ArrowError> {
        self.shown.fetch_add(keys.num_rows() as u64, Ordering::Relaxed);
        self.keys.rows_among(keys.columns())
    }

    fn keys(&self) -> Option<&KeySet> {
        Some(&self.keys)
    }
}

fn probe(names: &[&str], columns: Vec<ArrayRef>) -> Arc<Counting> {
    let types: Vec<Arrow> = columns.iter().map(|column| column.data_type().clone()).collect();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(Counting { keys: KeySet::new(names, &types, &[columns]).unwrap(), shown: AtomicU64::new(0) })
}

fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// How a file of another writer is laid out.
#[derive(Debug, Clone, Copy)]
struct Layout {
    group: usize,
    page: usize,
    bloom: bool,
}

async fn add_file(shop: &Shop, table: &Table, rows: &RecordBatch, layout: Layout) -> Result<Table> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(layout.group))
        .set_data_page_row_count_limit(layout.page)
        .set_write_batch_size(layout.page)
        .set_bloom_filter_enabled(layout.bloom)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(properties))?;
    writer.write(rows)?;
    writer.close()?;
    let path = format!("part-{}.parquet", table.version());
    let (size, count) = (bytes.len() as u64, rows.num_rows() as u64);
    shop.put(table, &path, bytes).await?;
    let stats = format!(r#"{{"numRecords":{count}}}"#);
    let file = NewFile { path, partition_values: BTreeMap::new(), size, rows: count, stats, arranged: Default::default() };
    committed(table, Commit { adds: vec![file], ..Commit::default() }).await
}

async fn table(shop: &Shop, columns: Vec<Column>) -> Result<Table> {
    let properties = BTreeMap::from([(DELETION_VECTORS_ON.to_owned(), "true".to_owned())]);
    let spec = TableSpec { row_changes: true, properties, ..TableSpec::new(TableName::new("silver", "searched"), columns) };
    Ok(shop.lake.create(&spec).await?)
}

/// The ids found, in the order of their places, and how many rows' keys were read for it.
async fn found(table: &Table, probe: &Arc<Counting>) -> Result<(Vec<i64>, u64)> {
    let search = KeySearch::new(table, table.files().await?);
    let asked: Arc<dyn KeyProbe> = Arc::clone(probe) as _;
    let found = search.find(0..search.files().len(), &asked).await?;
    ensure!(found.rows.num_rows() == found.places.len() && found.places.is_sorted(), "places: {:?}", found.places);
    let ids = found.rows.column_by_name("id").unwrap().as_primitive::<Int64Type>();
    Ok((ids.values().to_vec(), probe.shown.load(Ordering::Relaxed)))
}

const SMALL: Layout = Layout { group: 100, page: 10, bloom: false };

#[tokio::test(flavor = "multi_thread")]
async fn of_keys_in_order_only_the_pages_that_can_hold_them_are_read() -> Result<()> {
    let shop = Shop::open();
    let empty = table(&shop, vec![Column::new("id", DataType::Long), Column::new("note", DataType::String)]).await?;
    let notes: StringArray = (0..1000).map(|id| Some(format!("note {id:04}"))).collect();
    let rows = batch(vec![("id", longs(0..1000)), ("note", Arc::new(notes))]);
    let table = add_file(&shop, &empty, &rows, SMALL).await?;
    assert_eq!(found(&table, &probe(&["id"], vec![longs([555])])).await?, (vec![555], 10));
    assert_eq!(found(&table, &probe(&["id"], vec![longs([3, 999])])).await?, (vec![3, 999], 20));
    assert_eq!(found(&table, &probe(&["id"], vec![longs([1000, -1])])).await?, (vec![], 0));
    assert_eq!(found(&table, &probe(&["id"], vec![longs(0..1000)])).await?.1, 1000);
    let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    assert_eq!(found(&table, &probe(&["note"], vec![texts(&["note 0421"])])).await?, (vec![421], 10));
    // Of several columns the first one decides what is read.
    assert_eq!(found(&table, &probe(&["note", "id"], vec![texts(&["note 0421", "note 0422"]), longs([421, 7])])).await?, (vec![421], 10));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_few_keys_in_no_order_only_row_groups_whose_filter_may_have_them_are_read() -> Result<()> {
    let shop = Shop::open();
    let empty = table(&shop, vec![Column::new("id", DataType::Long), Column::new("at", DataType::Timestamp)]).await?;
    // Every row group reaches over all ids.
    let ids: Vec<i64> = (0..5000).map(|at| at * 1237 % 5000 * 2).collect();
    let at = TimestampMicrosecondArray::from_iter_values(ids.iter().map(|id| id * 1_000_003)).with_timezone("UTC");
    let rows = batch(vec![("id", longs(ids.iter().copied())), ("at", Arc::new(at))]);
    let filtered = add_file(&shop, &empty, &rows, Layout { bloom: true, ..SMALL }).await?;
    let (hits, shown) = found(&filtered, &probe(&["id"], vec![longs([4242])])).await?;
    assert!(hits == [4242] && shown < 1500, "one group, and those that pass by chance: {shown}");
    let (hits, shown) = found(&filtered, &probe(&["id"], vec![longs([4243])])).await?;
    assert!(hits.is_empty() && shown < 1500, "{shown}");
    let at = Arc::new(TimestampMicrosecondArray::from(vec![4242 * 1_000_003]).with_timezone("UTC")) as ArrayRef;
    let (hits, shown) = found(&filtered, &probe(&["at"], vec![at])).await?;
    assert!(hits == [4242] && shown < 1500, "{shown}");
    let many = probe(&["id"], vec![longs((0..200).map(|id| id * 50))]);
    assert_eq!(found(&filtered, &many).await?.1, 5000, "of many keys a filter rules out too little");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_has_become_wider_is_searched_in_its_old_files_too() -> Result<()> {
    let shop = Shop::open();
    let empty = table(&shop, vec![Column::new("id", DataType::Long), Column::new("n", DataType::Long)]).await?;
    let n = Arc::new(Int32Array::from_iter_values(0..300)) as ArrayRef;
    let rows = batch(vec![("id", longs(0..300)), ("n", n)]);
    let table = add_file(&shop, &empty, &rows, Layout { bloom: true, ..SMALL }).await?;
    assert_eq!(found(&table, &probe(&["n"], vec![longs([250])])).await?, (vec![250], 10));
    assert_eq!(found(&table, &probe(&["n"], vec![longs([1 << 40])])).await?, (vec![], 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_whose_order_writers_do_not_agree_on_are_looked_for_everywhere() -> Result<()> {
    let shop = Shop::open();
    let empty = table(&shop, vec![Column::new("id", DataType::Long), Column::new("d", DataType::Double)]).await?;
    let doubles: Vec<f64> = (0..300).map(|n| if n == 150 { f64::NAN } else { f64::from(n) }).collect();
    let rows = batch(vec![("id", longs(0..300)), ("d", Arc::new(Float64Array::from(doubles)) as ArrayRef)]);
    let theirs = add_file(&shop, &empty, &rows, Layout { bloom: true, ..SMALL }).await?;
    let nan = probe(&["d"], vec![Arc::new(Float64Array::from(vec![f64::NAN])) as ArrayRef]);
    assert_eq!(found(&theirs, &nan).await?.0, [150]);
    let ours = append(&theirs, &[rows.slice(100, 100)]).await?;
    let nan = probe(&["d"], vec![Arc::new(Float64Array::from(vec![f64::NAN])) as ArrayRef]);
    assert_eq!(found(&ours, &nan).await?.0, [150, 150]);
    Ok(())
}

/// A table of random keys, some null, in several files of several row groups, some of its rows marked; and keys to look for.
#[derive(Debug, Clone)]
struct Case {
    files: Vec<Vec<Option<i64>>>,
    sorted: bool,
    kind: u8,
    layout: (usize, usize, bool),
    marked: BTreeSet<usize>,
    wanted: Vec<Option<i64>>,
}

fn cases() -> impl Strategy<Value = Case> {
    let key = || proptest::option::weighted(0.95, -40..40i64);
    (
        prop::collection::vec(prop::collection::vec(key(), 1..60), 1..4),
        any::<bool>(),
        0..4u8,
        (3..30usize, 1..10usize, any::<bool>()),
        prop::collection::btree_set(0..100usize, 0..20),
        prop::collection::vec(key(), 1..50),
    )
        .prop_map(|(files, sorted, kind, layout, marked, wanted)| Case { files, sorted, kind, layout, marked, wanted })
}

impl Case {
    /// The key columns of keys: a number, a text, both, or a number that most keys share and a text.
    fn columns(&self, keys: &[Option<i64>]) -> Vec<(&'static str, ArrayRef)> {
        let numbers = |of: fn(i64) -> i64| Arc::new(keys.iter().map(|key| key.map(of)).collect::<Int64Array>()) as ArrayRef;
        let texts = Arc::new(keys.iter().map(|key| key.map(|key| format!("{:04}{}", key + 50, "x".repeat(70)))).collect::<StringArray>());
        match self.kind {
            0 => vec![("n", numbers(|key| key))],
            1 => vec![("t", texts)],
            2 => vec![("t", texts), ("n", numbers(|key| key))],
            _ => vec![("n", numbers(|key| key / 20)), ("t", texts)],
        }
    }

    async fn check(self) -> Result<usize> {
        let shop = Shop::open();
        let columns = ["id", "n"].map(|name| Column::new(name, DataType::Long)).into_iter().chain([Column::new("t", DataType::String)]);
        let mut table = table(&shop, columns.collect()).await?;
        let (group, page, bloom) = self.layout;
        let mut keys_of = BTreeMap::new();
        let mut next = 0;
        for keys in &mut self.files.clone() {
            if self.sorted {
                keys.sort_unstable();
            }
            let ids: Vec<i64> = (next..).take(keys.len()).collect();
            next += keys.len() as i64;
            keys_of.extend(ids.iter().copied().zip(keys.iter().copied()));
            let columns = std::iter::once(("id", longs(ids))).chain(self.columns(keys)).collect();
            table = add_file(&shop, &table, &batch(columns), Layout { group, page, bloom }).await?;
        }
        let mut marks = Vec::new();
        for file in table.files().await? {
            let rows = file.stats.rows.unwrap();
            let gone: Vec<u64> = (0..rows).filter(|row| self.marked.contains(&(*row as usize))).collect();
            let first: Vec<RecordBatch> =
                futures::TryStreamExt::try_collect(table.read_file(&file, Some(&["id".to_owned()])).await?).await?;
            let first = first[0].column(0).as_primitive::<Int64Type>().value(0);
            if !gone.is_empty() {
                gone.iter().for_each(|row| _ = keys_of.remove(&(first + *row as i64)));
                marks.push(RowMarks { file, rows: gone });
            }
        }
        if !marks.is_empty() {
            table = committed(&table, Commit { operation: Operation::Merge, marks, reads: Reads::Files, ..Commit::default() }).await?;
        }
        let (names, arrays): (Vec<_>, Vec<_>) = self.columns(&self.wanted).into_iter().unzip();
        let (mut hits, _) = found(&table, &probe(&names, arrays)).await?;
        hits.sort_unstable();
        let expected: Vec<i64> = keys_of.iter().filter(|(_, key)| self.wanted.contains(key)).map(|(id, _)| *id).collect();
        ensure!(hits == expected, "found {hits:?}\nexpected {expected:?}");
        Ok(hits.len())
    }
}

#[test]
fn law_what_is_found_is_what_a_scan_of_everything_finds() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tried = Law::new("rows by their keys").within(Duration::from_secs(8)).holds(&cases(), |case, tried| {
        let hits = runtime.block_on(case.check()).map_err(|why| TestCaseError::fail(format!("{why:#}")))?;
        tried.add("rows found", hits);
        Ok(())
    });
    assert!(tried.count("rows found") > 0, "{tried}");
}
