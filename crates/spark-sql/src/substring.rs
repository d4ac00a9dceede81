//! `substring(text, from, length)` as the dialect means it: 0 is the first sign as 1 is, a negative start counts from the end, and a
//! length that begins before the text is cut by what lies before.

/// Signs of a text.
pub(crate) fn of(text: &str, start: i64, length: i64) -> &str {
    let place = |sign: i64| match usize::try_from(sign) {
        Ok(sign) => text.char_indices().nth(sign).map_or(text.len(), |(at, _)| at),
        Err(_) => 0,
    };
    let all = || text.chars().count();
    let (first, end) = range(if start < 0 { all() } else { 0 }, start, length);
    if end <= first { "" } else { &text[place(first)..place(end)] }
}

/// Bytes of bytes.
pub(crate) fn of_bytes(bytes: &[u8], start: i64, length: i64) -> &[u8] {
    let (first, end) = range(bytes.len(), start, length);
    let place = |at: i64| usize::try_from(at).unwrap_or(0).min(bytes.len());
    if end <= first { &[] } else { &bytes[place(first)..place(end)] }
}

/// The first place and the one after the last, from 0; `all` is only asked for a negative start.
fn range(all: usize, start: i64, length: i64) -> (i64, i64) {
    let first = match start {
        1.. => start - 1,
        0 => 0,
        // texts have fewer than 2^31 signs
        _ => start.saturating_add(all as i64),
    };
    (first, first.saturating_add(length))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn signs_are_counted_as_spark_counts_them() {
        for (start, length, expected) in [
            (1, 2, "äb"),
            (0, 2, "äb"),
            (2, 2, "bc"),
            (-2, 2, "cd"),
            (-6, 3, "ä"),
            (-6, 2, ""),
            (5, 1, ""),
            (2, 0, ""),
            (2, -1, ""),
            (2, i64::MAX, "bcd"),
            (i64::MIN, i64::MAX, "äbc"),
        ] {
            assert_eq!(of("äbcd", start, length), expected, "from {start}, {length} signs");
        }
    }
}
