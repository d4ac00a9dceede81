//! What the metrics are now, and their text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::catalogue::{ALL, Kind, Metric};

/// Values by metric and labels.
#[derive(Debug, Default)]
pub struct Values {
    by_metric: BTreeMap<&'static str, BTreeMap<Vec<String>, f64>>,
}

impl Values {
    /// Counts up. A count of 0 makes the series known, so that its first rise is seen.
    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], count: u64) {
        debug_assert!(metric.kind == Kind::Counter && labels.len() == metric.labels().count(), "{}", metric.name);
        *self.series(metric, labels) += count as f64;
    }

    /// Sets; what is not known any more is left out.
    pub fn set(&mut self, metric: &'static Metric, labels: &[&str], value: impl Into<Option<f64>>) {
        debug_assert!(metric.kind == Kind::Gauge && labels.len() == metric.labels().count(), "{}", metric.name);
        match value.into() {
            Some(value) => *self.series(metric, labels) = value,
            None => {
                let owned: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
                if let Some(series) = self.by_metric.get_mut(metric.name) {
                    series.remove(&owned);
                }
            }
        }
    }

    fn series(&mut self, metric: &'static Metric, labels: &[&str]) -> &mut f64 {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self.by_metric.entry(metric.name).or_default().entry(labels).or_default()
    }

    /// In the text format of Prometheus, version 0.0.4.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for metric in ALL {
            let Some(series) = self.by_metric.get(metric.name).filter(|series| !series.is_empty()) else { continue };
            let _ = writeln!(text, "# HELP {} {}\n# TYPE {} {}", metric.name, escaped_help(metric.help), metric.name, metric.kind.word());
            for (labels, value) in series {
                let labels: Vec<String> =
                    metric.labels().zip(labels).map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
                let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
                let _ = writeln!(text, "{}{braces} {value}", metric.name);
            }
        }
        text
    }
}

fn escaped_help(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn escaped(text: &str) -> String {
    escaped_help(text).replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::{LAG_SECONDS, MEMORY, QUARANTINED};

    #[test]
    fn the_text_has_help_type_escaped_labels_and_whole_numbers() {
        let mut values = Values::default();
        values.add(QUARANTINED, &["bronze.orders", "bronze", "a \"b\"\\\n"], 0);
        values.add(QUARANTINED, &["bronze.orders", "bronze", "a \"b\"\\\n"], 3);
        values.set(MEMORY, &[], 123_456_789.0);
        let text = values.text();
        assert!(text.contains("# TYPE tributary_quarantined_rows_total counter\n"), "{text}");
        assert!(text.contains("{dataset=\"bronze.orders\",layer=\"bronze\",reason=\"a \\\"b\\\"\\\\\\n\"} 3\n"), "{text}");
        assert!(text.ends_with("process_resident_memory_bytes 123456789\n"), "{text}");
    }

    #[test]
    fn what_is_not_known_any_more_is_left_out() {
        let mut values = Values::default();
        values.set(LAG_SECONDS, &["gold.x", "gold"], 4.0);
        assert!(values.text().contains("tributary_lag_seconds{dataset=\"gold.x\",layer=\"gold\"} 4\n"));
        values.set(LAG_SECONDS, &["gold.x", "gold"], None);
        assert_eq!(values.text(), "");
    }
}
