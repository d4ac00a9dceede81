//! A feed that is built anew: one commit takes all rows of its table away, brings those that its source holds now, and sets the
//! positions to these (B6).
//!
//! - Until that commit the table is as it was, whatever fails or is killed; after it a run goes on as from any other.
//! - The whole source is read for it, beyond the bounds of a batch: no reader finds the table empty, or half filled.
//! - What the table was made of and the source no longer has is named before anything is written, and lost only by choice.
//! - A position that the commit does not bring is set back to [`NOTHING`], from which its partition or file is read as a new one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::TryStreamExt;
use tributary_lake::arrow::array::AsArray;
use tributary_lake::arrow::datatypes::{Int32Type, Int64Type};
use tributary_lake::{Commit, DataFile, Operation, Progress, Reads, Table, TableLayout};
use tributary_specs::{Column, Decode, Source, SourceFeed};

use crate::batch::{LaneBatch, Position};
use crate::cells::cell;
use crate::lane::{Lane, decoder, grown};
use crate::ledger::{Entry, Ledger, Writes};
use crate::positions::{self, NOTHING};
use crate::reading::Reading;
use crate::resume::lowest;
use crate::{Error, Result};

/// A table on its way to being built anew.
#[derive(Debug, Clone)]
pub(crate) struct Anew {
    /// The columns that rows are decoded to: the table's, in the types that are declared now.
    pub columns: Vec<Column>,
    /// What the table was made of.
    pub before: Ledger,
    /// How the table is to lie, where that is otherwise than it does.
    pub lies: Option<TableLayout>,
}

impl Anew {
    pub(crate) fn of(feed: &SourceFeed, table: &Table, before: Ledger) -> Result<Self> {
        let declared = TableLayout { partition_by: feed.partition_by.clone(), cluster_by: feed.cluster_by.clone() };
        Ok(Self { columns: columns(feed, table.columns())?, before, lies: table.lies_otherwise(declared) })
    }

    /// What of the table's files no file that was read holds.
    fn lost_files(&self, batch: &LaneBatch) -> u64 {
        self.before.contents().filter(|id| !batch.holds(id)).count() as u64
    }
}

/// The columns of a table with those types that its declaration has now; before-images have the types of their columns.
fn columns(feed: &SourceFeed, table: &[Column]) -> Result<Vec<Column>> {
    let declared = |column: &Column| match feed.columns.iter().find(|declared| declared.name == column.name) {
        Some(declared) => Column { data_type: declared.data_type.with_fields_of(&column.data_type), ..column.clone() },
        None => column.clone(),
    };
    if feed.decode == Decode::Raw {
        return Ok(table.to_vec());
    }
    let known = table.iter().filter(|column| !column.name.starts_with('_')).map(declared).collect();
    let columns = decoder(&SourceFeed { columns: known, ..feed.clone() })?.columns();
    Ok(grown(table, &columns).unwrap_or_else(|| table.to_vec()))
}

/// The positions that a table which is built anew has of partitions; none where it is not.
pub(crate) async fn recorded(lane: &Lane) -> Result<BTreeMap<String, i64>> {
    match (&lane.anew, &lane.bronze) {
        (Some(_), Some(table)) => positions::of_feed(table, &lane.feed.name).await,
        _ => Ok(BTreeMap::new()),
    }
}

/// What the replacing commit writes of positions: those of what it brings, and all others, as they are `recorded`, set back.
pub(crate) fn writes(anew: &Anew, recorded: BTreeMap<String, i64>, entries: &[Entry], brought: &[Position]) -> Writes {
    let mut writes = anew.before.replaced_by(entries);
    let brought = brought.iter();
    writes.progress.extend(brought.map(|at| Progress { app_id: at.app_id.clone(), expected: at.bronze, version: at.next }));
    let said: BTreeSet<String> = writes.progress.iter().map(|progress| progress.app_id.clone()).collect();
    let others = recorded.into_iter().filter(|(app_id, position)| *position > NOTHING && !said.contains(app_id));
    writes.progress.extend(others.map(|(app_id, position)| Progress { app_id, expected: Some(position), version: NOTHING }));
    writes
}

/// `commit` as the one that makes its rows the only ones, in place of the live `files`.
pub(crate) fn replacing(anew: &Anew, files: Vec<DataFile>, commit: Commit) -> Commit {
    let layout = anew.lies.clone();
    Commit { layout, operation: Operation::Overwrite, removes: files, reads: Reads::WholeTable, rewinds: true, replaces: true, ..commit }
}

/// Whether a table that mirrors its folder would lose rows of files that are there and cannot be read.
pub(crate) fn must_wait(lane: &Lane, batch: &LaneBatch) -> bool {
    lane.feed.mirrors() && !lane.may_lose() && lane.anew.as_ref().is_some_and(|anew| anew.lost_files(batch) > 0)
}

/// Refuses to leave out files that the table was made of, unless that is meant; then it is noted.
pub(crate) fn ensure_no_file_is_lost(lane: &Lane, batch: &mut LaneBatch) -> Result<()> {
    let Some(anew) = &lane.anew else { return Ok(()) };
    match anew.lost_files(batch) {
        0 => Ok(()),
        lost => {
            let what = format!("{lost} of the {} files that it was made of are not there any more as they were", anew.before.files());
            lose(lane, what).map(|remark| _ = batch.remarks.insert(remark))
        }
    }
}

/// Refuses to leave out records that the table holds and its source does not have any more, unless that is meant; then it is noted.
pub(crate) async fn ensure_no_record_is_lost(lane: &mut Lane, readings: &[Reading]) -> Result<()> {
    let (Some(_), Some(table)) = (&lane.anew, &lane.bronze) else { return Ok(()) };
    let starts = readings.iter().map(|reading| ((reading.topic.as_deref().map(str::to_owned), reading.partition), reading.position.next));
    let by_topic = matches!(lane.feed.source, Source::Kafka(_));
    let lost = lost_records(&first_records(table, &lane.feed, by_topic).await?, &starts.collect());
    if let Some((first, more)) = lost.split_first() {
        let more = if more.is_empty() { String::new() } else { format!(", and so of {} more partitions", more.len()) };
        let remark = lose(lane, format!("{first}{more}"))?;
        lane.tally.remarks.insert(remark);
    }
    Ok(())
}

/// That what a table was made of is lost, as an error or, where that was accepted, as a remark.
fn lose(lane: &Lane, what: String) -> Result<String> {
    match lane.may_lose() {
        true => Ok(format!("built anew without what its source no longer has: {what}")),
        false => Err(Error::HistoryShorter { table: lane.feed.table.clone(), what }),
    }
}

/// A partition, of a topic where its source has topics.
type Partition = (Option<String>, i32);

/// What the table holds before the place where its source begins, a line a partition.
fn lost_records(held: &BTreeMap<Partition, i64>, starts: &HashMap<Partition, i64>) -> Vec<String> {
    let lost = held.iter().filter_map(|(partition, first)| {
        let place = match partition {
            (Some(topic), partition) => format!("topic `{topic}`, partition {partition}"),
            (None, partition) => format!("partition {partition}"),
        };
        match starts.get(partition) {
            Some(start) if first >= start => None,
            Some(start) => Some(format!("{place}: it holds records from {first} on, and its source begins at {start}")),
            None => Some(format!("{place}: it holds records from {first} on, and its source does not have the partition")),
        }
    });
    lost.collect()
}

/// The first record that the table holds of each partition. Only files are read whose statistics do not tell.
async fn first_records(table: &Table, feed: &SourceFeed, by_topic: bool) -> Result<BTreeMap<Partition, i64>> {
    let failed = |source| Error::lake(table.name(), "reading the first positions", source);
    let names = match feed.decode {
        Decode::Raw => ["topic", "partition", "offset"],
        Decode::Debezium | Decode::DebeziumFlattened | Decode::Json | Decode::Csv | Decode::Avro => ["_topic", "_partition", "_offset"],
    };
    let mut first: BTreeMap<Partition, i64> = BTreeMap::new();
    if names.iter().any(|name| !table.columns().iter().any(|column| column.name == *name)) {
        return Ok(first);
    }
    let mut keep = |partition: Partition, offset: i64| {
        let known = first.entry(partition).or_insert(offset);
        *known = offset.min(*known);
    };
    for file in table.files().await.map_err(failed)? {
        if let Some((topic, partition, offset)) = lowest(&file, names) {
            keep((by_topic.then_some(topic), partition), offset);
            continue;
        }
        let mut stream = table.read_file(&file, Some(&names.map(str::to_owned))).await.map_err(failed)?;
        while let Some(batch) = stream.try_next().await.map_err(|source| failed(source.into()))? {
            let of = |name: &str| batch.column_by_name(name);
            let (Some(topics), Some(partitions), Some(offsets)) = (
                of(names[0]).and_then(|column| column.as_string_opt::<i32>()),
                of(names[1]).and_then(|column| column.as_primitive_opt::<Int32Type>()),
                of(names[2]).and_then(|column| column.as_primitive_opt::<Int64Type>()),
            ) else {
                continue;
            };
            for row in 0..batch.num_rows() {
                if let (Some(partition), Some(offset)) = (cell(partitions, row), cell(offsets, row)) {
                    keep((by_topic.then(|| cell(topics, row).unwrap_or_default().to_owned()), partition), offset);
                }
            }
        }
    }
    Ok(first)
}

/// Why a feed cannot be built anew by this run, where it cannot.
pub(crate) fn refusal(feed: &SourceFeed, continuous: bool, ranged: bool) -> Option<Error> {
    let reason = match (continuous, ranged) {
        (true, _) => "a full refresh reads its topics from the start by one process: run it once without --stream",
        (_, true) => "a full refresh reads all of its topics, and not the offsets that were asked for: leave these out",
        (false, false) => return None,
    };
    Some(Error::Feed { feed: feed.name.clone(), reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(topic: Option<&str>, partition: i32) -> Partition {
        (topic.map(str::to_owned), partition)
    }

    #[test]
    fn what_lies_before_the_sources_first_record_is_lost_and_named_by_its_partition() {
        let held = BTreeMap::from([(at(Some("t"), 0), 3), (at(Some("t"), 1), 3), (at(Some("u"), 0), 0), (at(None, 2), 5)]);
        let starts = HashMap::from([(at(Some("t"), 0), 3), (at(Some("t"), 1), 4), (at(None, 2), 0)]);
        let lost = lost_records(&held, &starts);
        assert_eq!(lost.len(), 2, "{lost:?}");
        assert!(lost[0].starts_with("topic `t`, partition 1: it holds records from 3 on, and its source begins at 4"), "{lost:?}");
        assert!(lost[1].starts_with("topic `u`, partition 0: ") && lost[1].ends_with("does not have the partition"), "{lost:?}");
    }
}
