//! One feed during a run: its tables as last seen, its ledgers and its decoder.

use std::collections::BTreeMap;

use tributary_cdc_decode::{Decoded, Decoder, Record, Resume};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{CommitOutcome, Lake, Table};
use tributary_specs::{Column, DataType, SourceFeed, TableName, TableSpec};

use crate::anew::Anew;
use crate::declaration::{self, Differences};
use crate::files::Listed;
use crate::ledger::Ledger;
use crate::options::Options;
use crate::plan::{self, Topics};
use crate::registry::Lookup;
use crate::tally::Tally;
use crate::widen::widen;
use crate::{Error, Result, batch, events, file_columns, quarantine, resume, unshown};

/// A column every bronze table has.
const INGESTED_AT: &str = "_ingested_at";

/// One feed during a run.
pub(crate) struct Lane {
    pub feed: SourceFeed,
    pub topics: Topics,
    pub quarantine_name: TableName,
    pub bronze: Option<Table>,
    pub quarantine: Option<Table>,
    /// What bronze holds.
    pub taken: Ledger,
    /// What the quarantine was last committed with.
    pub parked: Ledger,
    pub decoder: Decoder,
    /// Whether quarantine and decoder are where the tables are; a run with nothing new never needs it.
    ready: bool,
    /// The table is to be built anew by the next commit.
    pub anew: Option<Anew>,
    accepts_shorter_history: bool,
    /// A file that is there could not be taken as it is.
    pub left_files: bool,
    /// The folder that the table mirrors is looked at again by the next run.
    pub waits: bool,
    files_as_positions_max: usize,
    /// Bytes of the longest record.
    pub record_bytes_max: usize,
    registry: Lookup,
    pub tally: Tally,
    /// Lost races since the last commit.
    pub attempts: u32,
}

impl Lane {
    pub(crate) async fn open(lake: &Lake, feed: &SourceFeed, options: &Options) -> Result<Self> {
        let mut lane = Self {
            topics: Topics::of(feed),
            quarantine_name: options.quarantine_of(&feed.name),
            bronze: None,
            quarantine: None,
            taken: Ledger::default(),
            parked: Ledger::default(),
            decoder: decoder(feed)?,
            ready: false,
            anew: None,
            accepts_shorter_history: options.accept_shorter_history,
            left_files: false,
            waits: false,
            files_as_positions_max: options.files_as_positions_max,
            record_bytes_max: options.record_bytes_max.max(1),
            registry: Lookup::of(feed, options),
            tally: Tally::default(),
            attempts: 0,
            feed: feed.clone(),
        };
        lane.reload(lake).await?;
        lane.tally.version_from = lane.bronze.as_ref().map(Table::version);
        lane.tally.version_to = lane.tally.version_from;
        Ok(lane)
    }

    /// Whether a file may hold what the table is to take.
    pub(crate) fn wants(&self, file: &Listed) -> bool {
        !self.waits && plan::due(&self.taken, file)
    }

    /// Whether what the table was made of may be left out. What is gone from its folder is, where it mirrors that; not what is there and
    /// cannot be read.
    pub(crate) fn may_lose(&self) -> bool {
        self.accepts_shorter_history || (self.feed.mirrors() && !self.left_files)
    }

    /// Leaves a table that mirrors its folder as it is, for the next run.
    pub(crate) fn wait(&mut self) {
        if let Some(anew) = self.anew.take() {
            self.taken = anew.before;
        }
        self.waits = true;
        self.tally
            .remarks
            .insert("files of its folder have changed or gone, and not all of them can be read yet: left for the next run".to_owned());
    }

    /// Has the next commit build the table anew, where there is one, for a reason.
    pub(crate) fn begin_anew(&mut self, why: &'static str) -> Result<()> {
        if let Some(bronze) = &self.bronze {
            self.tally.anew_because = why;
            let taken = self.taken.begun_anew();
            self.anew = Some(Anew::of(&self.feed, bronze, std::mem::replace(&mut self.taken, taken))?);
        }
        Ok(())
    }

    /// Nothing is read for a table that cannot be written to; and one whose declaration has changed since it was made is brought to
    /// the new one where the policy says so.
    pub(crate) async fn meet_declaration(&mut self, lake: &Lake, options: &Options) -> Result<()> {
        while let Some(table) = self.bronze.clone() {
            table.ensure_writable().map_err(|source| Error::lake(table.name(), "writing", source))?;
            if self.anew.is_some() {
                return Ok(());
            }
            let Differences { widened, remarks } = declaration::differences(&self.feed, table.columns());
            self.tally.remarks.extend(remarks);
            if widened.is_empty() {
                return Ok(());
            }
            let declared = |column: &Column| widened.iter().find(|wide| wide.name == column.name).unwrap_or(column).clone();
            let known: Vec<Column> = table.columns().iter().filter(|column| !column.name.starts_with('_')).map(declared).collect();
            // Before-images have the types of their columns.
            let columns = decoder(&SourceFeed { columns: known, ..self.feed.clone() })?.columns();
            let Some(columns) = grown(table.columns(), &columns) else { return Ok(()) };
            let outcome = widen(&table, columns).await?;
            if let CommitOutcome::Committed { version } = outcome {
                self.tally.widened(&widened, version);
            }
            match batch::race(&table, outcome) {
                None => self.reload(lake).await?,
                Some(race) => self.lost(lake, race, options).await?,
            }
        }
        Ok(())
    }

    /// What its table was made of so far, also while it is built anew.
    pub(crate) fn made_of(&self) -> &Ledger {
        self.anew.as_ref().map_or(&self.taken, |anew| &anew.before)
    }

    /// Looks at bronze anew: what it holds.
    pub(crate) async fn reload(&mut self, lake: &Lake) -> Result<()> {
        let table = &self.feed.table;
        self.bronze = lake.table(table).await.map_err(|source| Error::lake(table, "opening", source))?;
        if let Some(bronze) = &self.bronze
            && !bronze.columns().iter().any(|column| column.name == INGESTED_AT)
        {
            return Err(Error::NotBronze { table: table.clone(), column: INGESTED_AT.to_owned() });
        }
        self.taken = Ledger::load(&self.feed.name, self.bronze.as_ref(), self.files_as_positions_max).await?;
        if let Some(anew) = &mut self.anew {
            let taken = self.taken.begun_anew();
            anew.before = std::mem::replace(&mut self.taken, taken);
        }
        self.ready = false;
        Ok(())
    }

    /// Looks at the quarantine and at where the decoder goes on, before the first record is decoded.
    pub(crate) async fn make_ready(&mut self, lake: &Lake) -> Result<()> {
        if self.ready {
            return Ok(());
        }
        let name = &self.quarantine_name;
        self.quarantine = lake.table(name).await.map_err(|source| Error::lake(name, "opening", source))?;
        self.parked = Ledger::load(&self.feed.name, self.quarantine.as_ref(), self.files_as_positions_max).await?;
        self.decoder = decoder(&self.feed)?;
        match (&self.anew, &self.bronze) {
            (Some(anew), _) => self.decoder.resume(Resume { columns: anew.columns.clone(), ..Resume::default() }),
            (None, Some(bronze)) => self.decoder.resume(resume::read(&self.feed, bronze).await?),
            (None, None) => {}
        }
        self.ready = true;
        Ok(())
    }

    /// Teaches the decoder the schemas that these records need.
    pub(crate) async fn teach(&mut self, records: &[Record<'_>]) -> Result<()> {
        self.registry.teach(&self.feed, &mut self.decoder, records).await
    }

    /// Forgets new columns of which no row of a decoded batch has a value: only records that go to quarantine have shown them.
    pub(crate) fn forget_unshown(&mut self, decoded: &mut Decoded) -> Result<()> {
        let Some(change) = decoded.schema_change.as_mut().filter(|_| !decoded.rejects.is_empty()) else { return Ok(()) };
        let unshown = unshown::columns(&decoded.batch, &change.added);
        if unshown.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = unshown.iter().map(String::as_str).collect();
        let failed = |source: ArrowError| Error::lake(&self.feed.table, "decoding rows", source.into());
        decoded.batch = unshown::without(&decoded.batch, &names).map_err(failed)?;
        let forgotten = self.decoder.forget(&self.feed, &names);
        forgotten.map_err(|source| Error::Decode { table: self.feed.table.clone(), source: Box::new(source) })?;
        change.added.retain(|new| !names.contains(&new.name.as_str()));
        change.columns = self.decoder.columns();
        Ok(())
    }

    /// The columns of the table as the decoder and the declaration have them.
    pub(crate) fn columns(&self) -> Vec<Column> {
        file_columns::all(&self.feed, &self.decoder)
    }

    /// The bronze table, made when it is not there yet.
    pub(crate) async fn ensure_bronze(&mut self, lake: &Lake) -> Result<Table> {
        if let Some(bronze) = &self.bronze {
            return Ok(bronze.clone());
        }
        let spec = bronze_spec(&self.feed, self.columns());
        let table = lake.create(&spec).await.map_err(|source| Error::lake(&spec.name, "creating", source))?;
        self.bronze = Some(table.clone());
        Ok(table)
    }

    /// The quarantine table, made when it is not there yet.
    pub(crate) async fn ensure_quarantine(&mut self, lake: &Lake) -> Result<Table> {
        if let Some(table) = &self.quarantine {
            return Ok(table.clone());
        }
        let spec = quarantine::spec(self.quarantine_name.clone(), &self.feed.name);
        let table = lake.create(&spec).await.map_err(|source| Error::lake(&spec.name, "creating", source))?;
        self.quarantine = Some(table.clone());
        Ok(table)
    }

    /// Whether the columns of the table are known, so that it can be made.
    pub(crate) fn knows_columns(&self) -> bool {
        self.bronze.is_some() || self.decoder.columns().iter().any(|column| !column.name.starts_with('_'))
    }

    /// A race was lost: looks at the tables anew, until that was tried too often.
    pub(crate) async fn lost(&mut self, lake: &Lake, race: Race, options: &Options) -> Result<()> {
        self.attempts += 1;
        self.tally.conflicts += 1;
        events::lost_race(&self.feed.table, self.attempts, &race.to_string());
        if self.attempts < options.attempts_max.max(1) {
            return self.reload(lake).await;
        }
        Err(race.given_up(self.attempts))
    }
}

/// A lost race.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Race {
    #[error("another run moved {app_id} of {table}")]
    Fenced { table: TableName, app_id: String },
    #[error("{table}: {conflict}")]
    Conflicted { table: TableName, conflict: tributary_lake::Conflict },
}

impl Race {
    /// The error that it is once it was tried too often.
    pub(crate) fn given_up(self, attempts: u32) -> Error {
        match self {
            Self::Fenced { table, app_id } => Error::Busy { table, app_id },
            Self::Conflicted { table, conflict } => Error::Conflict { table, attempts, source: conflict },
        }
    }
}

pub(crate) fn decoder(feed: &SourceFeed) -> Result<Decoder> {
    Decoder::new(feed).map_err(|source| Error::Decode { table: feed.table.clone(), source: Box::new(source) })
}

/// The bronze table of a feed with these columns.
pub(crate) fn bronze_spec(feed: &SourceFeed, columns: Vec<Column>) -> TableSpec {
    TableSpec {
        partition_by: feed.partition_by.clone(),
        cluster_by: feed.cluster_by.clone(),
        comment: feed.comment.clone(),
        properties: BTreeMap::clone(&feed.properties),
        ..TableSpec::new(feed.table.clone(), columns)
    }
}

/// The table's columns after a commit that brings it to the decoder's; none when they are the same.
pub(crate) fn grown(table: &[Column], decoder: &[Column]) -> Option<Vec<Column>> {
    let wanted = |column: &Column| decoder.iter().find(|wanted| wanted.name.eq_ignore_ascii_case(&column.name));
    let mut columns: Vec<_> = table
        .iter()
        .map(|column| match wanted(column) {
            Some(wanted) => Column { data_type: grown_type(&column.data_type, &wanted.data_type), ..column.clone() },
            None => column.clone(),
        })
        .collect();
    let new = decoder.iter().filter(|wanted| !table.iter().any(|column| column.name.eq_ignore_ascii_case(&wanted.name)));
    columns.extend(new.map(|column| Column { nullable: true, ..column.clone() }));
    (columns != table).then_some(columns)
}

/// A struct keeps the order of its fields; new ones come last.
fn grown_type(table: &DataType, decoder: &DataType) -> DataType {
    match (table, decoder) {
        (DataType::Struct(table), DataType::Struct(decoder)) => {
            let wanted = |field: &Column| decoder.iter().find(|wanted| wanted.name.eq_ignore_ascii_case(&field.name));
            let grown = |field: &Column| match wanted(field) {
                Some(wanted) => Column { data_type: grown_type(&field.data_type, &wanted.data_type), ..field.clone() },
                None => field.clone(),
            };
            let new = decoder.iter().filter(|wanted| !table.iter().any(|field| field.name.eq_ignore_ascii_case(&wanted.name)));
            DataType::Struct(table.iter().map(grown).chain(new.map(|field| Column { nullable: true, ..field.clone() })).collect())
        }
        (_, decoder) => decoder.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(fields: &[&str]) -> Column {
        Column::new("_before", DataType::Struct(fields.iter().map(|name| Column::new(*name, DataType::Long)).collect()))
    }

    #[test]
    fn new_columns_come_last_and_before_images_grow_in_place() {
        let table = [Column::new("id", DataType::Long), before(&["id"]), Column::new("_op", DataType::String).not_null()];
        assert_eq!(grown(&table, &table), None);
        let decoder = [
            table[0].clone(),
            Column::new("note", DataType::String),
            before(&["id", "note"]),
            Column::new("_op", DataType::String).not_null(),
        ];
        let grown = grown(&table, &decoder).unwrap();
        assert_eq!(grown, [table[0].clone(), before(&["id", "note"]), table[2].clone(), decoder[1].clone()]);
    }
}
