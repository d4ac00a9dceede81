//! What a writer takes, fills in and refuses.

use std::sync::Arc;

use anyhow::Result;
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use tributary_fault::{Fault, FaultClass};
use tributary_lake::{Error, Table, WriterOptions};
use tributary_specs::{Check, Column, DataType, TableName, TableSpec};

use crate::shop::{Shop, append, batch, rows, sorted_lines, written};

fn ids(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn person(fields: &[(&str, &str)]) -> StructArray {
    let field = |(name, value): &(&str, &str)| {
        (Arc::new(Field::new(*name, arrow::datatypes::DataType::Utf8, true)), Arc::new(StringArray::from(vec![*value])) as ArrayRef)
    };
    StructArray::from(fields.iter().map(field).collect::<Vec<_>>())
}

fn list_of(person: StructArray) -> ArrayRef {
    let element = Field::new("item", person.data_type().clone(), true);
    Arc::new(ListArray::new(Arc::new(element), OffsetBuffer::from_lengths([1]), Arc::new(person), None))
}

async fn refused(table: &Table, batch: RecordBatch) -> Error {
    written(table, &[batch]).await.unwrap_err().downcast::<Error>().unwrap()
}

/// MERGE-09
#[tokio::test(flavor = "multi_thread")]
async fn struct_fields_are_paired_by_name_whatever_their_order() -> Result<()> {
    let shop = Shop::open();
    let who = DataType::Struct(vec![Column::new("given", DataType::String), Column::new("family", DataType::String)]);
    let columns =
        vec![Column::new("id", DataType::Long), Column::new("who", who.clone()), Column::new("all", DataType::Array(Box::new(who)))];
    let table = shop.table("people", columns, &[]).await?;
    let ada = person(&[("given", "Ada"), ("family", "Lin")]);
    let ben = person(&[("family", "Okoro"), ("given", "Ben")]);
    let cy = person(&[("family", "Diaz")]);
    let row =
        |id, who: &StructArray| batch(vec![("who", Arc::new(who.clone()) as ArrayRef), ("all", list_of(who.clone())), ("id", ids(&[id]))]);
    let table = append(&table, &[row(1, &ada), row(2, &ben), row(3, &cy)]).await?;
    let expected = [
        "1|{given: Ada, family: Lin}|[{given: Ada, family: Lin}]",
        "2|{given: Ben, family: Okoro}|[{given: Ben, family: Okoro}]",
        "3|{given: , family: Diaz}|[{given: , family: Diaz}]",
    ];
    assert_eq!(sorted_lines(&[rows(&table).await?]), expected);
    assert_eq!(sorted_lines(&shop.foreign_sql(&table, "SELECT * FROM t").await?), expected);
    Ok(())
}

/// MERGE-11, FEAT-03
#[tokio::test(flavor = "multi_thread")]
async fn instants_are_normalised_and_a_zoneless_time_is_refused_for_them() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("times", vec![Column::new("ts", DataType::Timestamp), Column::new("a", DataType::Long)], &[]).await?;
    let same = 1_769_925_600_000_000;
    let chicago = TimestampMicrosecondArray::from(vec![same]).with_timezone("-06:00");
    let utc = TimestampMicrosecondArray::from(vec![same]).with_timezone("UTC");
    let table = append(
        &table,
        &[
            batch(vec![("ts", Arc::new(chicago) as ArrayRef), ("a", ids(&[1]))]),
            batch(vec![("ts", Arc::new(utc) as ArrayRef), ("a", ids(&[2]))]),
        ],
    )
    .await?;
    assert_eq!(sorted_lines(&[rows(&table).await?]), ["2026-02-01T06:00:00Z|1", "2026-02-01T06:00:00Z|2"]);

    let wall = batch(vec![("ts", Arc::new(TimestampMicrosecondArray::from(vec![same])) as ArrayRef)]);
    let error = refused(&table, wall).await;
    assert_eq!(error.class(), FaultClass::BadInput);
    assert!(error.to_string().contains("column `ts`") && error.to_string().contains("silver.times"), "{error}");
    let protocol = &shop.actions(&table, 0, "protocol").await?[0];
    assert!(!protocol["writerFeatures"].to_string().contains("timestampNtz"), "{protocol}");

    let wall = shop.table("walls", vec![Column::new("ts", DataType::TimestampNtz)], &[]).await?;
    let protocol = &shop.actions(&wall, 0, "protocol").await?[0];
    assert!(
        protocol["writerFeatures"].to_string().contains("timestampNtz") && protocol["readerFeatures"].to_string().contains("timestampNtz"),
        "{protocol}"
    );
    let wall = append(&wall, &[batch(vec![("ts", Arc::new(TimestampMicrosecondArray::from(vec![same + 613])) as ArrayRef)])]).await?;
    assert_eq!(
        sorted_lines(&shop.foreign_sql(&wall, "SELECT * FROM t WHERE ts > '2026-02-01T06:00:00.000612'").await?),
        ["2026-02-01T06:00:00.000613"]
    );
    Ok(())
}

/// MERGE-15
#[tokio::test(flavor = "multi_thread")]
async fn a_decimal_that_does_not_fit_is_bad_data_and_never_rounded() -> Result<()> {
    let shop = Shop::open();
    let table = shop
        .table("amounts", vec![Column::new("id", DataType::Long), Column::new("amt", DataType::Decimal { precision: 38, scale: 32 })], &[])
        .await?;
    let amount = |id, unscaled: i128| {
        batch(vec![
            ("id", ids(&[id])),
            ("amt", Arc::new(Decimal128Array::from(vec![unscaled]).with_precision_and_scale(9, 2).unwrap()) as ArrayRef),
        ])
    };
    let table = append(&table, &[amount(1, 50)]).await?;
    let error = refused(&table, amount(2, 100_000_025)).await;
    assert_eq!(error.class(), FaultClass::BadInput, "a retry of the same batch does not help");
    assert!(
        error.to_string().contains("`amt`") && error.to_string().contains("(38, 32)") && !error.to_string().contains("100000025"),
        "{error}"
    );
    assert_eq!(sorted_lines(&[rows(&table).await?]), ["1|0.50000000000000000000000000000000"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_breaks_a_rule_writes_nothing_of_itself() -> Result<()> {
    let shop = Shop::open();
    let mut spec = TableSpec::new(
        TableName::new("silver", "orders"),
        vec![Column::new("id", DataType::Long).not_null(), Column::new("Qty", DataType::Long)],
    );
    spec.checks = vec![Check { name: "positive".to_owned(), expression: "qty > 0".to_owned() }];
    let table = shop.lake.create(&spec).await?;
    let mut writer = table.writer(WriterOptions::default())?;
    writer.write(&batch(vec![("id", ids(&[1])), ("qty", ids(&[5]))])).await?;
    let error = writer.write(&batch(vec![("id", ids(&[2, 3])), ("qty", ids(&[5, -777]))])).await.unwrap_err().to_string();
    assert!(
        error.contains("silver.orders")
            && error.contains("`positive`")
            && error.contains("`Qty`")
            && error.contains("row 1")
            && !error.contains("777"),
        "{error}"
    );
    let null = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from(vec![None])) as ArrayRef, true),
        ("qty", ids(&[1]), true),
    ])?;
    assert!(writer.write(&null).await.unwrap_err().to_string().contains("`id` not null"));
    let files = writer.finish().await?;
    assert_eq!(files.iter().map(|file| file.rows).sum::<u64>(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_and_generated_columns_are_filled_in_and_readers_see_them() -> Result<()> {
    let shop = Shop::open();
    let mut state = Column::new("state", DataType::String);
    state.default = Some("'new'".to_owned());
    let mut day = Column::new("day", DataType::Date);
    day.generated = Some("CAST(at AS DATE)".to_owned());
    let columns = vec![Column::new("id", DataType::Long), Column::new("at", DataType::Timestamp), state, day];
    let table = shop.table("orders", columns, &["day"]).await?;
    let at = |values: Vec<i64>| Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC")) as ArrayRef;
    let table =
        append(&table, &[batch(vec![("id", ids(&[1, 2])), ("at", at(vec![1_769_940_000_000_000, 1_770_040_000_000_000]))])]).await?;
    let table = append(
        &table,
        &[batch(vec![
            ("id", ids(&[3])),
            ("at", at(vec![1_769_940_000_000_000])),
            ("state", Arc::new(StringArray::from(vec![None::<&str>]))),
        ])],
    )
    .await?;
    let expected = ["1|2026-02-01T10:00:00Z|new|2026-02-01", "2|2026-02-02T13:46:40Z|new|2026-02-02", "3|2026-02-01T10:00:00Z||2026-02-01"];
    assert_eq!(sorted_lines(&[rows(&table).await?]), expected);
    let wrong =
        batch(vec![("id", ids(&[4])), ("at", at(vec![0])), ("day", Arc::new(arrow::array::Date32Array::from(vec![1])) as ArrayRef)]);
    assert!(refused(&table, wrong).await.to_string().contains("generated column `day`"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn types_that_delta_lacks_never_reach_a_file() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("numbers", vec![Column::new("n", DataType::Long)], &[]).await?;
    let error = refused(&table, batch(vec![("n", Arc::new(UInt64Array::from(vec![u64::MAX])) as ArrayRef)])).await.to_string();
    assert!(error.contains("column `n`") && error.contains("UInt64"), "{error}");
    let extra = refused(&table, batch(vec![("n", ids(&[1])), ("m", ids(&[1]))])).await.to_string();
    assert!(extra.contains("column `m`"), "{extra}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_compressed_say_who_wrote_them_and_can_be_skipped_by_page_and_by_key() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("keys", vec![Column::new("id", DataType::Long), Column::new("name", DataType::String)], &[]).await?;
    let mut writer = table.writer(WriterOptions { key_columns: vec!["id".to_owned()], ..WriterOptions::default() })?;
    let values: Vec<i64> = (0..1000).map(|value| value * 2).collect();
    writer
        .write(&batch(vec![
            ("id", ids(&values)),
            ("name", Arc::new(StringArray::from_iter_values(values.iter().map(i64::to_string))) as ArrayRef),
        ]))
        .await?;
    let files = writer.finish().await?;
    let bytes = {
        use object_store::ObjectStoreExt;
        shop.store.get(&format!("lake/main/silver/keys/{}", files[0].path).into()).await?.bytes().await?
    };
    assert_eq!(files[0].size, bytes.len() as u64);
    assert_eq!(files[0].rows, 1000);
    let options =
        parquet::arrow::arrow_reader::ArrowReaderOptions::new().with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options)?;
    let metadata = builder.metadata();
    assert!(metadata.file_metadata().created_by().unwrap().starts_with("tributary"));
    assert!(matches!(metadata.row_group(0).column(0).compression(), Compression::ZSTD(_)));
    assert!(metadata.column_index().is_some() && metadata.offset_index().is_some());
    let bloom = builder.get_row_group_column_bloom_filter(0, 0)?.unwrap();
    assert!(values.iter().all(|value| bloom.check(value)));
    let false_hits = (0..1000_i64).filter(|value| bloom.check(&(value * 2 + 1))).count();
    assert!(false_hits < 50, "{false_hits} of 1000");
    assert!(metadata.row_group(0).column(0).bloom_filter_length().unwrap() < 8192, "sized to the rows that came");
    assert!(builder.get_row_group_column_bloom_filter(0, 1)?.is_none());
    Ok(())
}

/// Texts of a kilobyte of which none is like another.
fn long_texts(count: i64) -> RecordBatch {
    let mut state = 1u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + (state >> 33) as u8 % 64)
    };
    let texts: Vec<String> = (0..count).map(|_| (0..1024).map(|_| letter()).collect()).collect();
    batch(vec![("id", ids(&(0..count).collect::<Vec<_>>())), ("text", Arc::new(StringArray::from(texts)))])
}

#[tokio::test(flavor = "multi_thread")]
async fn row_groups_end_sooner_under_a_small_limit_and_files_do_not() -> Result<()> {
    for (memory_limit, groups) in [(16 << 20, 5..13), (1 << 30, 1..2)] {
        let shop = Shop::under(memory_limit);
        let table = shop.table("long", vec![Column::new("id", DataType::Long), Column::new("text", DataType::String)], &[]).await?;
        let rows = long_texts(8000);
        let parts: Vec<RecordBatch> = (0..80).map(|part| rows.slice(part * 100, 100)).collect();
        let files = written(&table, &parts).await?;
        assert_eq!(files.iter().map(|file| file.rows).collect::<Vec<_>>(), [8000]);
        let bytes = {
            use object_store::ObjectStoreExt;
            shop.store.get(&format!("lake/main/silver/long/{}", files[0].path).into()).await?.bytes().await?
        };
        let metadata = ParquetRecordBatchReaderBuilder::try_new(bytes)?.metadata().clone();
        assert!(groups.contains(&metadata.num_row_groups()), "{} row groups under {memory_limit} bytes", metadata.num_row_groups());
        assert!(memory_limit == 1 << 30 || metadata.row_groups().iter().all(|group| group.compressed_size() < 3 << 19));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rows_there_are_no_files() -> Result<()> {
    let shop = Shop::open();
    let table = shop.table("empty", vec![Column::new("id", DataType::Long)], &[]).await?;
    assert!(written(&table, &[batch(vec![("id", ids(&[]))])]).await?.is_empty());
    assert!(table.change_writer().finish().await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_longer_than_any_batch_reads_back_whole_and_in_order() -> Result<()> {
    let shop = Shop::open();
    for count in [8191_i64, 8192, 8193, 16_385, 40_000] {
        let table = shop.table(&format!("rows{count}"), vec![Column::new("id", DataType::Long)], &[]).await?;
        let values: Vec<i64> = (0..count).collect();
        let table = append(&table, &[batch(vec![("id", ids(&values))])]).await?;
        let file = &table.files().await?[0];
        let back = crate::shop::collect(table.read_file(file, None).await?).await?;
        assert_eq!(back.column(0).as_primitive::<Int64Type>().values(), values.as_slice());
    }
    Ok(())
}
