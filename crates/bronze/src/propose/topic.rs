//! Samples from a topic.

use std::collections::BTreeSet;
use std::sync::Arc;

use tributary_cdc_decode::{Record, form_of_avro, propose, shape};
use tributary_lake::object_store::memory::InMemory;
use tributary_specs::{Decode, KafkaSource, SourceFeed};

use super::{feed_of, name_of, none};
use crate::files::DataRoot;
use crate::kafka::{Chunk, Client, Cluster, Limits, Next, Patience, Piece, Place, Target, places_of};
use crate::lane::decoder;
use crate::options::{KafkaOptions, Options};
use crate::registry::Lookup;
use crate::{Error, Result};

/// A feed for a topic's first records, as an item of a pipeline's `feeds:`. No group is joined.
///
/// # Errors
/// Those of reading a topic and of a schema registry; [`Error::NoProposal`] when there is no row.
pub async fn propose_from_topic(topic: &str, kafka: &KafkaOptions, records_max: usize) -> Result<String> {
    let mut options = Options::new(DataRoot::wrap(Arc::new(InMemory::new()), ""));
    options.kafka = kafka.clone();
    let source = KafkaSource {
        topics: vec![topic.to_owned()],
        bootstrap: kafka.bootstrap.clone(),
        registry: kafka.registry.clone(),
        ..KafkaSource::default()
    };
    let name = name_of(topic);
    let feed = feed_of(&name, source.into(), Decode::Avro);
    let chunks = read(&feed, topic, &options, records_max).await?;
    let headers: Vec<_> = chunks.iter().map(Chunk::headers).collect();
    let records: Vec<Record<'_>> = chunks.iter().zip(&headers).flat_map(|(chunk, headers)| chunk.records(headers)).collect();
    let from = format!("topic `{topic}`");
    let Some(mut shape) = shape(&records) else { return Err(none(&from, "none of its first records is a row")) };
    let lookup = Lookup::of(&feed, &options);
    let mut reading_schemas = decoder(&feed)?;
    lookup.teach(&feed, &mut reading_schemas, &records).await?;
    shape.decode = form_of_avro(&reading_schemas, &records).unwrap_or(shape.decode);
    let feed = SourceFeed { decode: shape.decode, ..feed };
    let mut decoding = decoder(&feed)?;
    lookup.teach(&feed, &mut decoding, &records).await?;
    let proposal = propose(shape, &records, &mut decoding);
    Ok(proposal.to_yaml(&name, &feed.table.to_string(), &feed.source))
}

const DOING: &str = "reading samples";

/// The first records of each partition, as many as make `records_max` together.
async fn read(feed: &SourceFeed, topic: &str, options: &Options, records_max: usize) -> Result<Vec<Chunk>> {
    let cluster = Cluster::of(feed, &options.kafka)?;
    let client = Client::open(&cluster, Limits::new(64 << 20, 1), &feed.name, options)?;
    let patience = options.kafka.patience;
    let topics = client.topics(vec![topic.to_owned()], false, Patience::new(patience)).await?;
    let Some(partitions) = topics.get(topic) else {
        return Err(Error::TopicMissing { feed: feed.name.clone(), topic: topic.to_owned(), bootstrap: cluster.bootstrap.clone() });
    };
    let bounds = client.bounds(places_of((&topic.to_owned(), partitions)), Patience::new(patience)).await?;
    let share = i64::try_from(records_max.div_ceil(bounds.len().max(1))).unwrap_or(i64::MAX);
    let target = |(place, bounds): (Place, crate::source::PartitionBounds)| Target {
        place,
        from: bounds.earliest,
        until: bounds.end.min(bounds.earliest.saturating_add(share)),
    };
    let targets: Vec<Target> = bounds.into_iter().map(target).filter(|target| target.from < target.until).collect();
    let mut open: BTreeSet<Place> = targets.iter().map(|target| target.place.clone()).collect();
    client.begin(targets.iter().map(|target| (target.place.clone(), target.from)).collect());
    let mut pieces = client.read(targets);
    let mut chunks = Vec::new();
    while !open.is_empty() {
        match pieces.next(patience).await {
            Next::Piece(Piece::Records(chunk)) => chunks.push(chunk),
            Next::Piece(Piece::Ended(place)) => drop(open.remove(&place)),
            Next::Piece(Piece::Failed { reason, refused: true, .. }) => return Err(client.refused(DOING, &reason)),
            Next::Piece(Piece::Failed { reason, .. }) => return Err(client.away(DOING, patience, &reason)),
            Next::Hurry => {}
            Next::Silence | Next::Gone => return Err(client.away(DOING, patience, "records that are there do not come")),
        }
    }
    Ok(chunks)
}
