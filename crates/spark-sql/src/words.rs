//! What the engine says, in our texts.

use tributary_lake::datafusion::error::DataFusionError;

/// What the engine says of a text, in one line, without its own prefixes.
pub fn words(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::Plan(text) | DataFusionError::Execution(text) | DataFusionError::NotImplemented(text) => text.clone(),
        root => root.strip_backtrace(),
    };
    let text = text.split("\n\nbacktrace:").next().unwrap_or_default();
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// What the engine says of rows, in one line, without the values of the rows: texts in quotes and numbers go. What it says of
/// memory stays.
///
/// ```
/// use tributary_lake::datafusion::error::DataFusionError;
/// use tributary_spark_sql::words_without_values;
///
/// let error = DataFusionError::Execution("cannot cast 'twelve' to value of Int64 type".to_owned());
/// assert_eq!(words_without_values(&error), "cannot cast '…' to value of Int64 type");
/// ```
pub fn words_without_values(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => words(error),
        _ => without_values(&words(error)),
    }
}

/// The text with `…` for what stands in quotes and `#` for numbers.
pub fn without_values(text: &str) -> String {
    let mut told = String::new();
    let mut quote = None;
    let mut in_word = false;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => {
                told.push('…');
                told.push(c);
                quote = None;
            }
            Some(_) => {}
            None if matches!(c, '\'' | '"' | '`') && !in_word => {
                told.push(c);
                quote = Some(c);
            }
            // `Int64` is a word, `64` a value.
            None if c.is_ascii_digit() && !in_word => {
                if !told.ends_with('#') {
                    told.push('#');
                }
            }
            None => told.push(c),
        }
        in_word = quote.is_none() && (c.is_alphabetic() || c == '_' || (in_word && c.is_alphanumeric()));
    }
    if quote.is_some() {
        told.push('…');
    }
    told
}

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn what_the_engine_says_is_kept_without_the_values_of_rows() {
        for (said, told) in [
            (
                "Arrow error: Cast error: Cannot cast string 'twelve' to value of Int64 type",
                "Arrow error: Cast error: Cannot cast string '…' to value of Int64 type",
            ),
            ("Arithmetic overflow: Overflow happened on: 9223372036854775807 + -1", "Arithmetic overflow: Overflow happened on: # + -#"),
            ("Parser error: Error parsing \"it's\" as Date32", "Parser error: Error parsing \"…\" as Date32"),
            ("12.5 is too large to store in a Decimal128 of precision 3", "#.# is too large to store in a Decimal128 of precision #"),
            ("Divide by zero error", "Divide by zero error"),
            ("left open 'secret", "left open '…"),
        ] {
            assert_eq!(without_values(said), told);
        }
    }
}
