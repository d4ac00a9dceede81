//! Which files are taken, when, and how often.

use serde_json::json;
use tributary_lake::object_store::ObjectStoreExt;
use tributary_lake::object_store::path::Path;
use tributary_lake::{Clock as _, SystemClock};
use tributary_specs::Status;
use tributary_testkit::{Rule, Verb};

use crate::world::{BAD_INPUT, World, code_of, exit_of, feed, gzip, json_lines, record, recorded};

fn lines(ids: std::ops::Range<i64>) -> String {
    ids.map(|id| format!("{{\"id\":{id}}}\n")).collect()
}

/// Ids as rows, in the order the world gives them.
fn numbers(ids: impl IntoIterator<Item = i64>) -> Vec<serde_json::Value> {
    let mut ids: Vec<_> = ids.into_iter().map(|id| json!([id])).collect();
    ids.sort_by_key(ToString::to_string);
    ids
}

/// B5
/// B5.
#[tokio::test]
async fn a_run_with_nothing_new_reads_no_file_and_writes_nothing() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/1.jsonl", lines(0..10)).await;
    world.drop_file("in/2.jsonl", lines(10..20)).await;
    assert_eq!(world.run_one(&feed).await.status, Status::Committed);
    let (versions, writes) = (world.versions().await, world.lake_store.counts().mutating);
    let gets = world.data_store.calls().iter().filter(|call| call.verb == Verb::Get).count();

    let report = world.run_one(&feed).await;
    assert_eq!((report.status, report.rows_in, report.version_from, report.version_to), (Status::NothingNew, 0, Some(1), Some(1)));
    assert_eq!(world.versions().await, versions);
    assert_eq!(world.lake_store.counts().mutating, writes);
    assert_eq!(world.data_store.calls().iter().filter(|call| call.verb == Verb::Get).count(), gets);
}

#[tokio::test]
async fn a_file_is_counted_once_by_content_whatever_its_name_and_packing() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/1.jsonl", lines(0..10)).await;
    world.drop_file("in/again.jsonl", lines(0..10)).await;
    world.run_one(&feed).await;
    world.drop_file("in/packed.jsonl.gz", gzip(lines(0..10).as_bytes())).await;
    let report = world.run_one(&feed).await;
    assert_eq!(report.rows_in, 0);
    assert!(report.notes.iter().any(|note| note.contains("in/packed.jsonl.gz")), "{:?}", report.notes);
    assert_eq!(world.columns("bronze.a", &["id"]).await, numbers(0..10));
    let third = world.run_one(&feed).await;
    assert_eq!(third.status, Status::NothingNew, "the other names are known now");
}

#[tokio::test]
async fn a_file_that_grew_since_it_was_taken_is_read_on() {
    for (name, pack) in [("in/log.jsonl", (|text| text) as fn(Vec<u8>) -> Vec<u8>), ("in/log.jsonl.gz", |text| gzip(&text))] {
        let world = World::new();
        let feed = json_lines("a", "in");
        for end in [3, 3, 7, 20] {
            world.drop_file(name, pack(lines(0..end).into_bytes())).await;
            world.run_one(&feed).await;
            assert_eq!(world.columns("bronze.a", &["id"]).await, numbers(0..end));
        }
        let places = world.columns("bronze.a", &["_line", "id"]).await;
        assert!(places.iter().all(|place| place[0].as_i64() == place[1].as_i64().map(|id| id + 1)));
    }
}

#[tokio::test]
async fn half_a_line_at_the_end_goes_to_quarantine_and_is_superseded_when_the_rest_comes() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/log.jsonl", "{\"id\":0}\n{\"id\":1,\"no").await;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_out, report.rows_quarantined), (1, 1));
    world.drop_file("in/log.jsonl", "{\"id\":0}\n{\"id\":1,\"note\":\"whole\"}\n{\"id\":2}\n").await;
    let report = world.run_one(&feed).await;
    assert_eq!((report.rows_in, report.rows_out), (2, 2));
    assert_eq!(world.columns("bronze.a", &["id", "note"]).await, [json!([0, null]), json!([1, "whole"]), json!([2, null])]);
    let refused = world.rows("quarantine.a").await;
    assert_eq!(refused.len(), 1, "marked, not doubled");
    assert!(refused[0]["superseded_at"].is_string());
}

#[tokio::test]
async fn a_file_rewritten_under_its_name_is_another_content() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/a.jsonl", lines(0..3)).await;
    world.run_one(&feed).await;
    world.drop_file("in/a.jsonl", lines(5..9)).await;
    world.run_one(&feed).await;
    assert_eq!(world.columns("bronze.a", &["id"]).await, numbers((0..3).chain(5..9)));
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_read_is_left_whole_for_the_next_run() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/0.jsonl", lines(100..103)).await;
    world.drop_file("in/1.jsonl", lines(0..3)).await;
    let writer = world.clone();
    // Identifying a file is a get and then a head: the file grows between them.
    let between = Rule::verbs([Verb::Get]).on("in/1.jsonl");
    world.data_store.before(between, 2, move |_| async move { writer.drop_file("in/1.jsonl", lines(0..5)).await });
    let report = world.run_one(&feed).await;
    assert_eq!(report.rows_out, 3);
    assert!(report.notes.iter().any(|note| note.contains("in/1.jsonl changed while it was read")), "{:?}", report.notes);
    let report = world.run_one(&feed).await;
    assert_eq!(report.rows_out, 5);
    assert_eq!(world.columns("bronze.a", &["id"]).await, numbers((0..5).chain(100..103)));
}

#[tokio::test]
async fn a_big_file_that_changes_between_identifying_and_decoding_gives_up_the_batch_and_nothing_is_lost() {
    let world = World::new();
    let feed = json_lines("a", "in");
    let long =
        |ids: std::ops::Range<i64>| -> String { ids.map(|id| format!("{{\"id\":{id},\"note\":\"{}\"}}\n", "x".repeat(500))).collect() };
    world.drop_file("in/0.jsonl", lines(100_000..100_003)).await;
    world.drop_file("in/1.jsonl", long(0..20_000)).await;
    let writer = world.clone();
    let third = Rule::verbs([Verb::Get]).on("in/1.jsonl");
    world.data_store.before(third, 3, move |_| async move { writer.drop_file("in/1.jsonl", long(0..20_001)).await });
    let report = world.run_one(&feed).await;
    assert_eq!(report.rows_out, 3, "the file that changed is left whole");
    let report = world.run_one(&feed).await;
    assert_eq!(report.rows_out, 20_001);
    assert_eq!(world.rows("bronze.a").await.len(), 20_004);
}

#[tokio::test]
async fn a_young_file_is_left_until_it_has_settled() {
    let world = World::new();
    let mut feed = json_lines("a", "in");
    if let tributary_specs::Source::Files(source) = &mut feed.source {
        source.settle_seconds = 60;
    }
    world.drop_file("in/1.jsonl", lines(0..3)).await;
    world.clock.set(SystemClock.now());
    let report = world.run_one(&feed).await;
    assert_eq!(report.status, Status::NothingNew);
    assert!(report.notes[0].contains("less than 60 seconds ago"), "{:?}", report.notes);
    world.clock.advance(chrono::TimeDelta::seconds(61));
    assert_eq!(world.run_one(&feed).await.rows_out, 3);
}

#[tokio::test]
async fn batches_keep_their_bounds_and_a_run_drains() {
    let world = World::new();
    let feed = json_lines("a", "in");
    for file in 0..7 {
        world.drop_file(&format!("in/{file}.jsonl"), lines(file * 10..file * 10 + 10)).await;
    }
    let mut options = world.options();
    options.max_files_per_trigger = 3;
    let report = world.run_with(&[feed], &options).await.remove(0);
    assert_eq!((report.rows_out, report.version_to), (70, Some(3)));
    assert_eq!(world.columns("bronze.a", &["id"]).await, numbers(0..70));

    let world = World::new();
    let feed = json_lines("a", "in");
    for file in 0..7 {
        world.drop_file(&format!("in/{file}.jsonl"), lines(file * 10..file * 10 + 10)).await;
    }
    let mut options = world.options();
    options.max_records_per_trigger = Some(15);
    assert_eq!(world.run_with(&[feed], &options).await[0].version_to, Some(4));
}

/// B2: no version holds part of a file.
#[tokio::test]
async fn a_file_cut_into_slices_lands_in_one_commit() {
    let world = World::new();
    world.drop_file("in/1.jsonl.gz", gzip(lines(0..1_000).as_bytes())).await;
    let mut options = world.options();
    options.slice_records = 64;
    let report = world.run_with(&[json_lines("a", "in")], &options).await.remove(0);
    assert_eq!((report.rows_out, report.version_to), (1_000, Some(1)));
    assert_eq!(world.columns("bronze.a", &["id"]).await, numbers(0..1_000));
}

#[tokio::test]
async fn hidden_and_unfinished_files_and_other_names_are_not_read() {
    let world = World::new();
    let mut feed = json_lines("a", "in");
    if let tributary_specs::Source::Files(source) = &mut feed.source {
        source.glob = Some("*.jsonl".to_owned());
    }
    for (at, name) in ["a.jsonl", ".b.jsonl", "_c.jsonl", "_d/e.jsonl", "f.jsonl.tmp", "g.part", "h.txt", "sub/i.jsonl"].iter().enumerate()
    {
        let id = i64::try_from(at).unwrap();
        world.drop_file(&format!("in/{name}"), lines(id..id + 1)).await;
    }
    world.run_one(&feed).await;
    assert_eq!(world.columns("bronze.a", &["id", "_file"]).await, [json!([0, "in/a.jsonl"]), json!([7, "in/sub/i.jsonl"])]);
}

#[tokio::test]
async fn one_pass_over_the_files_feeds_many_tables_by_topic() {
    let world = World::new();
    let feeds = [recorded("orders", "in", &["shop.orders"]), recorded("rest", "in", &["shop.c*", "shop.d*"]), recorded("all", "in/", &[])];
    let content: String = ["shop.orders", "shop.customers", "shop.orders", "shop.days"]
        .iter()
        .zip(0..)
        .map(|(topic, offset)| record(topic, offset, &json!({"id": offset})))
        .collect();
    world.drop_file("in/1.jsonl", content).await;
    let reports = world.run(&feeds).await;
    assert_eq!(reports.iter().map(|report| report.rows_out).collect::<Vec<_>>(), [2, 2, 4]);
    assert_eq!(world.columns("bronze.orders", &["id"]).await, [json!([0]), json!([2])]);
    assert_eq!(world.columns("bronze.rest", &["id"]).await, [json!([1]), json!([3])]);
    let gets = world.data_store.calls().iter().filter(|call| call.verb == Verb::Get && call.path.as_ref().contains("1.jsonl")).count();
    assert_eq!(gets, 2, "one get and one head, however many feeds");
}

#[tokio::test]
async fn a_feed_added_later_reads_the_files_the_others_have_taken() {
    let world = World::new();
    let feeds = [recorded("a", "in", &["t"]), recorded("b", "in", &["t"])];
    world.drop_file("in/1.jsonl", record("t", 0, &json!({"id": 1}))).await;
    world.run(&feeds[..1]).await;
    let reports = world.run(&feeds).await;
    assert_eq!(reports.iter().map(|report| report.rows_in).collect::<Vec<_>>(), [0, 1]);
}

#[tokio::test]
async fn records_of_no_feed_are_counted_once_and_named() {
    let world = World::new();
    let feeds = [recorded("a", "in", &["t"]), recorded("b", "in", &["u"])];
    let content = [record("t", 0, &json!({"id": 1})), record("v", 0, &json!({"id": 2})), record("v", 1, &json!({"id": 3}))].concat();
    world.drop_file("in/1.jsonl", content).await;
    let reports = world.run(&feeds).await;
    assert_eq!((reports[0].rows_in, reports[0].rows_out, reports[0].rows_ignored["no_feed"]), (3, 1, 2));
    assert_eq!((reports[1].rows_in, reports[1].rows_ignored.len()), (0, 0));
    assert!(reports[0].notes.contains(&"records of no feed, by topic: v (2)".to_owned()), "{:?}", reports[0].notes);
}

#[tokio::test]
async fn a_run_of_some_feeds_leaves_the_others_and_the_leads_bytes_alone() {
    let world = World::new();
    let feeds = [recorded("a", "in", &["t"]), recorded("b", "in", &["u"])];
    world
        .drop_file("in/1.jsonl", [record("t", 0, &json!({"id": 1})), record("u", 0, &json!({"id": 2})), "half a li".to_owned()].concat())
        .await;
    let mut options = world.options();
    options.only = Some(["b".to_owned()].into());
    let reports = world.run_with(&feeds, &options).await;
    assert_eq!((reports.len(), reports[0].rows_in, reports[0].rows_out), (1, 1, 1));
    let reports = world.run(&feeds).await;
    assert_eq!((reports[0].rows_in, reports[0].rows_out, reports[0].rows_quarantined), (2, 1, 1));
    assert_eq!(reports[1].rows_in, 0);
}

#[tokio::test]
async fn a_single_file_is_a_path_too() {
    let world = World::new();
    world.drop_file("one.jsonl", lines(0..2)).await;
    world.run_one(&json_lines("a", "one.jsonl")).await;
    assert_eq!(world.columns("bronze.a", &["id", "_file"]).await, [json!([0, "one.jsonl"]), json!([1, "one.jsonl"])]);
}

#[tokio::test]
async fn files_of_this_machine_are_read_by_relative_and_absolute_paths() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("in/dér é %20")).unwrap();
    std::fs::write(folder.path().join("in/dér é %20/a b.jsonl"), lines(0..3)).unwrap();
    let world = World::new();
    let root = tributary_bronze::DataRoot::local(folder.path().to_str().unwrap()).unwrap();
    let options = tributary_bronze::Options::new(root);
    let report = world.run_with(&[json_lines("a", "in")], &options).await.remove(0);
    assert_eq!((report.error, report.rows_out), (None, 3));
    let absolute = json_lines("b", folder.path().join("in").to_str().unwrap());
    assert_eq!(world.run_with(&[absolute], &options).await[0].rows_out, 3);
}

#[tokio::test]
async fn a_file_gone_between_listing_and_reading_is_left_and_the_others_are_read() {
    let world = World::new();
    let feed = json_lines("a", "in");
    world.drop_file("in/1.jsonl", lines(0..3)).await;
    world.drop_file("in/2.jsonl", lines(3..6)).await;
    let store = world.data_store.inner();
    world.data_store.before(Rule::verbs([Verb::Get]).on("in/1.jsonl"), 1, move |_| async move {
        store.delete(&Path::from("drops/in/1.jsonl")).await.unwrap();
    });
    let report = world.run(&[feed]).await.remove(0);
    assert_eq!((report.rows_out, report.error.map(|error| error.exit_code)), (3, Some(4)));
}

#[tokio::test]
async fn beyond_its_limit_the_ledger_goes_on_in_ranges() {
    let world = World::new();
    let feed = json_lines("a", "in");
    let mut options = world.options();
    (options.files_as_positions_max, options.max_files_per_trigger) = (3, 2);
    for file in 0..9 {
        world.drop_file(&format!("in/{file}.jsonl"), lines(file * 10..file * 10 + 10)).await;
    }
    let report = world.run_with(std::slice::from_ref(&feed), &options).await.remove(0);
    assert_eq!((report.error, report.rows_out, report.positions["files"]), (None, 90, 9));
    let gets = || world.data_store.calls().iter().filter(|call| call.verb == Verb::Get).count();
    let before = gets();
    assert_eq!(world.run_with(std::slice::from_ref(&feed), &options).await[0].status, Status::NothingNew);
    assert_eq!(gets(), before, "the quick test holds for files of ranges too");
    world.drop_file("in/9.jsonl", lines(0..10)).await;
    world.drop_file("in/8.jsonl", lines(80..95)).await;
    assert_eq!(world.run_with(std::slice::from_ref(&feed), &options).await[0].rows_in, 5);
    assert_eq!(world.columns("bronze.a", &["id"]).await, numbers(0..95));
}

#[tokio::test]
async fn two_runs_that_write_the_same_range_take_each_file_once() {
    let world = World::new();
    let feeds = [json_lines("a", "in")];
    let mut options = world.options();
    (options.files_as_positions_max, options.max_files_per_trigger) = (1, 2);
    for file in 0..6 {
        world.drop_file(&format!("in/{file}.jsonl"), lines(file..file + 1)).await;
    }
    let other = World::over(world.lake_store.inner(), world.data_store.inner());
    let (others, mut other_options) = (feeds.clone(), other.options());
    (other_options.files_as_positions_max, other_options.max_files_per_trigger) = (1, 2);
    world.lake_store.before(Rule::delta_commit().on("bronze/a/_delta_log/0"), 3, move |_| async move {
        assert_eq!(other.run_with(&others, &other_options).await[0].error, None);
    });
    let report = world.run_with(&feeds, &options).await.remove(0);
    assert_eq!(report.error, None);
    assert!(report.conflicts > 0);
    assert_eq!(world.columns("bronze.a", &["id"]).await, numbers(0..6));
}

#[cfg(unix)]
#[tokio::test]
async fn a_path_that_cannot_be_read_is_named_for_a_person_and_every_other_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let drops = folder.path().join("in");
    std::fs::create_dir_all(drops.join("deep")).unwrap();
    std::fs::write(drops.join("1.jsonl"), lines(0..3)).unwrap();
    std::fs::write(drops.join("deep/2.jsonl"), lines(3..5)).unwrap();
    std::os::unix::fs::symlink("..", drops.join("deep/up")).unwrap();
    std::os::unix::fs::symlink("self", drops.join("self")).unwrap();
    let world = World::new();
    let options = tributary_bronze::Options::new(tributary_bronze::DataRoot::local(folder.path().to_str().unwrap()).unwrap());
    for rows in [5, 0] {
        let report = world.run_with(&[json_lines("a", "in")], &options).await.remove(0);
        assert_eq!((report.rows_out, code_of(&report), exit_of(&report)), (rows, "BR0029", BAD_INPUT), "{report:?}");
        let message = &report.error.as_ref().unwrap().message;
        assert!(message.contains("symbolic links lead in a circle") && message.contains("(next: tributary help BR0029)"), "{message}");
        assert!(["deep/up", "self"].iter().all(|path| report.notes.iter().any(|note| note.contains(path))), "{:?}", report.notes);
    }
    let looped = world.run_with(&[json_lines("b", "in/self")], &options).await.remove(0);
    assert_eq!((code_of(&looped), exit_of(&looped)), ("BR0029", BAD_INPUT), "{looped:?}");
}

#[tokio::test]
async fn a_csv_file_without_any_declared_column_is_refused_by_name_and_the_others_are_read() {
    let world = World::new();
    let feed = feed(json!({
        "name": "a", "table": "bronze.a", "decode": "csv", "source": {"files": {"path": "in", "format": "csv"}},
        "columns": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }));
    world.drop_file("in/1.csv", "id;note\n1;a\n").await;
    world.drop_file("in/2.csv", "id,extra\n2,x\n").await;
    let report = world.run(std::slice::from_ref(&feed)).await.remove(0);
    assert_eq!((report.rows_out, code_of(&report), exit_of(&report)), (1, "BR0007", BAD_INPUT), "{report:?}");
    let message = &report.error.as_ref().unwrap().message;
    assert!(message.contains("in/1.csv") && message.contains("(id, note)") && message.contains("parted by `,`"), "{message}");
    assert_eq!(world.columns("bronze.a", &["id"]).await, [json!([2])]);
}

/// A feed that is asked to tells of each row's file, also of a table that was made without.
#[tokio::test]
async fn a_feed_tells_how_large_a_rows_file_is_and_when_it_was_changed() {
    let world = World::new();
    let plain = json_lines("a", "in");
    world.drop_file("in/1.jsonl", "{\"id\":1}\n").await;
    world.run_one(&plain).await;
    let mut telling = plain.clone();
    let tributary_specs::Source::Files(files) = &mut telling.source else { panic!("files") };
    files.with_metadata = true;
    world.drop_file("in/2.jsonl", "{\"id\":2}\n{\"id\":3}\n{\"id\":\"bad\"}\n").await;
    world.run_one(&telling).await;
    world.drop_file("in/3.jsonl", "{\"id\":4,\"more\":1}\n").await;
    world.run_one(&telling).await;
    let sizes = world.columns("bronze.a", &["id", "_file_size"]).await;
    assert_eq!(sizes, [json!([1, null]), json!([2, 31]), json!([3, 31]), json!([4, 18])]);
    let times = world.columns("bronze.a", &["id", "_file_modified_at"]).await;
    assert_eq!(times.iter().map(|row| row[1].is_string()).collect::<Vec<_>>(), [false, true, true, true]);
    let mut options = world.options();
    options.full_refresh.insert("a".to_owned());
    world.run_with(&[telling], &options).await;
    assert_eq!(world.columns("bronze.a", &["id", "_file_size"]).await[0], json!([1, 9]), "a full refresh tells of all");
}
