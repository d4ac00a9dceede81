//! The MERGE cases of `tests/cases/handed.jsonl`, as far as silver decides them.

use anyhow::{Result, ensure};
use serde_json::{Value as Json, json};
use tributary_silver_merge::Error;
use tributary_specs::{Column, DataType, Deletes, MergePolicy, NullKeys, SilverSpec};
use tributary_testkit::cases::handed_case;
use tributary_testkit::{Frame, FrameDiff, Value, frame};

use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted, source, spec, target};

fn column(name: &str, data_type: DataType) -> Column {
    Column::new(name, data_type)
}

fn text(name: &str) -> Column {
    column(name, DataType::String)
}

fn whole(name: &str) -> Column {
    column(name, DataType::Long)
}

fn in_sequence(name: &str, keys: &[&str], policy: MergePolicy) -> SilverSpec {
    SilverSpec { sequence_by: vec!["seq".to_owned()], ..spec(name, keys, policy) }
}

#[test]
fn merge_01_a_rerun_doubles_no_row_whatever_the_partition_value_is_spelled_like() {
    let sites = ["north hall", "south", "a\tb", "a+b", "a#b", "süd", "100 %", "a%20b", "a/b", "a=b", "a:b", "'quoted'", "x y+z%#/"];
    let columns = [text("site"), text("sensor"), whole("v"), whole("seq")];
    for policy in [MergePolicy::ScdType1, SCD2] {
        block_on(async {
            let world = World::new();
            let dataset =
                SilverSpec { partition_by: vec!["site".to_owned()], ..in_sequence("readings", &["site", "sensor"], policy.clone()) };
            for run in 1..=3 {
                let rows: Vec<Json> = sites
                    .iter()
                    .flat_map(|site| ["a", "b"].map(|sensor| json!({ "site": site, "sensor": sensor, "v": run, "seq": run })))
                    .collect();
                world.append(&source("readings"), &Frame::from_json(&columns, &rows)).await?;
                let report = world.run(&dataset).await?;
                let live = world.all(&target("readings")).await?;
                let ends = live.schema().index_of("__END_AT").ok();
                let open = live.rows().iter().filter(|row| ends.is_none_or(|end| row[end].is_null())).count();
                ensure!(open == 2 * sites.len(), "{open} rows after run {run}");
                ensure!(report.rows_updated == if run == 1 { 0 } else { 2 * sites.len() as u64 }, "{report:?}");
                feed_replays_to_the_table(&world, &target("readings")).await?;
            }
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn merge_03_a_null_in_a_composite_key_equals_itself_where_declared_and_is_named_where_not() {
    let case = handed_case("MERGE-03");
    let columns = [whole("campaign"), text("device"), column("day", DataType::Date), whole("clicks"), whole("seq")];
    let frames: Vec<Frame> = case.input["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .enumerate()
        .map(|(run, rows)| {
            let rows = rows.as_array().expect("rows").iter();
            let rows: Vec<Json> =
                rows.map(|row| json!({ "campaign": row[0], "device": row[1], "day": row[2], "clicks": row[3], "seq": run })).collect();
            Frame::from_json(&columns, &rows)
        })
        .collect();
    let dataset = |null_keys| SilverSpec { null_keys, ..in_sequence("ad_stats", &["campaign", "device", "day"], MergePolicy::ScdType1) };
    block_on(async {
        let world = World::new();
        for frame in &frames {
            world.append(&source("ad_stats"), frame).await?;
            world.run(&dataset(NullKeys::NullSafe)).await?;
            ensure!(world.count(&target("ad_stats")).await? == Some(2), "the row count grows with each run");
        }
        let found = world.rows(&target("ad_stats"), &["campaign", "device", "day", "clicks"]).await?;
        let expected =
            frame!("campaign: long | device: string | day: date | clicks: long\n7 | null | 2026-02-01 | 12\n7 | tv | 2026-02-01 | 3");
        let difference = FrameDiff::between(found, expected).ignoring_nullability().compute();
        ensure!(difference.is_none(), "{difference}");

        let world = World::new();
        world.append(&source("ad_stats"), &frames[0]).await?;
        let error = world.run(&dataset(NullKeys::Refuse)).await.expect_err("refused");
        ensure!(matches!(&error, Error::NullKey { column, .. } if column == "device"), "{error}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn merge_05_files_longer_than_any_batch_size_are_merged_one_to_one() {
    for rows in [8191, 8192, 8193, 16385] {
        block_on(async {
            let world = World::new();
            let columns = [whole("id"), whole("v"), whole("seq")];
            let frame = |seq: i64| {
                Frame::of(&columns, &(0..rows).map(|id| vec![Value::from(id), Value::from(id + seq), Value::from(seq)]).collect::<Vec<_>>())
            };
            let dataset = in_sequence("big", &["id"], MergePolicy::ScdType1);
            for seq in 0..2 {
                world.append(&source("big"), &frame(seq)).await?;
                world.run(&dataset).await?;
            }
            let found = world.rows(&target("big"), &["id", "v"]).await?.rows();
            let sum: i128 = found.iter().map(|row| if let Value::Int(v) = row[1] { v } else { 0 }).sum();
            ensure!(found.len() as i64 == rows, "{} rows", found.len());
            ensure!(sum == i128::from(rows * (rows - 1) / 2 + rows), "sum {sum}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn merge_07_a_new_column_and_a_not_null_key_get_along() {
    let doc = |id: &str, path: &str, seq: i64| json!({ "doc_id": id, "path": path, "seq": seq });
    let before = [text("doc_id"), text("path"), whole("seq")];
    let after = [text("doc_id"), text("path"), whole("seq"), column("pages", DataType::Integer)];
    for policy in [MergePolicy::ScdType1, SCD2] {
        block_on(async {
            let world = World::new();
            let dataset = SilverSpec {
                schema: vec![text("doc_id").not_null(), text("path"), whole("seq")],
                ..in_sequence("doc", &["doc_id"], policy.clone())
            };
            world.append(&source("doc"), &Frame::from_json(&before, &[doc("d1", "p1", 1), doc("d2", "p2", 1)])).await?;
            world.run(&dataset).await?;
            ensure!(!world.table(&target("doc")).await?.schema().field_with_name("doc_id")?.is_nullable());
            let mut changed = doc("d1", "p1b", 2);
            changed["pages"] = 4.into();
            world.append(&source("doc"), &Frame::from_json(&after, &[changed])).await?;
            // The declaration follows the source.
            let dataset = SilverSpec { schema: [dataset.schema, vec![column("pages", DataType::Integer)]].concat(), ..dataset };
            world.run(&dataset).await?;
            let live = world.all(&target("doc")).await?;
            let ends = live.schema().index_of("__END_AT").ok();
            let open: Vec<Vec<Value>> = live.rows().into_iter().filter(|row| ends.is_none_or(|end| row[end].is_null())).collect();
            let mut open = Frame::from_rows(live.schema(), &open).select(&["doc_id", "path", "pages"]).rows();
            open.sort();
            ensure!(open == [[Value::from("d1"), "p1b".into(), Value::from(4)], ["d2".into(), "p2".into(), Value::Null]], "{open:?}");
            feed_replays_to_the_table(&world, &target("doc")).await
        })
        .unwrap();
    }
}

#[test]
fn merge_09_struct_fields_are_paired_by_name_in_structs_and_inside_lists() {
    let person = |order: &str| -> DataType { order.parse().expect("a type") };
    let straight = [
        whole("id"),
        whole("seq"),
        column("who", person("struct<given:string,family:string>")),
        column("all", person("array<struct<given:string,family:string>>")),
    ];
    let swapped = [
        whole("id"),
        whole("seq"),
        column("who", person("struct<family:string,given:string>")),
        column("all", person("array<struct<family:string,given:string>>")),
    ];
    let row = |id: i64, seq: i64, given: Option<&str>, family: &str| {
        let who = json!({ "given": given, "family": family });
        json!({ "id": id, "seq": seq, "who": who, "all": [who] })
    };
    block_on(async {
        let world = World::new();
        let dataset = in_sequence("people", &["id"], MergePolicy::ScdType1);
        for (columns, rows) in [
            (&straight, vec![row(1, 1, Some("Ada"), "Lin")]),
            (&swapped, vec![row(2, 1, Some("Ben"), "Okoro")]),
            (&swapped, vec![row(2, 2, Some("Ben"), "Okoro"), row(3, 1, None, "Sol")]),
        ] {
            world.append(&source("people"), &Frame::from_json(columns, &rows)).await?;
            world.run(&dataset).await?;
        }
        let rows = sorted(&world.rows(&target("people"), &["id", "who", "all"]).await?);
        let found: Vec<Json> = rows.iter().map(|row| row[1].to_json()).collect();
        let expected = [
            json!({ "given": "Ada", "family": "Lin" }),
            json!({ "given": "Ben", "family": "Okoro" }),
            json!({ "given": null, "family": "Sol" }),
        ];
        ensure!(found == expected, "{found:?}");
        ensure!(rows.iter().zip(&expected).all(|(row, who)| row[2].to_json() == json!([who])), "{rows:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn merge_11_one_instant_is_one_key_however_it_was_written() {
    block_on(async {
        let world = World::new();
        let columns = [text("at"), whole("a"), whole("seq")];
        let select = Some("SELECT CAST(at AS TIMESTAMP) AS ts, a, seq FROM bronze.instants".to_owned());
        let dataset = SilverSpec { select, ..in_sequence("instants", &["ts"], MergePolicy::ScdType1) };
        let row = |at: &str, a: i64| json!({ "at": at, "a": a, "seq": a });
        for rows in [vec![row("2026-02-01T06:00:00Z", 1)], vec![row("2026-02-01T00:00:00-06:00", 2), row("2026-02-01T06:00:00Z", 2)]] {
            world.append(&source("instants"), &Frame::from_json(&columns, &rows)).await?;
            world.run(&dataset).await?;
        }
        let found = world.rows(&target("instants"), &["ts", "a"]).await?;
        ensure!(found.len() == 1, "two rows for one instant:\n{found}");
        ensure!(found.rows()[0][1] == 2.into(), "{found}");
        Ok(())
    })
    .unwrap();
}

async fn where_tag(condition: &str) -> Result<Vec<Value>> {
    let world = World::new();
    let columns = [whole("id"), text("tag"), whole("seq")];
    let row = |(id, tag): (i64, Option<&str>), seq: i64| json!({ "id": id, "tag": tag, "seq": seq });
    let rows = [(1, Some("a")), (2, None), (3, Some("b"))];
    let dataset = SilverSpec {
        deletes: Deletes { apply_as_delete_when: Some(format!("seq = 2 AND {condition}")), ..Deletes::default() },
        ..in_sequence("tagged", &["id"], MergePolicy::ScdType1)
    };
    for seq in 1..=2 {
        world.append(&source("tagged"), &Frame::from_json(&columns, &rows.map(|one| row(one, seq)))).await?;
        world.run(&dataset).await?;
    }
    Ok(sorted(&world.rows(&target("tagged"), &["id"]).await?).into_iter().flatten().collect())
}

#[test]
fn merge_13_a_condition_that_is_null_deletes_nothing() {
    block_on(async {
        ensure!(where_tag("tag = 'a'").await? == [Value::from(2), Value::from(3)]);
        ensure!(where_tag("NOT (tag = 'a')").await? == [Value::from(1), Value::from(2)]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn merge_15_a_decimal_that_does_not_fit_its_declaration_is_an_error_at_once_never_rounded() {
    block_on(async {
        let world = World::new();
        let decimal = |precision, scale| DataType::Decimal { precision, scale };
        let columns = [whole("id"), column("amt", decimal(38, 2)), whole("seq")];
        let rows = [json!({ "id": 1, "amt": "0.50", "seq": 1 }), json!({ "id": 2, "amt": "1000000.25", "seq": 1 })];
        world.append(&source("amounts"), &Frame::from_json(&columns, &rows)).await?;
        let dataset = SilverSpec {
            schema: vec![whole("id"), column("amt", decimal(38, 32)), whole("seq")],
            ..in_sequence("amounts", &["id"], MergePolicy::ScdType1)
        };
        let error = world.run(&dataset).await.expect_err("it does not fit");
        ensure!(error.to_string().contains("amt") || format!("{error:?}").contains("amt"), "{error:?}");
        ensure!(!matches!(tributary_fault::Fault::class(&error), tributary_fault::FaultClass::Transient), "it would be retried for ever");
        // As declared by its source, every value is there to the last digit.
        let dataset = in_sequence("amounts", &["id"], MergePolicy::ScdType1);
        world.run(&dataset).await?;
        let found = world.rows(&target("amounts"), &["id", "amt"]).await?;
        let expected = frame!("id: long | amt: decimal(38,2)\n1 | 0.50\n2 | 1000000.25");
        let difference = FrameDiff::between(found, expected).ignoring_nullability().compute();
        ensure!(difference.is_none(), "{difference}");
        Ok(())
    })
    .unwrap();
}
