//! What connectors as people run them lose: the findings of `tests/fixtures/debezium/README.md`, as rules on single values.

use std::collections::BTreeSet;

use tributary_cli::demo::Cell;

use super::Prediction;

fn rule(
    table: &'static str,
    column: &'static str,
    why: &'static str,
    explains: impl Fn(Option<&str>, Option<&str>) -> bool + Send + Sync + 'static,
) -> Prediction {
    Prediction { table, column, why, explains: Box::new(move |cell: &Cell| explains(cell.source.as_deref(), cell.lake.as_deref())) }
}

/// A truncate that the connector leaves out: rows that the source no longer has.
fn kept(table: &'static str, truncated: &[String]) -> Prediction {
    let prefix = format!("{table}: ");
    let keys: BTreeSet<String> = truncated.iter().filter_map(|key| key.strip_prefix(&prefix)).map(str::to_owned).collect();
    Prediction {
        table,
        column: "(row)",
        why: "the connector leaves truncates out (finding 4)",
        explains: Box::new(move |cell: &Cell| cell.source.is_none() && keys.contains(&cell.key)),
    }
}

/// What the Avro converter loses, which has no setting for it.
pub fn of_avro() -> Vec<Prediction> {
    vec![
        rule("payments", "kind", "the converter puts the default where the source has null (finding 6)", |source, lake| {
            source.is_none() && lake == Some("card")
        }),
        rule("payments", "priority", "the converter puts the default where the source has null (finding 6)", |source, lake| {
            source.is_none() && lake == Some("7")
        }),
    ]
}

/// All that connectors with the settings of `connectors/hostile.json` lose; `truncated` are the rows that truncates took, as
/// `table: key`.
pub fn of_hostile(truncated: &[String]) -> Vec<Prediction> {
    vec![
        kept("orders", truncated),
        kept("customers", truncated),
        kept("inventory", truncated),
        rule("orders", "app", "a column added with a default sends no event for the rows there are (finding 5)", |source, lake| {
            source == Some("shop") && lake.is_none()
        }),
        rule("inventory", "origin", "a column added with a default sends no event for the rows there are (finding 5)", |source, lake| {
            source == Some("EU") && lake.is_none()
        }),
        rule("inventory", "description", "a renamed column sends no event for the rows there are (finding 5)", |source, lake| {
            source.is_some() && lake.is_none()
        }),
        rule("orders", "channel", "the converter puts the default where the source has null (finding 6)", |source, lake| {
            source.is_none() && lake == Some("web")
        }),
        rule("inventory", "shelf", "the converter puts the default where the source has null (finding 6)", |source, lake| {
            source.is_none() && lake == Some("A1")
        }),
        rule(
            "customers",
            "credit_limit",
            "bare JSON has no scale, and none is declared: the text is what came (finding 7)",
            |source, lake| lake.and_then(unscaled).is_some_and(|value| source == Some(hundredths(value).as_str())),
        ),
        rule("customers", "balance", "NaN is null where decimals are precise (finding 8)", |source, lake| {
            source == Some("NaN") && lake.is_none()
        }),
        rule("customers", "signup_at", "no timestamp is infinite (finding 9)", infinite),
        rule("customers", "birth_date", "no date is infinite (finding 9)", infinite),
        rule("customers", "seen_at", "connect's time mode cuts to milliseconds (finding 10)", is_cut),
        rule("customers", "calls_from", "connect's time mode cuts to milliseconds (finding 10)", is_cut),
        rule("inventory", "qty_total", "an unsigned 64-bit number wraps to a negative one (finding 11)", |source, lake| {
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<i128>().ok());
            number(source).zip(number(lake)).is_some_and(|(source, lake)| lake < 0 && lake == source - (1 << 64))
        }),
        rule("inventory", "made_on", "a zero date is null (finding 11)", zero_date),
        rule(
            "inventory",
            "loaded_at",
            "a zero timestamp is null in a snapshot and the epoch in the stream (finding 11)",
            |source, lake| source.is_some_and(|text| text.starts_with("0000-00-00")) && matches!(lake, None | Some("1970-01-01 00:00:00")),
        ),
        rule("inventory", "vintage", "the year 0000 is 1900 (finding 11)", |source, lake| source == Some("0") && lake == Some("1900")),
    ]
}

fn infinite(source: Option<&str>, lake: Option<&str>) -> bool {
    matches!(source, Some("infinity" | "-infinity")) && lake.is_none()
}

fn zero_date(source: Option<&str>, lake: Option<&str>) -> bool {
    source.is_some_and(|text| text.starts_with("0000-00-00")) && lake.is_none()
}

/// The same time without its microseconds.
fn is_cut(source: Option<&str>, lake: Option<&str>) -> bool {
    let (Some(source), Some(lake)) = (source.map(fraction), lake.map(fraction)) else { return false };
    lake == (source.0, format!("{}000", &source.1[..3]))
}

/// What stands before the fraction of a second, and its six digits.
fn fraction(text: &str) -> (&str, String) {
    let (before, digits) = text.split_once('.').unwrap_or((text, ""));
    (before, format!("{digits:0<6}"))
}

/// Base64 of a big-endian two's complement number.
fn unscaled(text: &str) -> Option<i128> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.trim_end_matches('=');
    let mut bits: i128 = 0;
    for letter in digits.bytes() {
        let digit = ALPHABET.iter().position(|known| *known == letter)?;
        bits = bits << 6 | i128::try_from(digit).ok()?;
    }
    let bytes = digits.len() * 6 / 8;
    let value = bits >> (digits.len() * 6 - bytes * 8);
    let sign = 1_i128.checked_shl(u32::try_from(bytes * 8).ok()?.checked_sub(1)?)?;
    Some(if value >= sign { value - 2 * sign } else { value })
}

/// A number of hundredths without trailing zeros.
fn hundredths(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = format!("{:03}", value.unsigned_abs());
    let (whole, fraction) = digits.split_at(digits.len() - 2);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undeclared_scale_is_recognised_by_its_digits() {
        assert_eq!(unscaled("AJI6cw==").map(hundredths), Some("95832.19".to_owned()));
        assert_eq!(unscaled("/w==").map(hundredths), Some("-0.01".to_owned()));
        assert_eq!(unscaled("AA==").map(hundredths), Some("0".to_owned()));
        assert_eq!(unscaled("not base64"), None);
    }

    #[test]
    fn a_rule_explains_its_own_difference_only() {
        let rules = of_hostile(&["orders: order_id=7".to_owned()]);
        let explains = |table: &str, column: &str, source: Option<&str>, lake: Option<&str>| {
            let cell = Cell { key: "order_id=7".to_owned(), source: source.map(str::to_owned), lake: lake.map(str::to_owned) };
            rules.iter().any(|rule| rule.table == table && rule.column == column && (rule.explains)(&cell))
        };
        assert!(explains("inventory", "qty_total", Some("18446744073709551615"), Some("-1")));
        assert!(!explains("inventory", "qty_total", Some("18446744073709551615"), None));
        assert!(explains("customers", "seen_at", Some("1970-01-01 00:00:00.001999"), Some("1970-01-01 00:00:00.001")));
        assert!(!explains("customers", "seen_at", Some("1970-01-01 00:00:00.001999"), Some("1970-01-01 00:00:00.002")));
        assert!(explains("orders", "(row)", None, Some("present")));
        assert!(!explains("orders", "(row)", Some("present"), None));
        assert!(!explains("orders", "notes", Some("a"), None));
    }
}
