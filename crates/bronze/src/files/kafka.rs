//! Recorded Kafka records, one a line.

use serde::Deserialize;

/// Below this a record's time is seconds, from here on milliseconds: 1e11 seconds lie in the year 5138, 1e11 milliseconds in 1973.
const SECONDS_BELOW: f64 = 1e11;

/// One recorded record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct KafkaLine {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    headers: Option<Vec<HeaderLine>>,
    #[serde(default)]
    timestamp: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct HeaderLine {
    key: String,
    #[serde(default)]
    value: Option<String>,
}

impl KafkaLine {
    /// The record of a line, or what is wrong with it, naming the place in the line.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| {
            let what = match error.classify() {
                serde_json::error::Category::Eof => "the line ends early",
                serde_json::error::Category::Data => "a field is missing or has the wrong type",
                serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is not JSON",
            };
            format!("not a recorded record: {what} (column {})", error.column())
        })
    }

    /// Headers in their order, a null value as empty bytes.
    pub(crate) fn take_headers(&mut self) -> Vec<(String, Vec<u8>)> {
        let headers = self.headers.take().unwrap_or_default();
        headers.into_iter().map(|header| (header.key, header.value.unwrap_or_default().into_bytes())).collect()
    }

    /// Milliseconds since the epoch.
    #[allow(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
    pub(crate) fn timestamp_ms(&self) -> Option<i64> {
        self.timestamp.map(|time| if time.abs() < SECONDS_BELOW { (time * 1000.0).round() as i64 } else { time.round() as i64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_below_1e11_is_seconds() {
        let at = |time: &str| {
            KafkaLine::parse(format!("{{\"topic\":\"t\",\"partition\":0,\"offset\":1,\"timestamp\":{time}}}").as_bytes())
                .unwrap()
                .timestamp_ms()
        };
        assert_eq!(at("1700000000"), Some(1_700_000_000_000));
        assert_eq!(at("1700000000.5"), Some(1_700_000_000_500));
        assert_eq!(at("1700000000123"), Some(1_700_000_000_123));
        assert_eq!(at("null"), None);
    }

    #[test]
    fn half_a_line_and_a_missing_field_say_what_is_wrong() {
        assert!(KafkaLine::parse(b"{\"topic\":\"t\",\"parti").unwrap_err().contains("ends early"));
        assert!(KafkaLine::parse(b"{\"topic\":\"t\",\"offset\":1}").unwrap_err().contains("missing"));
        assert!(KafkaLine::parse(b"topic=t").unwrap_err().contains("not JSON"));
    }
}
