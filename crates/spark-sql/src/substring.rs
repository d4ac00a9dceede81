//! `substring(text, from, length)` as the dialect means it: 0 is the first sign as 1 is, a negative start counts from the end, and a
//! length that begins before the text is cut by what lies before.

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, AsArray, StringArray};
use tributary_lake::arrow::datatypes::{DataType, Int64Type};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::logical_expr::{ScalarUDF, TypeSignature};

use crate::scalar;

/// What the rewritten query calls it.
pub(crate) const NAME: &str = "signs";

/// The function of a text, where it starts and how many signs are taken.
pub(crate) fn function() -> ScalarUDF {
    let takes = TypeSignature::Exact(vec![DataType::Utf8, DataType::Int64, DataType::Int64]);
    scalar::function(NAME, takes, |_| Ok(DataType::Utf8), substrings)
}

fn substrings(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let (starts, lengths) = (arguments[1].as_primitive::<Int64Type>(), arguments[2].as_primitive::<Int64Type>());
    let signs = arguments[0].as_string::<i32>().iter().zip(starts.iter().zip(lengths)).map(|row| match row {
        (Some(text), (Some(start), Some(length))) => Some(substring(text, start, length)),
        _ => None,
    });
    Ok(Arc::new(signs.collect::<StringArray>()))
}

fn substring(text: &str, start: i64, length: i64) -> &str {
    let first = match start {
        1.. => start - 1,
        0 => 0,
        // texts have fewer than 2^31 signs
        _ => start.saturating_add(text.chars().count() as i64),
    };
    let end = first.saturating_add(length);
    let place = |sign: i64| match usize::try_from(sign) {
        Ok(sign) => text.char_indices().nth(sign).map_or(text.len(), |(at, _)| at),
        Err(_) => 0,
    };
    if end <= first { "" } else { &text[place(first)..place(end)] }
}

#[cfg(test)]
mod tests {
    use super::substring;

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
            assert_eq!(substring("äbcd", start, length), expected, "from {start}, {length} signs");
        }
    }
}
