//! `{{job.parameters.day}}`: what is filled in when a job runs.

use std::collections::BTreeMap;

/// What a run knows of itself, by name: `job.id`, `job.parameters.day`, `tasks.load.values.rows`, `input`, ….
pub type RunValues = BTreeMap<String, String>;

/// First words and what may follow them.
const KNOWN: &[(&str, &[&str])] = &[
    ("input", &[]),
    ("job", &["id", "name", "parameters", "repair_count", "run_id", "start_time", "trigger"]),
    ("task", &["execution_count", "name", "notebook_path", "run_id"]),
    ("tasks", &[]),
    ("workspace", &["id", "url"]),
];

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// The name between the braces, and the whole as it is written.
    Reference(&'a str, &'a str),
}

/// How many characters a reference has at most, so that looking for its end takes no time.
const LENGTH_MAX: usize = 512;

/// Cuts a text at its references.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut begin, mut from) = (0, 0);
    while let Some(found) = text[from..].find("{{") {
        let open = from + found;
        let rest = &text[open + 2..];
        let inside: usize = rest.chars().take(LENGTH_MAX).take_while(|c| is_part(*c) || *c == ' ').map(char::len_utf8).sum();
        let closed = rest[inside..].starts_with("}}");
        match closed.then(|| (open + 2 + inside + 2, rest[..inside].trim())) {
            Some((end, name)) if is_name(name) => {
                if begin < open {
                    pieces.push(Piece::Text(&text[begin..open]));
                }
                pieces.push(Piece::Reference(name, &text[open..end]));
                (begin, from) = (end, end);
            }
            _ => from = open + 2,
        }
    }
    if begin < text.len() {
        pieces.push(Piece::Text(&text[begin..]));
    }
    pieces
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_part)
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '[' | ']')
}

/// The text with everything filled in that the run knows. A part of the input is found in its JSON: `input.day`.
///
/// # Errors
/// The names that the run does not know.
///
/// ```
/// let values = [("job.parameters.day".to_owned(), "2026-11-30".to_owned())].into();
/// assert_eq!(tributary_bundle::fill_run_values("day={{job.parameters.day}}", &values), Ok("day=2026-11-30".to_owned()));
/// assert_eq!(tributary_bundle::fill_run_values("{{job.parameters.dya}}", &values), Err(vec!["job.parameters.dya".to_owned()]));
/// ```
pub fn fill_run_values(text: &str, values: &RunValues) -> Result<String, Vec<String>> {
    let mut filled = String::new();
    let mut unknown = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Reference(name, _) => match values.get(name).cloned().or_else(|| of_input(name, values)) {
                Some(value) => filled.push_str(&value),
                None => unknown.push(name.to_owned()),
            },
        }
    }
    if unknown.is_empty() { Ok(filled) } else { Err(unknown) }
}

fn of_input(name: &str, values: &RunValues) -> Option<String> {
    let rest = name.strip_prefix("input.")?;
    let input: serde_json::Value = serde_json::from_str(values.get("input")?).ok()?;
    let part = rest.split('.').try_fold(&input, |value, key| value.get(key))?;
    Some(part.as_str().map_or_else(|| part.to_string(), str::to_owned))
}

/// Whether a name can be known to a run of a job with these parameters and tasks; else what its first unknown part could be.
pub(crate) fn check<'a>(name: &'a str, parameters: &'a [&'a str], tasks: &'a [&'a str]) -> Result<(), (&'a str, Vec<String>)> {
    let parts: Vec<&str> = name.split('.').collect();
    let Some((first, known)) = KNOWN.iter().find(|(word, _)| *word == parts[0]) else {
        return Err((parts[0], KNOWN.iter().map(|(word, _)| (*word).to_owned()).collect()));
    };
    let listed = |word: &'a str, names: &[&str], before: &str| {
        if names.contains(&word) { Ok(()) } else { Err((word, names.iter().map(|name| format!("{before}{name}")).collect())) }
    };
    match (*first, parts.as_slice()) {
        ("input", _) => Ok(()),
        ("job", ["job", "parameters", parameter, ..]) => listed(parameter, parameters, "job.parameters."),
        ("tasks", ["tasks", task, ..]) => listed(task, tasks, "tasks."),
        (_, [_, second, ..]) => listed(second, known, &format!("{first}.")),
        _ => Err((name, known.iter().map(|word| format!("{first}.{word}")).collect())),
    }
}
