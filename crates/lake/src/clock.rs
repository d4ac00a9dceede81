//! Time comes in through the door.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

/// Where commit timestamps and retention take the time from.
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> DateTime<Utc>;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that moves only when it is told to.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `now`, to the microsecond.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self(AtomicI64::new(now.timestamp_micros()))
    }

    /// Moves it forward, or backward.
    pub fn advance(&self, by: chrono::TimeDelta) {
        self.0.fetch_add(by.num_microseconds().unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets it.
    pub fn set(&self, now: DateTime<Utc>) {
        self.0.store(now.timestamp_micros(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0.load(Ordering::SeqCst)).unwrap_or_default()
    }
}
