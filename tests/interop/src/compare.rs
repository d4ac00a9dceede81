//! Our reading beside an engine's.

use crate::engine::Read;

/// Counts the lines that are printed and what was not equal.
#[derive(Debug, Default)]
pub struct Comparison {
    pub lines: usize,
    pub failed: usize,
}

impl Comparison {
    /// Prints one line.
    pub fn of(&mut self, what: &str, engine: &str, ours: &[String], theirs: Option<&Read>) {
        self.lines += 1;
        match theirs {
            Some(Read::Lines(theirs)) if theirs == ours => println!("{what}: {engine} rows {} agree", ours.len()),
            Some(Read::Lines(theirs)) => self.fail(&format!("{what}: {engine} differs\n{}", difference(ours, theirs))),
            Some(Read::Refused(reason)) => self.fail(&format!("{what}: {engine} refused it\n{reason}")),
            None => self.fail(&format!("{what}: {engine} has not read it")),
        }
    }

    /// Prints a line that is not about rows.
    pub fn says(&mut self, line: &str) {
        self.lines += 1;
        println!("{line}");
    }

    /// Prints that something is not as it should be.
    pub fn fail(&mut self, line: &str) {
        self.failed += 1;
        println!("{line}");
    }
}

/// The first lines that one side has and the other lacks; both are sorted.
fn difference(ours: &[String], theirs: &[String]) -> String {
    let (mut text, mut at, mut beside) = (format!("  ours {} rows, theirs {}", ours.len(), theirs.len()), 0, 0);
    let mut shown = 0;
    while shown < 6 && (at < ours.len() || beside < theirs.len()) {
        let order = match (ours.get(at), theirs.get(beside)) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Greater,
        };
        if order.is_eq() {
            (at, beside) = (at + 1, beside + 1);
            continue;
        }
        if order.is_lt() {
            text += &format!("\n  only ours    {}", ours[at]);
            at += 1;
        } else {
            text += &format!("\n  only theirs  {}", theirs[beside]);
            beside += 1;
        }
        shown += 1;
    }
    text
}
