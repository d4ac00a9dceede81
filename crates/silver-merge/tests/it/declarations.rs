//! What a table is made with, how it grows, and what needs a full refresh.

use anyhow::{Context as _, Result, ensure};
use tributary_fault::{Fault as _, FaultClass};
use tributary_silver_merge::{Error, Options, table_spec};
use tributary_specs::{Column, ColumnSelection, DataType, Deletes, IgnoreNullUpdates, MergePolicy, SilverSpec, Status};
use tributary_testkit::{Frame, assert_frames_eq, frame};

use crate::world::{SCD2, World, block_on, feed_replays_to_the_table, sorted, source, spec, target};

fn people(policy: MergePolicy) -> SilverSpec {
    SilverSpec { sequence_by: vec!["at".to_owned()], ..spec("people", &["id"], policy) }
}

async fn world_with(rows: &Frame) -> Result<World> {
    let world = World::new();
    world.append(&source("people"), rows).await?;
    Ok(world)
}

fn first() -> Frame {
    frame!("id: long | name: string | at: long\n 1 | a | 1\n 2 | b | 1")
}

#[test]
fn a_new_column_goes_to_the_end_and_one_that_is_gone_becomes_null() {
    block_on(async {
        let world = world_with(&first()).await?;
        let all = SilverSpec { select: Some("SELECT id, name, at FROM bronze.people".to_owned()), ..people(MergePolicy::ScdType1) };
        world.run(&all).await?;
        let more = SilverSpec { select: Some("SELECT id, at, name || '?' AS nick FROM bronze.people".to_owned()), ..all };
        world.append(&source("people"), &frame!("id: long | name: string | at: long\n 1 | c | 2")).await?;
        let report = world.run(&more).await?;
        ensure!(report.notes.iter().any(|note| note == "columns added: nick"), "{report:?}");
        assert_frames_eq!(
            world.all(&target("people")).await?,
            frame!("id: long | name: string | at: long | nick: string\n 1 | null | 2 | c?\n 2 | b | 1 | null")
        );
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_struct_grows_by_fields_in_table_and_state() {
    block_on(async {
        let world = World::new();
        for policy in [MergePolicy::ScdType1, SCD2] {
            let name = if policy == SCD2 { "history" } else { "people" };
            let dataset = SilverSpec { sequence_by: vec!["at".to_owned()], ..spec(name, &["id"], policy) };
            world
                .append(
                    &source(name),
                    &frame!(
                        "id: long | who: struct<given:string> | at: long\n 1 | {\"given\": \"Ada\"} | 1\n 1 | {\"given\": \"Ada\"} | 2"
                    ),
                )
                .await?;
            world.run(&dataset).await?;
            let select = "SELECT id, named_struct('given', who['given'], 'family', 'Lin') AS who, at FROM bronze.";
            let dataset = SilverSpec { select: Some(format!("{select}{name}")), ..dataset };
            world.append(&source(name), &frame!("id: long | who: struct<given:string> | at: long\n 1 | {\"given\": \"Ada\"} | 3")).await?;
            world.run(&dataset).await?;
            let rows = world.rows(&target(name), &["id", "who"]).await?.rows();
            ensure!(rows.iter().any(|row| row[1].to_json() == serde_json::json!({ "given": "Ada", "family": "Lin" })), "{rows:?}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn other_keys_another_kind_of_table_or_another_sequence_need_a_full_refresh() {
    block_on(async {
        let world = world_with(&first()).await?;
        world.run(&people(MergePolicy::ScdType1)).await?;
        world.append(&source("people"), &frame!("id: long | name: string | at: long\n 3 | c | 2")).await?;
        let version = world.version(&target("people")).await?;
        let changed = [
            people(SCD2),
            people(MergePolicy::LastWriterWins),
            SilverSpec { keys: vec!["id".to_owned(), "name".to_owned()], ..people(MergePolicy::ScdType1) },
            SilverSpec { sequence_by: vec!["at".to_owned(), "id".to_owned()], ..people(MergePolicy::ScdType1) },
        ];
        for dataset in changed {
            let error = world.run(&dataset).await.expect_err("it must be refused");
            ensure!(matches!(error, Error::Changed { .. }) && error.to_string().contains("full refresh"), "{error}");
        }
        let retyped = SilverSpec {
            select: Some("SELECT id, length(name) AS name, at FROM bronze.people".to_owned()),
            ..people(MergePolicy::ScdType1)
        };
        ensure!(matches!(world.run(&retyped).await, Err(Error::ColumnType { column, .. }) if column == "name"));
        ensure!(world.version(&target("people")).await? == version);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_declared_schema_is_held_against_the_query() {
    block_on(async {
        let world = world_with(&first()).await?;
        let wrong = SilverSpec {
            schema: vec![
                Column::new("id", DataType::Long).not_null(),
                Column::new("name", DataType::Long),
                Column::new("city", DataType::String),
            ],
            ..people(MergePolicy::ScdType1)
        };
        let error = world.run(&wrong).await.expect_err("it does not fit").to_string();
        for what in ["name", "city", "at"] {
            ensure!(error.contains(&format!("column \"{what}\"")), "{error}");
        }
        let right = SilverSpec {
            schema: vec![
                Column::new("at", DataType::Long),
                Column::new("id", DataType::Long).not_null(),
                Column::new("name", DataType::String),
                Column::new("__START_AT", DataType::Long),
                Column::new("__END_AT", DataType::Long),
            ],
            ..people(SCD2)
        };
        world.run(&right).await?;
        let table = world.table(&target("people")).await?;
        let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
        ensure!(names == ["at", "id", "name", "__START_AT", "__END_AT"], "{names:?}");
        ensure!(!table.columns()[1].nullable, "{:?}", table.columns());
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_list_that_names_a_column_which_is_nowhere_is_refused() {
    block_on(async {
        let world = world_with(&frame!(
            "id: long | name: string | at: long | _op: string | _position: string\n 1 | a | 1 | create | 000000/01\n 2 | b | 1 | create | 000000/02"
        ))
        .await?;
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let people = || people(MergePolicy::ScdType1);
        let mistaken = [
            SilverSpec { columns: ColumnSelection::Except(list(&["at", "nmae"])), ..people() },
            SilverSpec { columns: ColumnSelection::Only(list(&["id", "nmae"])), ..people() },
            SilverSpec {
                select: Some("SELECT id, name AS nick, at FROM bronze.people".to_owned()),
                columns: ColumnSelection::Except(list(&["at", "nmae"])),
                ..people()
            },
        ];
        for dataset in mistaken {
            let error = world.run(&dataset).await.expect_err("it must be refused");
            ensure!(matches!(&error, Error::NoColumn { clause: "columns", column, .. } if column == "nmae"), "{error}");
            ensure!(error.class() == FaultClass::BadInput, "{error}");
        }
        let nulls = SilverSpec { ignore_null_updates: IgnoreNullUpdates::Columns(list(&["name", "nmae"])), ..people() };
        let error = world.run(&nulls).await.expect_err("it must be refused");
        ensure!(error.class() == FaultClass::BadInput && error.to_string().contains("`nmae`"), "{error}");
        ensure!(world.lake.table(&target("people")).await?.is_none());
        // in any case, and with columns that no table is meant to hold
        let fine = SilverSpec { columns: ColumnSelection::Except(list(&["AT", "_op", "_position"])), ..people() };
        world.run(&fine).await?;
        assert_frames_eq!(world.rows(&target("people"), &["id", "name"]).await?, frame!("id: long | name: string\n 1 | a\n 2 | b"));
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn generated_columns_are_computed_for_new_changed_and_kept_rows() {
    block_on(async {
        let first = frame!(
            "id: long | name: string | at: timestamp | _op: string | _position: string | _unavailable: array<string>
             1 | a    | 2026-01-01T10:00:00Z | create | 000000/01 | null
             2 | b    | 2026-01-01T11:00:00Z | create | 000000/02 | null
             3 | null | null                 | create | 000000/03 | null"
        );
        let second = frame!(
            "id: long | name: string | at: timestamp | _op: string | _position: string | _unavailable: array<string>
             1 | A    | 2026-01-02T10:00:00Z | update | 000000/04 | null
             2 | B    | null                 | update | 000000/05 | [\"at\"]
             4 | d    | 2026-01-04T10:00:00Z | create | 000000/06 | null
             3 | null | null                 | delete | 000000/07 | null"
        );
        for policy in [MergePolicy::ScdType1, SCD2, MergePolicy::Append] {
            for marks in [true, false] {
                let world = world_with(&first).await?;
                let mut day = Column::new("day", DataType::Date);
                day.generated = Some("CAST(at AS DATE)".to_owned());
                let dataset = SilverSpec {
                    schema: vec![
                        Column::new("id", DataType::Long),
                        Column::new("name", DataType::String),
                        Column::new("at", DataType::Timestamp),
                        day,
                    ],
                    partition_by: vec!["day".to_owned()],
                    properties: crate::world::vectors(marks),
                    ..spec("people", if policy == MergePolicy::Append { &[] } else { &["id"] }, policy.clone())
                };
                world.run(&dataset).await?;
                world.append(&source("people"), &second).await?;
                world.run(&dataset).await?;
                // a row as it is changes nothing
                world.append(&source("people"), &frame!("id: long | name: string | at: timestamp | _op: string | _position: string | _unavailable: array<string>\n 4 | d | 2026-01-04T10:00:00Z | update | 000000/08 | null")).await?;
                let report = world.run(&dataset).await?;
                let rows = world.rows(&target("people"), &["id", "name", "day"]).await?;
                match policy {
                    MergePolicy::ScdType1 => {
                        ensure!(report.rows_inserted + report.rows_updated + report.rows_deleted == 0, "{report:?}");
                        assert_frames_eq!(
                            rows,
                            frame!("id: long | name: string | day: date\n 1 | A | 2026-01-02\n 2 | B | 2026-01-01\n 4 | d | 2026-01-04")
                        );
                    }
                    MergePolicy::Append => ensure!(rows.len() == 7, "{rows:?}"),
                    _ => {
                        let expected = frame!(
                            "id: long | name: string | day: date
                             1 | a    | 2026-01-01
                             1 | A    | 2026-01-02
                             2 | b    | 2026-01-01
                             2 | B    | 2026-01-01
                             3 | null | null
                             4 | d    | 2026-01-04"
                        );
                        ensure!(sorted(&rows) == sorted(&expected), "{rows:?}");
                    }
                }
                if policy != MergePolicy::Append {
                    feed_replays_to_the_table(&world, &target("people")).await?;
                }
            }
        }
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn hidden_columns_are_only_those_the_next_batch_needs() {
    block_on(async {
        let columns = |spec: &SilverSpec| {
            let spec = spec.clone();
            async move {
                let world = world_with(&first()).await?;
                let table = table_spec(&world.lake, &spec, &Options::default()).await?.context("its source is there")?;
                world.run(&spec).await?;
                let names: Vec<String> = world.table(&spec.table).await?.columns().iter().map(|column| column.name.clone()).collect();
                ensure!(
                    names == table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>(),
                    "setup makes what a run makes"
                );
                Ok(names.join(" "))
            }
        };
        let without_at = tributary_specs::ColumnSelection::Except(vec!["at".to_owned()]);
        ensure!(columns(&people(MergePolicy::ScdType1)).await? == "id name at");
        ensure!(columns(&SilverSpec { columns: without_at.clone(), ..people(MergePolicy::ScdType1) }).await? == "id name __sequence");
        ensure!(columns(&SilverSpec { columns: without_at, ..people(SCD2) }).await? == "id name __START_AT __END_AT");
        let deletes = Deletes { soft_delete_column: Some("gone".to_owned()), ..Deletes::default() };
        ensure!(columns(&SilverSpec { deletes, ..people(MergePolicy::ScdType1) }).await? == "id name at gone");
        let unordered = spec("people", &["id"], MergePolicy::ScdType1);
        let error = columns(&unordered).await.expect_err("nothing orders its changes").to_string();
        ensure!(error.contains("declare sequence_by"), "{error}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_starting_version_counts_only_while_the_table_has_no_position() {
    block_on(async {
        let world = world_with(&first()).await?;
        for at in 2..5 {
            world.append(&source("people"), &frame!(&format!("id: long | name: string | at: long\n {at} | x | {at}"))).await?;
        }
        let latest = world.version(&source("people")).await?;
        let options = Options { starting_version: latest, ..Options::default() };
        tributary_silver_merge::run(&world.lake, &people(MergePolicy::ScdType1), &options).await?;
        ensure!(world.count(&target("people")).await? == Some(1));
        world.append(&source("people"), &frame!("id: long | name: string | at: long\n 9 | y | 9")).await?;
        let options = Options { starting_version: latest + 5, ..Options::default() };
        tributary_silver_merge::run(&world.lake, &people(MergePolicy::ScdType1), &options).await?;
        ensure!(world.count(&target("people")).await? == Some(2));
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_text_sequence_of_varying_length_is_refused_unless_asked_for() {
    block_on(async {
        let rows = frame!("id: long | name: string | at: string\n 1 | a | 9\n 1 | b | 10");
        let world = world_with(&rows).await?;
        ensure!(matches!(world.run(&people(MergePolicy::ScdType1)).await, Err(Error::TextSequence { column, .. }) if column == "at"));
        let mut asked = people(MergePolicy::ScdType1);
        asked.properties.insert(tributary_specs::SEQUENCE_TEXT.to_owned(), "true".to_owned());
        world.run(&asked).await?;
        assert_frames_eq!(world.rows(&target("people"), &["name"]).await?, frame!("name: string\n a"));
        Ok::<_, anyhow::Error>(())
    })
    .unwrap();
}

#[test]
fn a_table_is_made_for_an_empty_source_once() {
    block_on(async {
        let world = World::new();
        world.lake.create(&tributary_specs::TableSpec::new(source("people"), Column::all_from_arrow(&first().schema())?)).await?;
        let dataset = people(MergePolicy::ScdType1);
        ensure!(world.run(&dataset).await?.status == Status::Committed);
        ensure!(world.count(&target("people")).await? == Some(0));
        ensure!(world.run(&dataset).await?.status == Status::NothingNew);
        ensure!(world.version(&target("people")).await? == 0);
        Ok(())
    })
    .unwrap();
}
