//! What a person looks at before the first run over Kafka.

use tributary_lake::Lake;
use tributary_specs::SourceFeed;

use crate::{Error, Options};

/// What was found of a broker, or of a feed's topics.
#[derive(Debug)]
pub struct KafkaFinding {
    /// `broker …`, `feed …` or `registry …`.
    pub subject: String,
    /// What a run would do with it, or why it would stop.
    pub outcome: Result<String, Error>,
}

/// Looks at the brokers of these feeds: whether they answer, whether the topics are there and may be read, and whether what the
/// tables have not seen is still there; and at their schema registries. Joins no group and reads no record. Feeds that read no topics are passed over.
pub async fn kafka_check(lake: &Lake, feeds: &[SourceFeed], options: &Options) -> Vec<KafkaFinding> {
    #[cfg(feature = "kafka")]
    return crate::kafka::check(lake, feeds, options).await;
    #[cfg(not(feature = "kafka"))]
    {
        let _ = (lake, options);
        let kafka = feeds.iter().filter(|feed| matches!(feed.source, tributary_specs::Source::Kafka(_)));
        kafka
            .map(|feed| KafkaFinding {
                subject: format!("feed {}", feed.name),
                outcome: Err(Error::KafkaLeftOut { feed: feed.name.clone() }),
            })
            .collect()
    }
}
