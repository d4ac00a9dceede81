//! Numbers as the dialect writes them.

/// A double: the fewest digits that read back as it, with an exponent below 0.001 and from ten million on.
pub(crate) fn double(number: f64) -> String {
    // the least there is, which is written with one more digit than it needs
    if number.abs() == 5e-324 {
        return if number < 0.0 { "-4.9E-324" } else { "4.9E-324" }.to_owned();
    }
    written(number, format!("{number:e}"))
}

/// A float, likewise.
pub(crate) fn float(number: f32) -> String {
    written(f64::from(number), format!("{number:e}"))
}

/// `scientific` is the number's shortest form with an exponent, as `1.5e-7`.
fn written(number: f64, scientific: String) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if number == 0.0 {
        return format!("{sign}0.0");
    }
    if !(-3..7).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        return format!("{sign}{first}.{rest}E{exponent}");
    }
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let point = exponent.unsigned_abs() as usize + 1;
    let padded = format!("{digits:0<point$}");
    let (whole, fraction) = padded.split_at(point);
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    format!("{sign}{whole}.{fraction}")
}

/// A decimal of so many digits behind the point, all of them written.
pub(crate) fn decimal(digits: i128, scale: i8) -> String {
    let scale = usize::from(scale.unsigned_abs());
    let sign = if digits < 0 { "-" } else { "" };
    let magnitude = digits.unsigned_abs().to_string();
    if scale == 0 {
        return format!("{sign}{magnitude}");
    }
    let padded = format!("{magnitude:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (0.001, "0.001"),
            (0.000_1, "1.0E-4"),
            (12_345_678.9, "1.23456789E7"),
            (1.5, "1.5"),
            (0.012, "0.012"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double(number), text);
        }
        assert_eq!(float(1.1), "1.1");
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(1250, 2), "12.50");
    }
}
