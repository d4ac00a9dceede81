//! Golden files: outputs a person has looked at.

use std::path::Path;
use std::{env, fs};

/// Compares a text with the golden file of this path (relative to the crate that calls); with `TRIBUTARY_BLESS=1` in the
/// environment the file is written anew instead.
///
/// ```no_run
/// tributary_testkit::assert_golden!("tests/golden/explain.txt", "plan: …\n");
/// ```
#[macro_export]
macro_rules! assert_golden {
    ($path:expr, $actual:expr $(,)?) => {
        $crate::golden::compare(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join($path).as_path(), &$actual)
    };
}

/// What [`assert_golden!`](crate::assert_golden!) does, for a path of any origin.
///
/// # Panics
/// When the file is missing or differs; the message shows the first line that does and the command that accepts it.
#[track_caller]
pub fn compare(path: &Path, actual: &str) {
    if env::var("TRIBUTARY_BLESS").is_ok_and(|value| value == "1") {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap_or_else(|why| panic!("create {}: {why}", parent.display()));
        }
        fs::write(path, actual).unwrap_or_else(|why| panic!("write {}: {why}", path.display()));
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_else(|why| panic!("read {}: {why}; run `just bless` to write it", path.display()));
    if let Some(difference) = first_difference(&expected, actual) {
        panic!("{} differs {difference}\nrun `just bless` to accept; the whole text:\n{actual}", path.display());
    }
}

fn first_difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let mut lines = expected.lines().zip(actual.lines()).enumerate();
    Some(match lines.find(|(_, (expected, actual))| expected != actual) {
        Some((at, (expected, actual))) => format!("at line {}:\n  expected: {expected}\n  actual:   {actual}", at + 1),
        None => format!("in length: {} lines expected, {} there", expected.lines().count(), actual.lines().count()),
    })
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_different_line_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n").as_deref(), Some("at line 2:\n  expected: b\n  actual:   c"));
        assert!(first_difference("a\n", "a\nb\n").is_some_and(|text| text.starts_with("in length")));
        assert!(first_difference("a", "a\n").is_some());
    }
}
