//! Amounts in words. Pure.

/// `1 file`, `2 files`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest unit of 1024 that leaves at least one.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, shift)| number >> shift > 0) {
        Some((unit, shift)) => {
            let tenths = (u128::from(number) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{number} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_grouped() {
        assert_eq!([count(1, "file"), count(1_234_567, "row")], ["1 file", "1,234,567 rows"]);
        assert_eq!([bytes(0), bytes(1023), bytes(1536), bytes(10 << 30)], ["0 B", "1023 B", "1.5 KiB", "10.0 GiB"]);
    }
}
