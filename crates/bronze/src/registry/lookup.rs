//! Where a feed's schemas are looked up.

use tributary_cdc_decode::{Decoder, Record};
#[cfg(feature = "kafka")]
use tributary_specs::Decode;
use tributary_specs::{Source, SourceFeed};

use crate::Result;
use crate::options::{KafkaOptions, Options};

/// Where a feed's schemas are looked up.
pub(crate) struct Lookup {
    /// The feed's own registry, else that of the settings.
    url: Option<String>,
    options: KafkaOptions,
}

impl Lookup {
    pub(crate) fn of(feed: &SourceFeed, options: &Options) -> Self {
        let own = match &feed.source {
            Source::Kafka(source) => source.registry.clone(),
            Source::Files(_) | Source::Custom(_) => None,
        };
        Self { url: own.or_else(|| options.kafka.registry.clone()), options: options.kafka.clone() }
    }

    /// Teaches the decoder what these records need.
    #[cfg(feature = "kafka")]
    pub(crate) async fn teach(&self, feed: &SourceFeed, decoder: &mut Decoder, records: &[Record<'_>]) -> Result<()> {
        if decoder.missing_schemas(records).is_empty() {
            return Ok(());
        }
        match &self.url {
            Some(url) => super::teach(decoder, records, &*self.options.registries.at(url, &self.options)?).await,
            None if feed.decode == Decode::Avro || all_framed(records) => Err(crate::Error::RegistrySettings {
                reason: format!(
                    "feed {} reads Avro, and no schema registry is named: set `schema_registry`, or the source's `registry`",
                    feed.name
                ),
            }),
            // A few among many are damaged JSON; the decoder quarantines them.
            None => Ok(()),
        }
    }

    #[cfg(not(feature = "kafka"))]
    pub(crate) async fn teach(&self, _: &SourceFeed, _: &mut Decoder, _: &[Record<'_>]) -> Result<()> {
        let _ = (&self.url, &self.options);
        Ok(())
    }
}

/// Whether every value is Avro in a registry's frame.
#[cfg(feature = "kafka")]
fn all_framed(records: &[Record<'_>]) -> bool {
    records.iter().filter_map(|record| record.value).all(|value| value.first() == Some(&0))
}
