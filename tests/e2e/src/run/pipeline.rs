//! The pipeline that people run, with this run's own names in it; for connectors as people run them, with what those lose.

use anyhow::{Result, ensure};

use crate::workload::Profile;

const RETAIL: &str = include_str!("../../../../pipelines/retail-kafka.yml");

/// What is declared otherwise for the hostile connectors: the old rows of customers do not come; the scale of `credit_limit` is not
/// known, so it stays the text that came; times are in milliseconds.
const HOSTILE: [(&str, &str); 4] = [
    ("    replica_identity: full\n", ""),
    (r#"{ name: credit_limit, type: "decimal(12,2)", encoding: unscaled }"#, "{ name: credit_limit, type: string }"),
    ("{ name: seen_at, type: timestamp_ntz, encoding: micros }", "{ name: seen_at, type: timestamp_ntz, encoding: millis }"),
    ("{ name: calls_from, type: long, encoding: micros,", "{ name: calls_from, type: long, encoding: millis,"),
];

/// The text of `pipelines/retail-kafka.yml` for connectors of these names, which are those of their databases too.
pub fn retail(profile: Profile, tag: &str, shop: &str, depot: &str) -> Result<String> {
    // the consumer group is named after the pipeline
    let mut text = replaced(RETAIL, "name: retail\n", &format!("name: retail_{tag}\n"))?;
    text = replaced(&text, "topics: [shop.", &format!("topics: [{shop}."))?;
    text = replaced(&text, "topics: [depot.depot.", &format!("topics: [{depot}.{depot}."))?;
    if profile == Profile::Hostile {
        for (from, to) in HOSTILE {
            text = replaced(&text, from, to)?;
        }
    }
    Ok(text)
}

fn replaced(text: &str, from: &str, to: &str) -> Result<String> {
    ensure!(text.contains(from), "the pipeline has no {from:?} any more");
    Ok(text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use tributary::{Pipeline, Source};

    use super::*;

    #[test]
    fn both_profiles_read_topics_of_their_own_and_differ_in_what_is_declared() {
        let of = |profile| Pipeline::from_yaml(&[("p", &retail(profile, "t", "shop_t", "depot_t").unwrap())]).unwrap();
        let (fidelity, hostile) = (of(Profile::Fidelity), of(Profile::Hostile));
        let topics = fidelity.spec().feeds.iter().flat_map(|feed| match &feed.source {
            Source::Kafka(kafka) => kafka.topics.clone(),
            Source::Files(_) | Source::Custom(_) => Vec::new(),
        });
        assert_eq!(topics.collect::<Vec<_>>(), ["shop_t.public.orders", "shop_t.public.customers", "depot_t.depot_t.inventory"]);
        assert_eq!(fidelity.spec().name, "retail_t");
        assert_eq!(fidelity.spec().silver, hostile.spec().silver);
        assert_ne!(fidelity.spec().feeds[1], hostile.spec().feeds[1]);
    }
}
