//! Looks, without writing, at what of its files a run would take up. Topics and record sources are not asked.

use std::collections::BTreeMap;

use tributary_lake::Lake;
use tributary_specs::{SourceFeed, TableName};

use crate::files::{Listed, Listing, list};
use crate::ledger::Ledger;
use crate::options::Options;
use crate::plan::{self, Group};
use crate::positions::{self, NOTHING};
use crate::{Error, Result};

/// What a run would find for one feed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedLook {
    /// Into the feeds that were looked at.
    pub index: usize,
    /// Whether the table is built anew because files of the folder that it mirrors have changed or gone.
    pub mirrors: bool,
    /// Of a feed that is built anew: paths of taken files at which there is none now.
    pub gone: u64,
    /// Files that are new or changed since they were taken, all files of a feed that is built anew; a copy under another name is found out only by reading it.
    pub files: Vec<DueFile>,
    /// Files that were changed too short a time ago to be taken.
    pub settling: u64,
    /// Of topics and record sources: the positions that the table has reached, by their names.
    pub positions: BTreeMap<String, i64>,
    /// What cannot be reached, as the run would say it.
    pub faults: Vec<String>,
}

/// A file that a run would take up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueFile {
    /// The feed's path, then the file's own below it.
    pub name: String,
    /// Bytes as stored.
    pub size: u64,
    /// When it was changed: microseconds since 1970.
    pub modified_us: i64,
}

/// Looks at the feeds that are chosen by the options, in their order.
///
/// # Errors
/// [`Error::Lake`] when a table of theirs cannot be read.
pub async fn look(lake: &Lake, feeds: &[SourceFeed], options: &Options) -> Result<Vec<FeedLook>> {
    let mut looks = Vec::new();
    for group in plan::groups(feeds) {
        let listed = match &group {
            Group::Files(group) => {
                let lead = group.members.first().map_or("", |index| feeds[*index].name.as_str());
                Some(listing(group, lead, options).await)
            }
            Group::Kafka(_) | Group::Custom(_) => None,
        };
        for index in group.members().into_iter().filter(|index| options.runs(&feeds[*index])) {
            let mut look = FeedLook { index, ..FeedLook::default() };
            let feed = &feeds[index];
            match (&group, &listed) {
                (Group::Files(group), Some(Ok(Listing { files, faults }))) => {
                    let mut ledger = ledger(lake, feed, options).await?;
                    let now_us = lake.clock().now().timestamp_micros();
                    let full = options.full_refresh.contains(&feed.name);
                    let still = faults.is_empty() && !files.iter().any(|file| group.settling(file, now_us));
                    let differs = feed.mirrors() && plan::differs(&ledger, files);
                    let waits = differs && !still && !full;
                    look.mirrors = differs && !waits;
                    if look.mirrors || full {
                        look.gone = ledger.paths_besides(&files.iter().map(Listed::path_mark).collect());
                        ledger = ledger.begun_anew();
                    }
                    for file in files.iter().filter(|file| file.size > 0 && plan::due(&ledger, file)) {
                        if group.settling(file, now_us) {
                            look.settling += 1;
                        } else if !waits {
                            look.files.push(DueFile { name: file.name.clone(), size: file.size, modified_us: file.modified_us });
                        }
                    }
                    look.faults = faults.iter().map(|fault| tributary_fault::chain(fault)).collect();
                }
                (_, Some(Err(error))) => look.faults = vec![tributary_fault::chain(error)],
                _ => look.positions = positions(lake, feed).await?,
            }
            looks.push(look);
        }
    }
    looks.sort_by_key(|look| look.index);
    Ok(looks)
}

async fn listing(group: &plan::FileGroup, lead: &str, options: &Options) -> Result<Listing> {
    let place = options.data.place(&group.path)?;
    list(&options.data, &place, lead, &group.path, &group.pattern(lead)?).await
}

async fn ledger(lake: &Lake, feed: &SourceFeed, options: &Options) -> Result<Ledger> {
    let table = table(lake, &feed.table).await?;
    Ledger::load(&feed.name, table.as_ref(), options.files_as_positions_max).await
}

async fn table(lake: &Lake, name: &TableName) -> Result<Option<tributary_lake::Table>> {
    lake.table(name).await.map_err(|source| Error::lake(name, "opening", source))
}

/// Where a feed's partitions are.
async fn positions(lake: &Lake, feed: &SourceFeed) -> Result<BTreeMap<String, i64>> {
    let Some(table) = table(lake, &feed.table).await? else { return Ok(BTreeMap::new()) };
    let mut found = BTreeMap::new();
    for (app_id, position) in positions::of_feed(&table, &feed.name).await?.into_iter().filter(|(_, position)| *position > NOTHING) {
        let place = positions::place(&app_id, &feed.name).to_owned();
        found.insert(place, position);
    }
    Ok(found)
}
