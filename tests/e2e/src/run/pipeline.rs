//! The pipeline that people run, with this run's own names in it; for connectors as people run them, with what those lose.

use std::path::Path;

use anyhow::Result;

use super::definition::{Definition, sql_of};
use crate::workload::Profile;

/// What is declared otherwise for the hostile connectors: the old rows of customers do not come; the scale of `credit_limit` is not
/// known, so it stays the text that came; times are in milliseconds.
const HOSTILE: [(&str, &str); 5] = [
    ("  replicaIdentity => 'full',\n", ""),
    ("credit_limit DECIMAL(12,2)", "credit_limit STRING"),
    ("credit_limit unscaled, ", ""),
    ("seen_at micros", "seen_at millis"),
    ("calls_from micros", "calls_from millis"),
];

/// Silver and gold of `dlt_pipelines/retail` over the topics of `dlt_pipelines/retail_kafka`, for connectors of these names, which are
/// those of their databases too.
pub fn retail(profile: Profile, tag: &str, shop: &str, depot: &str) -> Result<Definition> {
    let pipelines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dlt_pipelines");
    let mut files = sql_of(&pipelines.join("retail"))?;
    files.retain(|(name, _)| name.starts_with("silver_") || name.starts_with("gold_"));
    files.extend(sql_of(&pipelines.join("retail_kafka"))?);
    // the consumer group is named after the pipeline, which is named after its folder
    let mut definition = Definition::Sql { name: format!("retail_{tag}"), files };
    for (parameter, value) in [("${shop_prefix}", shop), ("${depot_prefix}", depot), ("${depot_database}", depot)] {
        definition = definition.replaced(parameter, value)?;
    }
    if profile == Profile::Hostile {
        for (from, to) in HOSTILE {
            definition = definition.replaced(from, to)?;
        }
    }
    Ok(definition)
}

#[cfg(test)]
mod tests {
    use tributary::{Encoding, Source};

    use super::*;

    fn of(profile: Profile) -> tributary::Pipeline {
        retail(profile, "t", "shop_t", "depot_t").unwrap().pipeline().unwrap()
    }

    #[test]
    fn both_profiles_read_topics_of_their_own_and_differ_in_what_is_declared() {
        let (fidelity, hostile) = (of(Profile::Fidelity), of(Profile::Hostile));
        let topics = fidelity.spec().feeds.iter().flat_map(|feed| match &feed.source {
            Source::Kafka(kafka) => kafka.topics.clone(),
            Source::Files(_) | Source::Custom(_) => Vec::new(),
        });
        assert_eq!(topics.collect::<Vec<_>>(), ["shop_t.public.customers", "depot_t.depot_t.inventory", "shop_t.public.orders"]);
        assert_eq!(fidelity.spec().name, "retail_t");
        assert_eq!((fidelity.spec().silver.len(), fidelity.spec().gold.len()), (4, 3));
        assert_eq!(fidelity.spec().silver, hostile.spec().silver);
        assert_eq!(fidelity.spec().gold, hostile.spec().gold);
        assert_eq!(fidelity.spec().feeds[1..], hostile.spec().feeds[1..]);
        let encoding = |pipeline: &tributary::Pipeline, name: &str| {
            pipeline.spec().feeds[0].columns.iter().find(|column| column.name == name).and_then(|column| column.encoding)
        };
        for (name, declared, otherwise) in [
            ("credit_limit", Some(Encoding::Unscaled), None),
            ("seen_at", Some(Encoding::Micros), Some(Encoding::Millis)),
            ("calls_from", Some(Encoding::Micros), Some(Encoding::Millis)),
        ] {
            assert_eq!((encoding(&fidelity, name), encoding(&hostile, name)), (declared, otherwise), "{name}");
        }
        assert_ne!(fidelity.spec().feeds[0].replica_identity, hostile.spec().feeds[0].replica_identity);
    }

    #[test]
    fn what_is_written_is_read_back_as_the_same_pipeline() {
        let folder = std::env::temp_dir().join(format!("retail-{}", std::process::id()));
        let definition = retail(Profile::Hostile, "t", "shop_t", "depot_t").unwrap();
        let read = Definition::read(&definition.write(&folder).unwrap()).unwrap().pipeline().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read.spec(), of(Profile::Hostile).spec());
    }
}
