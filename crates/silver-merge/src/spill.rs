//! Events that are more than may be held, in a local file until their turn comes.
//!
//! They lie in lanes, block by block:
//!
//! - what is added to a lane comes out as it went in, in the same order;
//! - a block is complete by itself, so that events of one lane may differ in what they have;
//! - the file goes with the [`Spill`].

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use tributary_lake::Lake;
use tributary_lake::arrow::array::{ArrayRef, AsArray, BinaryArray, BooleanArray, RecordBatch, StructArray, UInt8Array};
use tributary_lake::arrow::datatypes::UInt8Type;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::arrow::ipc::CompressionType;
use tributary_lake::arrow::ipc::reader::StreamReader;
use tributary_lake::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use tributary_lake::datafusion::common::runtime::SpawnedTask;
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};
use tributary_lake::datafusion::execution::{SpillFile, SpillWriter};

use crate::events::{Events, Kind};
use crate::leaves::LeafSet;
use crate::shape::Shape;

/// Events as they were judged.
#[derive(Debug)]
pub(crate) struct Piece {
    pub events: Events,
    /// Which of them are the preimages of updates in a change feed.
    pub preimages: Vec<bool>,
}

impl Piece {
    /// Joins pieces of one shape, in the order given.
    ///
    /// # Errors
    /// When their columns differ.
    pub fn concat(shape: &Shape, pieces: Vec<Self>) -> Result<Self, ArrowError> {
        let preimages = pieces.iter().flat_map(|piece| piece.preimages.iter().copied()).collect();
        Ok(Self { events: Events::concat(shape, pieces.into_iter().map(|piece| piece.events).collect())?, preimages })
    }
}

/// Where a block is in the file.
#[derive(Debug, Clone, Copy)]
struct Block {
    at: u64,
    length: usize,
}

/// Writes events, a number of lanes at a time.
pub(crate) struct Spiller<'a> {
    shape: &'a Shape,
    spill: Spill,
    writer: Option<Box<dyn SpillWriter>>,
    end: u64,
    /// What is not written yet, by lane.
    held: Vec<Vec<Piece>>,
    bytes: usize,
    bytes_max: usize,
}

impl<'a> Spiller<'a> {
    /// A new file where the lake's queries spill to. At most about `bytes_max` bytes are held before they are written.
    ///
    /// # Errors
    /// When no file can be made.
    pub fn new(lake: &Lake, shape: &'a Shape, lanes: usize, bytes_max: usize) -> QueryResult<Self> {
        let file = lake.session().runtime_env().disk_manager.create_tmp_file("changes are dealt to slices of keys")?;
        let writer = Some(file.open_writer()?);
        let spill = Spill { file, lanes: vec![Vec::new(); lanes] };
        Ok(Self { shape, spill, writer, end: 0, held: (0..lanes).map(|_| Vec::new()).collect(), bytes: 0, bytes_max })
    }

    /// Adds events to a lane.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn add(&mut self, lane: usize, piece: Piece) -> QueryResult<()> {
        if piece.events.len() == 0 {
            return Ok(());
        }
        self.bytes += piece.events.bytes();
        self.held[lane].push(piece);
        if self.bytes > self.bytes_max { self.write().await } else { Ok(()) }
    }

    async fn write(&mut self) -> QueryResult<()> {
        self.bytes = 0;
        let Some(mut writer) = self.writer.take() else { return Err(unfinished()) };
        let mut batches = Vec::new();
        for (lane, pieces) in self.held.iter_mut().enumerate().filter(|(_, pieces)| !pieces.is_empty()) {
            batches.push((lane, encode(&Piece::concat(self.shape, std::mem::take(pieces))?)?));
        }
        let written = SpawnedTask::spawn_blocking(move || {
            let mut lengths = Vec::with_capacity(batches.len());
            for (lane, batch) in batches {
                let block = to_bytes(&batch)?;
                writer.write_all(&block)?;
                lengths.push((lane, block.len()));
            }
            Ok::<_, DataFusionError>((writer, lengths))
        });
        let (writer, lengths) = written.join().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
        self.writer = Some(writer);
        for (lane, length) in lengths {
            self.spill.lanes[lane].push(Block { at: self.end, length });
            self.end += length as u64;
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub async fn finish(mut self) -> QueryResult<Spill> {
        self.write().await?;
        let mut writer = self.writer.ok_or_else(unfinished)?;
        writer.flush()?;
        writer.finish()?;
        Ok(self.spill)
    }
}

fn unfinished() -> DataFusionError {
    DataFusionError::Internal("a spill file that could not be written is written on".to_owned())
}

/// Events in a file.
pub(crate) struct Spill {
    file: Arc<dyn SpillFile>,
    lanes: Vec<Vec<Block>>,
}

impl Spill {
    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// How many blocks a lane has.
    pub fn blocks(&self, lane: usize) -> usize {
        self.lanes[lane].len()
    }

    /// The events of a block.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn piece(&self, lane: usize, block: usize) -> QueryResult<Piece> {
        let (file, Block { at, length }) = (Arc::clone(&self.file), self.lanes[lane][block]);
        let read = SpawnedTask::spawn_blocking(move || {
            let path = file.path().ok_or_else(|| DataFusionError::Internal("a spill file that has no path".to_owned()))?;
            let (mut file, mut bytes) = (File::open(path)?, vec![0; length]);
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut bytes)?;
            let batch = StreamReader::try_new(Cursor::new(bytes), None)?.next();
            let batch = batch.ok_or_else(|| DataFusionError::Internal("a spilled block without rows".to_owned()))??;
            Ok(decode(&batch)?)
        });
        read.join().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
    }
}

fn to_bytes(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), batch.schema_ref(), options)?;
    writer.write(batch)?;
    writer.into_inner()
}

const ROWS: &str = "rows";
const KINDS: &str = "kinds";
const PREIMAGES: &str = "preimages";
const SEQUENCE: &str = "sequence";
const POSITION: &str = "position";
const UNWRITTEN: &str = "unwritten";
const CARRIED: &str = "carried";
const OTHER_KEY: &str = "other_key";
const BEFORE: &str = "before";
const COVERS_ROW: &str = "covers_row";

fn encode(piece: &Piece) -> Result<RecordBatch, ArrowError> {
    let Events { rows, kinds, sequence, position, unwritten, carried, other_key, before, covers_row, ends } = &piece.events;
    debug_assert!(ends.is_none(), "only rows of the table have an end");
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (ROWS, Arc::new(StructArray::from(rows.clone()))),
        (KINDS, Arc::new(kinds.iter().map(|kind| *kind as u8).collect::<UInt8Array>())),
        (PREIMAGES, Arc::new(BooleanArray::from(piece.preimages.clone()))),
    ];
    columns.extend(sequence.iter().map(|array| (SEQUENCE, Arc::clone(array))));
    columns.extend(position.iter().map(|array| (POSITION, Arc::new(array.clone()) as ArrayRef)));
    columns.extend(other_key.iter().map(|array| (OTHER_KEY, Arc::new(array.clone()) as ArrayRef)));
    columns.extend(before.iter().map(|array| (BEFORE, Arc::new(array.clone()) as ArrayRef)));
    for (name, sets) in [(UNWRITTEN, unwritten), (CARRIED, carried)].into_iter().filter(|(_, sets)| !sets.is_empty()) {
        columns.push((name, Arc::new(sets.iter().map(|set| Some(set.to_bytes())).collect::<BinaryArray>())));
    }
    if !covers_row.is_empty() {
        columns.push((COVERS_ROW, Arc::new(BooleanArray::from(covers_row.clone()))));
    }
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
}

fn decode(batch: &RecordBatch) -> Result<Piece, ArrowError> {
    let column = |name: &str| batch.column_by_name(name);
    let needed = |name: &str| column(name).ok_or_else(|| ArrowError::InvalidArgumentError(format!("a spilled block without {name}")));
    let kind = |value: &u8| {
        let named = Kind::ALL.get(usize::from(*value)).copied();
        named.ok_or_else(|| ArrowError::InvalidArgumentError(format!("a spilled event of the kind {value}")))
    };
    let flags = |name: &str| column(name).map(|array| array.as_boolean().values().iter().collect::<Vec<bool>>());
    let sets = |name: &str| {
        let sets = column(name).map(|array| array.as_binary::<i32>().iter().map(|set| LeafSet::from_bytes(set.unwrap_or_default())));
        sets.map(Iterator::collect).unwrap_or_default()
    };
    let events = Events {
        rows: RecordBatch::from(needed(ROWS)?.as_struct()),
        kinds: needed(KINDS)?.as_primitive::<UInt8Type>().values().iter().map(kind).collect::<Result<_, _>>()?,
        sequence: column(SEQUENCE).cloned(),
        position: column(POSITION).map(|array| array.as_string::<i32>().clone()),
        unwritten: sets(UNWRITTEN),
        carried: sets(CARRIED),
        other_key: column(OTHER_KEY).map(|array| array.as_struct().clone()),
        before: column(BEFORE).map(|array| array.as_struct().clone()),
        covers_row: flags(COVERS_ROW).unwrap_or_default(),
        ends: None,
    };
    let preimages = flags(PREIMAGES).unwrap_or_default();
    Ok(Piece { events, preimages })
}
