//! Requests to the services' own interfaces and to the binaries' metrics, by curl.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Asks once; the answer's text. A status of 400 or above is an error with that text.
pub fn call(method: &str, url: &str) -> Result<String> {
    let output = Command::new("curl").args(["-sS", "-m", "20", "--fail-with-body", "-X", method, url]).output();
    let output = output.context("starting curl")?;
    let (answer, problem) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{method} {url}: {problem} {answer}");
    Ok(answer.into_owned())
}

/// Samples of a page in the text format of Prometheus, by name and labels as they are written.
pub fn samples(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).filter_map(|(series, value)| Some((series.to_owned(), value.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_told_from_comments() {
        let page = "# HELP a what it is\n# TYPE a gauge\na{of=\"x y\"} 2.5\nb 3\n";
        assert_eq!(samples(page), BTreeMap::from([("a{of=\"x y\"}".to_owned(), 2.5), ("b".to_owned(), 3.0)]));
    }
}
