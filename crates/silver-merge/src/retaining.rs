//! Events that the state is to hold once a commit is there: in memory, and in a file once they are more than may be held.

use tributary_lake::Lake;
use tributary_lake::datafusion::error::Result as QueryResult;

use crate::events::Events;
use crate::shape::Shape;
use crate::spill::{Piece, Spill, Spiller};

/// The part of what a slice may come to that events of all slices may hold together.
const RETAINED_PART: usize = 8;

/// Collects events, slice by slice.
pub(crate) struct Retaining<'a> {
    lake: &'a Lake,
    shape: &'a Shape,
    held: Vec<Events>,
    bytes: usize,
    bytes_max: usize,
    spiller: Option<Spiller<'a>>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Added {
    held: Vec<Events>,
    spilled: Option<Spill>,
}

impl<'a> Retaining<'a> {
    /// None yet; `memory_limit` is what a slice may come to.
    pub fn new(lake: &'a Lake, shape: &'a Shape, memory_limit: usize) -> Self {
        Self { lake, shape, held: Vec::new(), bytes: 0, bytes_max: memory_limit / RETAINED_PART, spiller: None }
    }

    /// Adds those of a slice.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub async fn add(&mut self, events: Events) -> QueryResult<()> {
        if events.len() == 0 {
            return Ok(());
        }
        if let Some(spiller) = &mut self.spiller {
            return spiller.add(0, piece(events)).await;
        }
        self.bytes += events.bytes();
        self.held.push(events);
        if self.bytes > self.bytes_max {
            let mut spiller = Spiller::new(self.lake, self.shape, 1, self.bytes_max)?;
            for events in self.held.drain(..) {
                spiller.add(0, piece(events)).await?;
            }
            self.spiller = Some(spiller);
        }
        Ok(())
    }

    /// Has all.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub async fn finish(self) -> QueryResult<Added> {
        let spilled = match self.spiller {
            Some(spiller) => Some(spiller.finish().await?),
            None => None,
        };
        Ok(Added { held: self.held, spilled })
    }
}

fn piece(events: Events) -> Piece {
    Piece { preimages: vec![false; events.len()], events }
}

impl Added {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.spilled.is_none()
    }

    /// How many parts they come in.
    pub fn parts(&self) -> usize {
        self.held.len() + self.spilled.as_ref().map_or(0, |spill| spill.blocks(0))
    }

    /// A part of them.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub async fn part(&self, number: usize) -> QueryResult<Events> {
        match (self.held.get(number), &self.spilled) {
            (None, Some(spill)) => Ok(spill.piece(0, number - self.held.len()).await?.events),
            (Some(events), _) => Ok(events.clone()),
            (None, None) => Err(tributary_lake::datafusion::error::DataFusionError::Internal(format!("no part {number}"))),
        }
    }
}
