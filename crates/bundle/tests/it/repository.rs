//! The repository's own bundle.

use std::collections::BTreeMap;
use std::path::Path;

use tributary_bundle::{Action, Loaded, Target, find, load};

fn repository(target: Option<&str>) -> Loaded {
    let root = find(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("a bundle around this crate");
    load(&root, target, &BTreeMap::new())
}

#[test]
fn the_repositorys_bundle_is_sound_for_every_target() {
    for target in ["dev", "prod"] {
        let loaded = repository(Some(target));
        let errors: Vec<String> = loaded.faults.iter().filter(|fault| fault.is_error()).map(ToString::to_string).collect();
        assert_eq!(errors, Vec::<String>::new(), "{target}");
        assert_eq!(loaded.bundle.pipelines.keys().collect::<Vec<_>>(), ["gym", "gym_kafka", "lakeflow", "retail", "retail_kafka"]);
        assert_eq!(loaded.bundle.jobs.keys().collect::<Vec<_>>(), ["gym_daily", "lakeflow_demo", "retail_hourly"]);
        let tasks = loaded.bundle.jobs.values().flat_map(|job| &job.tasks);
        for task in tasks {
            let Action::Pipeline { pipeline: Target::Resource(key), .. } = &task.action else { panic!("{task:?}") };
            assert!(loaded.bundle.pipelines[key].spec.is_some());
        }
    }
    assert_eq!(repository(None).bundle.target, "dev");
}

#[test]
fn each_pipeline_has_everything_it_reads() {
    let loaded = repository(None);
    let counts = |key: &str| {
        let spec = loaded.bundle.pipelines[key].spec.as_ref().unwrap();
        (spec.feeds.len(), spec.silver.len(), spec.gold.len(), spec.external.len())
    };
    assert_eq!(counts("retail"), (3, 4, 3, 0));
    assert_eq!(counts("retail_kafka"), (3, 4, 3, 0));
    assert_eq!(counts("lakeflow"), (3, 3, 1, 0));
    assert_eq!((loaded.bundle.pipelines["retail"].catalog.as_deref(), counts("gym").3), (Some("main"), 0));
}

#[test]
fn over_files_and_over_topics_retail_has_the_same_silver_and_gold() {
    let loaded = repository(None);
    let spec = |key: &str| loaded.bundle.pipelines[key].spec.as_ref().unwrap();
    let (files, topics) = (spec("retail"), spec("retail_kafka"));
    assert_eq!((&files.silver, &files.gold), (&topics.silver, &topics.gold));
    let tables = |key: &str| spec(key).feeds.iter().map(|feed| feed.table.to_string()).collect::<Vec<_>>();
    assert_eq!(tables("retail"), tables("retail_kafka"));
}

#[test]
fn over_files_and_over_topics_the_gym_differs_in_its_multiplexed_table_alone() {
    let loaded = repository(None);
    let spec = |key: &str| loaded.bundle.pipelines[key].spec.as_ref().unwrap();
    let (files, topics) = (spec("gym"), spec("gym_kafka"));
    let others =
        |key: &str| spec(key).silver.iter().filter(|silver| silver.table.name != "kafka_multiplex_bz").cloned().collect::<Vec<_>>();
    assert_eq!((others("gym"), &files.gold), (others("gym_kafka"), &topics.gold));
    let columns =
        |key: &str| spec(key).silver.iter().find(|silver| silver.table.name == "kafka_multiplex_bz").map(|silver| silver.schema.clone());
    assert!(columns("gym").is_some_and(|columns| columns.len() == 10) && columns("gym") == columns("gym_kafka"));
}
