//! The new rows of the source as events, dealt to slices of their keys.
//!
//! The source is read once, however many slices there are: what is more than may be held goes to a local file while it is read, and
//! from there, once it is known how much there is of which keys, to a file with a lane a slice. So the work follows the rows.

use tributary_lake::Lake;
use tributary_lake::arrow::array::UInt32Array;
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::datafusion::error::{DataFusionError, Result as QueryResult};

use crate::error::{Error, Result};
use crate::events::Events;
use crate::intake::{Findings, Intake};
use crate::keys::{Key, KeyCodec, Slices};
use crate::spill::{Piece, Spill, Spiller};
use crate::survey::{Survey, weight};

/// The most slices keys are dealt to.
const SLICES_MAX: usize = 4096;

/// The part of what may be held that one block of a file is, while rows are read.
const READ_PART: usize = 8;

/// The part of what may be held that waits to be written, while events are dealt.
const DEAL_PART: usize = 4;

/// See the module.
pub(crate) struct Batch<'a> {
    lake: &'a Lake,
    intake: &'a Intake<'a>,
    codec: &'a KeyCodec,
    /// What one slice may come to.
    bytes_max: usize,
    events: Holder,
    has_globals: bool,
}

/// Where the events are.
enum Holder {
    Memory(Vec<Piece>),
    /// More than may be held: in a file. What is known of them tells how they are dealt.
    File(Box<(Spill, Survey)>),
}

/// Events on their way into a file.
struct Spilling<'a> {
    spiller: Spiller<'a>,
    survey: Survey,
}

impl<'a> Batch<'a> {
    /// Reads the new rows of the source.
    ///
    /// # Errors
    /// When the query fails, when rows forbid the commit, or when there is no room for the file.
    pub async fn read(lake: &'a Lake, intake: &'a Intake<'a>, codec: &'a KeyCodec, bytes_max: usize) -> Result<(Self, Findings)> {
        let mut batch = Self { lake, intake, codec, bytes_max, events: Holder::Memory(Vec::new()), has_globals: false };
        let (mut pieces, mut bytes, mut spilling) = (Vec::new(), 0, None);
        let mut reading = intake.read();
        while let Some(judged) = reading.next().await? {
            batch.has_globals |= judged.events.kinds.iter().any(|kind| kind.is_global());
            bytes += weight(&judged.events);
            pieces.push(Piece { events: judged.events, preimages: judged.preimages });
            if bytes > bytes_max {
                batch.spill(&mut spilling, std::mem::take(&mut pieces)).await.map_err(|error| batch.fail(error))?;
            }
        }
        let findings = reading.finish()?;
        batch.events = match spilling {
            Some(spilling) => spilling.finish().await.map_err(|error| batch.fail(error))?,
            None => Holder::Memory(pieces),
        };
        Ok((batch, findings))
    }

    /// Whether an event concerns every key of the table.
    pub fn has_globals(&self) -> bool {
        self.has_globals
    }

    /// Deals the events to slices of what may be held, to so many at least. Keys that are tied are in one slice.
    ///
    /// # Errors
    /// When the files cannot be written or read; [`Error::Cancelled`].
    pub async fn deal(&mut self, at_least: usize, tied: Vec<(Key, Key)>) -> Result<Slices> {
        self.try_deal(at_least, tied).await.map_err(|error| self.fail(error))
    }

    async fn try_deal(&mut self, at_least: usize, tied: Vec<(Key, Key)>) -> QueryResult<Slices> {
        if let Holder::Memory(pieces) = &mut self.events {
            if at_least <= 1 {
                return Ok(Slices { count: 1, ..Slices::default() });
            }
            let (pieces, mut spilling) = (std::mem::take(pieces), None);
            self.spill(&mut spilling, pieces).await?;
            if let Some(spilling) = spilling {
                self.events = spilling.finish().await?;
            }
        }
        let Holder::File(file) = &mut self.events else { return Ok(Slices { count: 1, ..Slices::default() }) };
        let (spill, survey) = file.as_mut();
        survey.tie(tied);
        let slices = survey.dealt(survey.slices_of(self.bytes_max).max(at_least).clamp(1, SLICES_MAX));
        // Behind the slices lies what concerns each of them.
        let mut spiller = Spiller::new(self.lake, &self.intake.target.shape, slices.count + 1, self.bytes_max / DEAL_PART)?;
        for lane in 0..spill.lanes() {
            for block in 0..spill.blocks(lane) {
                if self.intake.options.cancel.is_cancelled() {
                    return Err(DataFusionError::External(Box::new(Error::Cancelled { table: self.intake.spec.table.clone() })));
                }
                deal_piece(self.intake, self.codec, &slices, &spill.piece(lane, block).await?, &mut spiller).await?;
            }
        }
        *spill = spiller.finish().await?;
        Ok(slices)
    }

    /// The events whose keys are in a slice; and those of every key, which are in each. With them, how many preimages of updates were
    /// left out, which say nothing beside the postimage. What was never dealt is given once.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn slice(&mut self, at: usize) -> Result<(Events, u64)> {
        let shape = &self.intake.target.shape;
        let pieces = match &mut self.events {
            Holder::Memory(pieces) => Ok(std::mem::take(pieces)),
            Holder::File(file) => pieces_of_slice(&file.0, at).await,
        };
        let pieces = pieces.map_err(|error| self.fail(error))?;
        let without = |piece: Piece| self.intake.without_preimages(self.codec, piece.events, &piece.preimages);
        Piece::concat(shape, pieces).and_then(without).map_err(|error| Error::kernel(&self.intake.spec.table, error))
    }

    /// Adds events to a file, which is begun where it is not yet.
    async fn spill(&self, spilling: &mut Option<Spilling<'a>>, pieces: Vec<Piece>) -> QueryResult<()> {
        let target = self.intake.target;
        let spilling = match spilling {
            Some(spilling) => spilling,
            None => spilling.insert(Spilling {
                spiller: Spiller::new(self.lake, &target.shape, 1, self.bytes_max / READ_PART)?,
                survey: Survey::default(),
            }),
        };
        for piece in pieces {
            spilling.survey.add(target, self.codec, &piece.events)?;
            spilling.spiller.add(0, piece).await?;
        }
        Ok(())
    }

    fn fail(&self, error: DataFusionError) -> Error {
        match error {
            DataFusionError::External(error) if error.is::<Error>() => {
                let table = self.intake.spec.table.clone();
                error.downcast().map_or(Error::Cancelled { table }, |error| *error)
            }
            error => Error::spilled(&self.intake.spec.table, error),
        }
    }
}

impl Spilling<'_> {
    async fn finish(mut self) -> QueryResult<Holder> {
        self.survey.close();
        Ok(Holder::File(Box::new((self.spiller.finish().await?, self.survey))))
    }
}

async fn pieces_of_slice(spill: &Spill, at: usize) -> QueryResult<Vec<Piece>> {
    let mut pieces = Vec::new();
    for lane in [at, spill.lanes() - 1] {
        for block in 0..spill.blocks(lane) {
            pieces.push(spill.piece(lane, block).await?);
        }
    }
    Ok(pieces)
}

async fn deal_piece(intake: &Intake<'_>, codec: &KeyCodec, slices: &Slices, piece: &Piece, into: &mut Spiller<'_>) -> QueryResult<()> {
    let Piece { events, preimages } = piece;
    for (lane, rows) in lanes_of(intake, codec, slices, events)?.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        let preimages = rows.iter().map(|row| preimages[*row as usize]).collect();
        into.add(lane, Piece { events: events.take(&UInt32Array::from(rows))?, preimages }).await?;
    }
    Ok(())
}

/// The rows of each slice, and behind them those that concern every key.
fn lanes_of(intake: &Intake<'_>, codec: &KeyCodec, slices: &Slices, events: &Events) -> Result<Vec<Vec<u32>>, ArrowError> {
    let keys = codec.encode(&codec.columns_of(&intake.target.shape, &events.rows))?;
    let mut lanes = vec![Vec::new(); slices.count + 1];
    for row in 0..events.len() {
        let lane = if events.kinds[row].is_global() { slices.count } else { slices.of(keys.row(row).as_ref()) };
        lanes[lane].push(row as u32);
    }
    Ok(lanes)
}
