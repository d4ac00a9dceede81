//! How far a dataset is in the middle of its work, in one line.

use std::time::Duration;

use chrono::{DateTime, Utc};
use indicatif::{HumanBytes, HumanCount};
use tributary::Extent;

/// What a dataset has taken up since its work began.
pub struct Advance {
    pub records: u64,
    pub bytes: u64,
    pub extent: Option<Extent>,
    pub source_time_ms: Option<i64>,
}

impl Advance {
    /// Records, bytes, rate; how far the newest record is behind now, in the time of its source; how long the rest will take.
    pub fn text(&self, elapsed: Duration, now: DateTime<Utc>) -> String {
        let rate = self.records as f64 / elapsed.as_secs_f64().max(0.001);
        let bytes = if self.bytes > 0 { format!(", {}", HumanBytes(self.bytes)) } else { String::new() };
        let mut text = format!("{} records{bytes}, {rate:.0}/s", HumanCount(self.records));
        if let Some(time) = self.source_time_ms {
            let behind = (now.timestamp_millis() - time).max(0) / 1000;
            text.push_str(&format!(", {} behind", duration(behind.unsigned_abs())));
        }
        if let Some(left) = self.left(elapsed) {
            text.push_str(&format!(", {} left", duration(left)));
        }
        text
    }

    /// Seconds that the rest takes at the pace so far; none while there is no pace.
    fn left(&self, elapsed: Duration) -> Option<u64> {
        let Extent { done, whole } = self.extent.filter(|extent| extent.done > 0)?;
        let rest = whole.saturating_sub(done) as f64 / done as f64;
        Some((elapsed.as_secs_f64() * rest).ceil() as u64)
    }
}

/// The two biggest units of a length of time.
fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_behind_and_how_long_still() {
        let advance =
            Advance { records: 3000, bytes: 2048, extent: Some(Extent { done: 25, whole: 100 }), source_time_ms: Some(1_700_000_000_000) };
        let now = DateTime::from_timestamp(1_700_003_725, 0).unwrap();
        assert_eq!(advance.text(Duration::from_secs(30), now), "3,000 records, 2.00 KiB, 100/s, 1 h 2 min behind, 1 min 30 s left");
        let unknown = Advance { records: 7, bytes: 0, extent: None, source_time_ms: None };
        assert_eq!(unknown.text(Duration::from_secs(1), now), "7 records, 7/s");
    }

    #[test]
    fn lengths_of_time_have_two_units_at_most() {
        assert_eq!([59, 60, 3_600, 90_061].map(duration), ["59 s", "1 min 0 s", "1 h 0 min", "1 d 1 h"]);
    }
}
