//! `validate --portability`: what is not the same on other platforms, with its file and line.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use tributary_bundle::{Construct, Elsewhere, Loaded, Platform};

/// A line a construct and platform, and how many there are.
pub fn as_text(reads: &[Loaded]) -> String {
    let mut text = String::new();
    for (construct, platform, elsewhere) in all(reads) {
        let place = &construct.place;
        let which = construct.which.as_ref().map(|which| format!(" ({which})")).unwrap_or_default();
        let of = construct.dataset.as_ref().map(|dataset| format!(" of {dataset}")).unwrap_or_default();
        let what = match elsewhere {
            Elsewhere::Missing(_) => "is not there",
            _ => "is otherwise",
        };
        let _ = writeln!(
            text,
            "{}:{}:{}: {platform}: {}{which}{of} {what}: {} [{}]",
            place.file,
            place.line,
            place.column,
            construct.rule.construct,
            elsewhere.text().unwrap_or_default(),
            construct.rule.name
        );
    }
    for platform in Platform::ALL {
        let count = |key: &str| all(reads).filter(|(_, of, elsewhere)| *of == platform && elsewhere.key() == key).count();
        let _ = writeln!(text, "{platform}: {} not there, {} otherwise", count("missing"), count("differs"));
    }
    text
}

/// The same as a list of objects.
pub fn as_json(reads: &[Loaded]) -> Json {
    all(reads)
        .map(|(construct, platform, elsewhere)| {
            json!({
                "platform": platform.key(),
                "is": elsewhere.key(),
                "rule": construct.rule.name,
                "construct": construct.rule.construct,
                "which": construct.which,
                "dataset": construct.dataset,
                "file": construct.place.file,
                "line": construct.place.line,
                "column": construct.place.column,
                "message": elsewhere.text(),
            })
        })
        .collect()
}

fn all(reads: &[Loaded]) -> impl Iterator<Item = (&Construct, Platform, Elsewhere)> {
    let constructs = reads.iter().flat_map(|read| &read.constructs);
    constructs
        .flat_map(|construct| Platform::ALL.map(|platform| (construct, platform, construct.rule.on(platform))))
        .filter(|(.., elsewhere)| *elsewhere != Elsewhere::Same)
}
