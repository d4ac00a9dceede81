//! How many runs of a job go on at once: a lock a run, held on a file below the warehouse.
//!
//! The system takes a lock back when its process is gone, however it went, so none is left behind. The file says which run holds it;
//! where it still does though nobody holds the lock, that run was killed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Below the warehouse; no catalogue begins with an underscore.
const FOLDER: &str = "_jobs";

/// The places for runs of one job.
#[derive(Debug)]
pub struct Slots {
    /// None where the warehouse is no folder: it lives no longer than this process.
    warehouse: Option<PathBuf>,
    job_id: String,
    count: u64,
}

/// A run that holds a place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Begun {
    pub run_id: String,
    pub started_at: DateTime<Utc>,
    pub trigger_type: String,
    pub parameters: BTreeMap<String, String>,
}

/// A place that this process holds until it is dropped.
#[derive(Debug)]
pub struct Slot {
    file: Option<File>,
    /// The run that was killed while it held the place.
    pub killed: Option<Begun>,
}

impl Slots {
    pub fn new(warehouse: Option<PathBuf>, job_id: &str, count: u64) -> Self {
        Self { warehouse, job_id: job_id.to_owned(), count }
    }

    /// A place that nobody holds, if there is one.
    pub fn take(&self) -> io::Result<Option<Slot>> {
        let Some(warehouse) = &self.warehouse else { return Ok((self.count > 0).then_some(Slot { file: None, killed: None })) };
        let folder = warehouse.join(FOLDER);
        std::fs::create_dir_all(&folder)?;
        for place in 0..self.count {
            let path = folder.join(format!("{}.{place}", self.job_id));
            let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            return Ok(Some(Slot { killed: serde_json::from_str(&text).ok(), file: Some(file) }));
        }
        Ok(None)
    }
}

impl Slot {
    /// Says which run holds the place.
    pub fn begin(&mut self, begun: &Begun) -> io::Result<()> {
        let text = serde_json::to_string(begun)?;
        self.put(&text)
    }

    /// The run has ended and was recorded.
    pub fn end(mut self) -> io::Result<()> {
        self.put("")
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_runs_as_may_hold_a_place_and_one_that_ends_gives_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let slots = Slots::new(Some(folder.path().to_owned()), "7", 2);
        let first = slots.take().unwrap().unwrap();
        let _second = slots.take().unwrap().unwrap();
        assert!(slots.take().unwrap().is_none());
        assert!(Slots::new(Some(folder.path().to_owned()), "8", 1).take().unwrap().is_some(), "another job has places of its own");
        first.end().unwrap();
        assert_eq!(slots.take().unwrap().unwrap().killed, None);
        assert!(Slots::new(None, "7", 0).take().unwrap().is_none(), "a job of no runs never runs");
    }

    #[test]
    fn a_run_that_was_killed_is_known_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let slots = Slots::new(Some(folder.path().to_owned()), "7", 1);
        let begun = Begun { run_id: "12".into(), trigger_type: "ONETIME".into(), ..Begun::default() };
        let mut slot = slots.take().unwrap().unwrap();
        slot.begin(&begun).unwrap();
        // what a kill does: the lock goes, the file stays
        drop(slot);
        assert_eq!(slots.take().unwrap().unwrap().killed, Some(begun));
    }
}
