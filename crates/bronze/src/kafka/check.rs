//! Does: looks, before a run, at what feeds need of their brokers. Joins no group and reads no record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tributary_lake::Lake;
use tributary_specs::{Source, SourceFeed};

use super::{Client, Cluster, Limits, Patience, Place, Wanted, places_of, route};
use crate::options::Options;
use crate::plan::{self, Group, Start};
use crate::registry::Registry;
use crate::{Error, KafkaFinding, Result, positions};

/// How long a broker may take over an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a refusal to read may take to come.
const READING: Duration = Duration::from_millis(1500);

/// Looks at the brokers of these feeds, their topics, whether they may be read, and whether what the tables have not seen is still
/// there. One finding a broker, one a feed and one a schema registry.
pub(crate) async fn check(lake: &Lake, feeds: &[SourceFeed], options: &Options) -> Vec<KafkaFinding> {
    let mut findings = Vec::new();
    for group in plan::groups(feeds) {
        if let Group::Kafka(members) = group {
            let members: Vec<&SourceFeed> = members.into_iter().map(|index| &feeds[index]).collect();
            findings.extend(group_findings(lake, &members, options).await);
        }
    }
    findings.extend(registry_findings(feeds, options).await);
    findings
}

/// One a registry that feeds name, or leave to the settings.
async fn registry_findings(feeds: &[SourceFeed], options: &Options) -> Vec<KafkaFinding> {
    let of = |feed: &SourceFeed| match &feed.source {
        Source::Kafka(source) => source.registry.clone().or_else(|| options.kafka.registry.clone()),
        Source::Files(_) | Source::Custom(_) => None,
    };
    let mut findings = Vec::new();
    for url in feeds.iter().filter_map(of).collect::<BTreeSet<_>>() {
        let outcome = match Registry::new(&url, options.kafka.registry_auth.as_deref(), PATIENCE) {
            Ok(registry) => registry.check().await.map(|()| "reachable".to_owned()),
            Err(error) => Err(error),
        };
        findings.push(KafkaFinding { subject: format!("registry {}", without_credentials(&url)), outcome });
    }
    findings
}

/// Credentials do not belong into an address, and are not shown where they are in one.
fn without_credentials(url: &str) -> String {
    match url.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@'))) {
        Some((scheme, Some((_, host)))) => format!("{scheme}://{host}"),
        _ => url.to_owned(),
    }
}

async fn group_findings(lake: &Lake, feeds: &[&SourceFeed], options: &Options) -> Vec<KafkaFinding> {
    let Some(first) = feeds.first() else { return Vec::new() };
    let (subject, answer) = match Cluster::of(first, &options.kafka) {
        Ok(cluster) => (format!("broker {}", cluster.bootstrap), answers(&cluster, feeds, options).await),
        Err(error) => (format!("feed {}", first.name), Err(error)),
    };
    let (client, wanted, there) = match answer {
        Ok(answer) => answer,
        Err(error) => return vec![KafkaFinding { subject, outcome: Err(error) }],
    };
    let mut findings = vec![KafkaFinding { subject, outcome: Ok("reachable".to_owned()) }];
    let mut routes = route(&wanted, &there, &client.cluster.bootstrap);
    for (index, feed) in feeds.iter().enumerate() {
        let stopped = routes.stopped.iter().position(|(of, _)| *of == index).map(|at| routes.stopped.swap_remove(at).1);
        let topics = routes.topics.remove(&index).unwrap_or_default();
        let outcome = match stopped {
            Some(error) => Err(error),
            None => readable(lake, &client, feed, &topics, options).await,
        };
        findings.push(KafkaFinding { subject: format!("feed {}", feed.name), outcome });
    }
    findings
}

type Answer = (Client, Vec<Wanted>, BTreeMap<String, i32>);

/// The topics that the broker has of those that the feeds want.
async fn answers(cluster: &Cluster, feeds: &[&SourceFeed], options: &Options) -> Result<Answer> {
    let mut wanted = Vec::new();
    for feed in feeds {
        if let Source::Kafka(source) = &feed.source {
            wanted.push(Wanted::of(feed, source)?);
        }
    }
    let name = feeds.first().map_or("", |feed| feed.name.as_str());
    let client = Client::open(cluster, Limits::new(64 << 20, 1), name, options)?;
    let exact = wanted.iter().flat_map(Wanted::exact).map(str::to_owned).collect();
    let there = client.topics(exact, wanted.iter().any(Wanted::is_open), Patience::new(PATIENCE)).await?;
    Ok((client, wanted, there))
}

/// Whether a feed's partitions may be read from where the table is.
async fn readable(lake: &Lake, client: &Client, feed: &SourceFeed, topics: &BTreeMap<String, i32>, options: &Options) -> Result<String> {
    let places: Vec<Place> = topics.iter().flat_map(places_of).collect();
    let bounds = client.bounds(places.clone(), Patience::new(PATIENCE)).await?;
    let table = lake.table(&feed.table).await.map_err(|source| Error::lake(&feed.table, "opening", source))?;
    let mut left = 0_u64;
    let mut passed = 0_u64;
    for (place, bounds) in &bounds {
        let position = positions::read(table.as_ref(), &positions::of_topic(&feed.name, &place.topic, place.partition)).await?;
        let at = match plan::start(position, *bounds, options.on_gap) {
            Start::At(at) => at,
            Start::Over { at, .. } => {
                passed += 1;
                at
            }
            Start::Missing { from, until } => {
                return Err(Error::gap(feed, place.to_string(), position.unwrap_or_default(), *bounds, from..until));
            }
        };
        left += u64::try_from(bounds.end - at).unwrap_or_default();
    }
    // a right to ask is not yet one to read: that shows when records are asked for
    client.begin(bounds.iter().map(|(place, bounds)| (place.clone(), bounds.end)).collect());
    tokio::time::sleep(READING).await;
    client.end(places);
    if let Some(trouble) = client.shared.trouble().filter(|trouble| trouble.refused) {
        let bootstrap = client.cluster.bootstrap.clone();
        return Err(Error::KafkaRefused { bootstrap, doing: format!("reading topics of feed {}", feed.name), reason: trouble.reason });
    }
    let over = if passed > 0 { format!("; a gap is passed over in {passed} partitions") } else { String::new() };
    Ok(format!("{} topics with {} partitions can be read, {left} records to come{over}", topics.len(), bounds.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_credentials() {
        assert_eq!(without_credentials("https://me:hunter2@registry:8081/api"), "https://registry:8081/api");
        assert_eq!(without_credentials("http://registry:8081"), "http://registry:8081");
    }
}
