//! What a scraper sees: a page fetched, its text read by the rules of the format.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A page: its status and its body.
pub fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Samples of the text format by name and labels as they are written. Panics where a line breaks the format: a sample without a
/// type before it, a name or label out of order, a value that is no number, a series that comes twice.
pub fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut current) = (BTreeMap::new(), None);
    let mut families = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && !families.contains(&name), "{line}");
            families.push(name);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(families.last(), Some(&name), "a type follows its help: {line}");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            current = Some((name, kind));
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let (family, kind) = current.unwrap();
            assert_eq!(name, family, "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(kind == "gauge" || value >= 0.0, "{line}");
            if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                assert_labels(labels);
            }
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} comes twice");
        }
    }
    samples
}

/// `{a="…",b="…"}` with quotes, backslashes and line ends escaped.
fn assert_labels(text: &str) {
    let mut rest = text.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        assert!(name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'), "{text}");
        let mut end = None;
        let mut escaped = false;
        for (at, letter) in after.char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let end = end.unwrap_or_else(|| panic!("{text}"));
        rest = after[end + 1..].strip_prefix(',').unwrap_or(&after[end + 1..]);
    }
}
