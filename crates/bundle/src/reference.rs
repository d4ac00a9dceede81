//! `${a.b[0].c}` in texts.

use std::fmt;

/// One step of a reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Segment {
    Key(String),
    Index(usize),
}

/// A way to a value of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Reference(pub Vec<Segment>);

impl Reference {
    /// The key at a step.
    pub fn key(&self, at: usize) -> Option<&str> {
        match self.0.get(at)? {
            Segment::Key(key) => Some(key),
            Segment::Index(_) => None,
        }
    }

    /// With `var.x` written out as `variables.x.value`.
    pub fn written_out(&self) -> Self {
        match self.0.as_slice() {
            [Segment::Key(var), name, rest @ ..] if var == "var" => {
                let before = [Segment::Key("variables".to_owned()), name.clone(), Segment::Key("value".to_owned())];
                Self(before.into_iter().chain(rest.iter().cloned()).collect())
            }
            _ => self.clone(),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if at == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

/// How many bytes a reference has at most, so that looking for its end takes no time.
const LENGTH_MAX: usize = 512;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Reference(Reference),
}

/// Cuts a text at its references. What only looks like one stays text, `${{…}}` too.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("${") {
        let open = from + found;
        let inside = text.as_bytes()[open + 2..].iter().take(LENGTH_MAX).take_while(|byte| is_part(**byte)).count();
        let close = open + 2 + inside;
        let closed = text.as_bytes().get(close) == Some(&b'}');
        match closed.then(|| parse(&text[open + 2..close])).flatten().map(|reference| (close, reference)) {
            Some((close, reference)) => {
                if begin < open {
                    pieces.push(Piece::Text(&text[begin..open]));
                }
                pieces.push(Piece::Reference(reference));
                begin = close + 1;
                from = close + 1;
            }
            None => from = open + 2,
        }
    }
    if begin < text.len() {
        pieces.push(Piece::Text(&text[begin..]));
    }
    pieces
}

/// Whether a byte can stand inside a reference.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'[' | b']')
}

/// Whether a text has a reference in it.
pub(crate) fn has_reference(text: &str) -> bool {
    pieces(text).iter().any(|piece| matches!(piece, Piece::Reference(_)))
}

/// The reference that a text is.
pub(crate) fn only_reference(text: &str) -> Option<Reference> {
    match pieces(text).as_slice() {
        [Piece::Reference(reference)] => Some(reference.clone()),
        _ => None,
    }
}

/// What stands between the braces.
pub(crate) fn parse(text: &str) -> Option<Reference> {
    let mut segments = Vec::new();
    for part in text.split('.') {
        let (name, indices) = match part.find('[') {
            Some(open) => part.split_at(open),
            None => (part, ""),
        };
        if !is_name(name) {
            return None;
        }
        segments.push(Segment::Key(name.to_owned()));
        for index in indices.split_inclusive(']') {
            let digits = index.strip_prefix('[')?.strip_suffix(']')?;
            if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
                return None;
            }
            segments.push(Segment::Index(digits.parse().ok()?));
        }
    }
    (!segments.is_empty()).then_some(Reference(segments))
}

/// A letter, then letters, digits, `-` and `_`, and a letter or digit at the end.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_as_a_reference_is_one() {
        for (text, expected) in [
            ("var.x", Some("var.x")),
            ("resources.jobs.my-job.tasks[0].depends_on[12].task_key", Some("resources.jobs.my-job.tasks[0].depends_on[12].task_key")),
            ("var.x_", None),
            ("var..x", None),
            ("1var.x", None),
            ("var.x[a]", None),
            ("var.x[1", None),
            ("{job.id}", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(|reference| reference.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_is_cut_at_its_references_alone() {
        let cut = |text| pieces(text).iter().map(|piece| format!("{piece:?}").replace("Key", "")).collect::<Vec<_>>().len();
        assert_eq!(cut("a ${var.x} b ${var.y}"), 4);
        assert_eq!(cut("${var.x}${var.y}"), 2);
        assert_eq!(cut("${{job.id}} $${var.x}"), 2);
        assert_eq!(cut("${var.x"), 1);
        assert_eq!(cut(""), 0);
        assert!(has_reference("$${var.x}"));
        assert!(only_reference("${var.x}").is_some() && only_reference("${var.x} ").is_none());
    }
}
