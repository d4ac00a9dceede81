//! Reads `.env` files.
//!
//! The rules, which `docs/reference/settings.md` repeats:
//!
//! - A line is blank, a comment (`#` first), or `NAME=value`, with `export ` before the name if you like and blanks around `=`.
//! - A value without quotes ends at the end of the line or before a `#` that follows a blank; blanks at its ends are dropped.
//!   A `#` inside a word belongs to it (`p#q`).
//! - `'single quotes'` keep everything as it is, over several lines if need be.
//! - `"double quotes"` do too, except for `\n`, `\r`, `\t`, `\"`, `\\`, `\$` and references. Another escape is an error.
//! - After a closing quote only a comment may follow.
//! - `${NAME}` outside single quotes is a reference: the environment's value, else that of an earlier line. A reference to
//!   nothing is an error, never an empty text. A `$` without a brace is itself.
//! - A name given twice: the last line wins, with a warning. References before it have taken the earlier value.
//! - Lines may end in LF or CRLF; no value keeps a carriage return at a line's end. A byte order mark is skipped.
//! - A line without `=` is an error.

use std::collections::BTreeMap;

/// What a `.env` file says, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dotenv {
    /// One entry a name, in the order of the lines that hold; the last line of a name.
    pub entries: Vec<DotenvEntry>,
    /// Lines that cannot be read.
    pub problems: Vec<DotenvProblem>,
}

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DotenvEntry {
    /// The name as it is written.
    pub name: String,
    /// After quotes and references.
    pub value: String,
    /// The line it begins in, counted from 1.
    pub line: usize,
    /// The line that gave the same name before, if any.
    pub earlier_line: Option<usize>,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DotenvProblem {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong; no value is in it.
    pub problem: String,
}

impl Dotenv {
    /// Reads the text of a file. `environment` is asked first for what `${NAME}` means.
    pub fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let text = text.strip_suffix('\r').unwrap_or(&text);
        let mut scanner = Scanner { rest: text, line: 1 };
        let mut by_name: BTreeMap<String, DotenvEntry> = BTreeMap::new();
        let mut problems = Vec::new();
        while !scanner.rest.is_empty() {
            let line = scanner.line;
            let lookup = |name: &str| environment(name).or_else(|| by_name.get(name).map(|entry| entry.value.clone()));
            match scanner.assignment(lookup) {
                Ok(None) => {}
                Ok(Some((name, value))) => {
                    let earlier_line = by_name.get(&name).map(|entry| entry.line);
                    by_name.insert(name.clone(), DotenvEntry { name, value, line, earlier_line });
                }
                Err(problem) => problems.push(DotenvProblem { line, problem }),
            }
            scanner.skip_line();
        }
        let mut entries: Vec<DotenvEntry> = by_name.into_values().collect();
        entries.sort_by_key(|entry| entry.line);
        Self { entries, problems }
    }
}

/// The text that is left and the number of its first line.
struct Scanner<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Scanner<'a> {
    /// Reads the assignment that begins here, if there is one, up to the end of its value.
    fn assignment(&mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<Option<(String, String)>, String> {
        self.skip_blanks();
        if matches!(self.rest.chars().next(), None | Some('\n' | '#')) {
            return Ok(None);
        }
        if let Some(after) = self.rest.strip_prefix("export").filter(|after| after.starts_with([' ', '\t'])) {
            self.rest = after;
            self.skip_blanks();
        }
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err("expected a name of letters, digits and underscores".into());
        }
        self.skip_blanks();
        self.rest = self.rest.strip_prefix('=').ok_or_else(|| format!("expected = after the name {name}"))?;
        let value = match self.rest.trim_start_matches([' ', '\t']).chars().next() {
            Some('\'') => self.single_quoted()?,
            Some('"') => self.double_quoted(&lookup)?,
            _ => return self.unquoted(&lookup).map(|value| Some((name.to_owned(), value))),
        };
        self.skip_blanks();
        match self.rest.chars().next() {
            None | Some('\n' | '#') => Ok(Some((name.to_owned(), value))),
            Some(_) => Err(format!("expected nothing but a comment after the closing quote of {name}")),
        }
    }

    fn single_quoted(&mut self) -> Result<String, String> {
        self.skip_blanks();
        let inside = &self.rest[1..];
        let end = inside.find('\'').ok_or("the single quote is not closed")?;
        self.advance(end + 2);
        Ok(inside[..end].to_owned())
    }

    fn double_quoted(&mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        self.skip_blanks();
        let inside = &self.rest[1..];
        let mut value = String::new();
        let mut at = 0;
        while let Some(c) = inside[at..].chars().next() {
            match c {
                '"' => {
                    self.advance(at + 2);
                    return Ok(value);
                }
                '\\' => {
                    let escaped = inside[at + 1..].chars().next();
                    value.push(match escaped {
                        Some('n') => '\n',
                        Some('r') => '\r',
                        Some('t') => '\t',
                        Some(c @ ('"' | '\\' | '$')) => c,
                        Some(c) => return Err(format!("unknown escape \\{c}; single quotes keep backslashes")),
                        None => break,
                    });
                    at += 2;
                }
                '$' if inside[at..].starts_with("${") => at += reference(&inside[at..], &lookup, &mut value)?,
                c => {
                    value.push(c);
                    at += c.len_utf8();
                }
            }
        }
        Err("the double quote is not closed".into())
    }

    fn unquoted(&mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let line = self.take_while(|c| c != '\n');
        let comment = line.match_indices('#').map(|(at, _)| at).find(|at| line[..*at].ends_with([' ', '\t']));
        let text = line[..comment.unwrap_or(line.len())].trim();
        let mut value = String::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if text[at..].starts_with("${") {
                at += reference(&text[at..], &lookup, &mut value)?;
            } else {
                value.push(c);
                at += c.len_utf8();
            }
        }
        Ok(value)
    }

    fn skip_blanks(&mut self) {
        self.take_while(|c| c == ' ' || c == '\t');
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !keep(c)).unwrap_or(self.rest.len());
        let taken = &self.rest[..end];
        self.advance(end);
        taken
    }

    fn skip_line(&mut self) {
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        self.advance(end);
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }
}

/// Appends what `${NAME}` at the beginning of `text` means and returns how many bytes it took.
fn reference(text: &str, lookup: impl Fn(&str) -> Option<String>, value: &mut String) -> Result<usize, String> {
    let end = text.find('}').ok_or("${ is not closed by }")?;
    let name = &text[2..end];
    value.push_str(&lookup(name).ok_or_else(|| format!("${{{name}}} is set neither in the environment nor by an earlier line"))?);
    Ok(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Dotenv {
        Dotenv::parse(text, |name| (name == "OUTER").then(|| "outer".into()))
    }

    fn value(text: &str) -> Result<String, String> {
        let mut dotenv = parse(text);
        match dotenv.problems.pop() {
            Some(problem) => Err(problem.problem),
            None => Ok(dotenv.entries.remove(0).value),
        }
    }

    #[test]
    fn blanks_comments_and_hashes() {
        for (text, expected) in [
            ("A=b", "b"),
            ("A =  b  ", "b"),
            ("  export\tA = b # note", "b"),
            ("A=p#q", "p#q"),
            ("A=#x", "#x"),
            ("A= # note", ""),
            ("A=", ""),
            ("A=a b\tc # note # again", "a b\tc"),
            ("A=it's", "it's"),
            ("A='x # y' # note", "x # y"),
            ("A=\"x # y\"", "x # y"),
            ("\u{feff}A=b", "b"),
            ("A=a=b", "a=b"),
            ("exported=1", "1"),
        ] {
            assert_eq!(value(text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn quotes_and_escapes() {
        for (text, expected) in [
            (r#"A="l1\nl2""#, "l1\nl2"),
            (r#"A='l1\nl2'"#, r"l1\nl2"),
            (r#"A="a\"b\\c\$d""#, r#"a"b\c$d"#),
            ("A=\"l1\r\nl2\"\r\n", "l1\nl2"),
            ("A='l1\nl2'", "l1\nl2"),
            ("A=''", ""),
            (r"A=C:\new", r"C:\new"),
        ] {
            assert_eq!(value(text).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn references_take_the_environment_then_earlier_lines_and_are_never_empty() {
        assert_eq!(value("A=${OUTER}/x").as_deref(), Ok("outer/x"));
        assert_eq!(value("A=\"${OUTER}\"").as_deref(), Ok("outer"));
        assert_eq!(value("A='${OUTER}'").as_deref(), Ok("${OUTER}"));
        assert_eq!(value("A=$OUTER").as_deref(), Ok("$OUTER"));
        assert!(value("A=${MISSING}").is_err());
        assert!(value("A=${OUTER").is_err());
        let dotenv = parse("OUTER=inner\nB=${OUTER}");
        assert_eq!(dotenv.entries[1].value, "outer", "the environment stands above the file");
    }

    #[test]
    fn lines_that_cannot_be_read_are_named_and_the_rest_is_read() {
        let dotenv = parse("A=1\nH\n1B=2\n-=3\nC='open\nD=4");
        let lines: Vec<usize> = dotenv.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
        let names: Vec<&str> = dotenv.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["A", "D"]);
        assert!(value("A=\"x\" y").is_err());
        assert!(value(r#"A="\q""#).is_err());
        assert!(value(r#"A="open"#).is_err());
    }

    #[test]
    fn the_last_line_of_a_name_holds_and_tells_of_the_earlier_one() {
        let dotenv = parse("A=1\nB=${A}0\nA=2\n");
        assert_eq!(dotenv.entries.len(), 2);
        assert_eq!((dotenv.entries[0].name.as_str(), dotenv.entries[0].value.as_str()), ("B", "10"));
        assert_eq!(dotenv.entries[1], DotenvEntry { name: "A".into(), value: "2".into(), line: 3, earlier_line: Some(1) });
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic_and_without_a_carriage_return_at_the_end(text in r#"([A-C =#'"$\{\}\\\r\n]|export |\r\n){0,40}"#) {
            for entry in parse(&text).entries {
                proptest::prop_assert!(!entry.name.is_empty());
            }
        }

        #[test]
        fn a_quoted_value_comes_back_as_it_was(value in "[^'\r]{0,30}") {
            let dotenv = parse(&format!("A='{value}'\r\n"));
            proptest::prop_assert_eq!(&dotenv.entries[0].value, &value);
        }
    }
}
