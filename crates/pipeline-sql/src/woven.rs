//! Texts put together from parts of files, which know where each part stands.

use std::ops::Range;
use std::sync::Arc;

use tributary_specs::Place;

use crate::place::Lines;

/// Steps of one text at most: behind them everything stands where the last one does.
const STEPS_MAX: usize = 20_000;

/// A text and where its parts stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Woven {
    pub(crate) text: String,
    pub(crate) trail: Trail,
}

/// Where the bytes of a text came from, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trail {
    steps: Vec<Step>,
}

/// Where the bytes of a text from `at` on came from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    at: usize,
    lines: Arc<Lines>,
    original: usize,
    /// Whether the bytes are the file's own, one for one.
    verbatim: bool,
}

impl Trail {
    /// Notes where what comes from `at` on stands.
    pub(crate) fn step(&mut self, at: usize, lines: &Arc<Lines>, original: usize, verbatim: bool) {
        let verbatim = verbatim && self.steps.len() + 1 < STEPS_MAX;
        if self.steps.len() < STEPS_MAX {
            self.steps.push(Step { at, lines: Arc::clone(lines), original, verbatim });
        }
    }

    /// How many steps it has.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The same, of which only the beginning is known.
    pub(crate) fn forgotten(mut self) -> Self {
        self.steps.truncate(1);
        self.steps.iter_mut().for_each(|step| step.verbatim = false);
        self
    }

    /// Where a byte stands: its file, and the byte there.
    fn origin(&self, at: usize) -> Option<(&Arc<Lines>, usize)> {
        let step = self.steps.get(self.steps.partition_point(|step| step.at <= at).saturating_sub(1))?;
        let further = if step.verbatim { at.saturating_sub(step.at) } else { 0 };
        Some((&step.lines, step.original + further))
    }

    /// Adds where the bytes of `range` of another text stand, which come to `at`.
    fn append(&mut self, at: usize, other: &Self, range: &Range<usize>) {
        let first = other.steps.partition_point(|step| step.at <= range.start).saturating_sub(1);
        for step in other.steps.iter().skip(first).take_while(|step| step.at < range.end) {
            let into = range.start.saturating_sub(step.at);
            let original = step.original + if step.verbatim { into } else { 0 };
            self.step(at + (step.at + into).saturating_sub(range.start), &step.lines, original, step.verbatim);
        }
    }
}

impl Woven {
    /// Adds a part of another text.
    pub(crate) fn push(&mut self, text: &str, trail: &Trail, range: Range<usize>) {
        let Some(part) = text.get(range.clone()).filter(|part| !part.is_empty()) else { return };
        self.trail.append(self.text.len(), trail, &range);
        self.text.push_str(part);
    }

    /// Adds all of another text.
    pub(crate) fn add(&mut self, other: &Self) {
        self.push(&other.text, &other.trail, 0..other.text.len());
    }

    /// Adds text that stands for what is at a byte of another text.
    pub(crate) fn put(&mut self, text: &str, trail: &Trail, at: usize) {
        if let Some((lines, original)) = trail.origin(at) {
            self.trail.step(self.text.len(), lines, original, false);
        }
        self.text.push_str(text);
    }

    /// Adds words of ours: they stand where what is before them does.
    pub(crate) fn say(&mut self, text: &str) {
        if let Some((lines, original)) = self.trail.origin(self.text.len()).map(|(lines, at)| (Arc::clone(lines), at)) {
            self.trail.step(self.text.len(), &lines, original, false);
        }
        self.text.push_str(text);
    }

    /// A part of it.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let mut part = Self::default();
        part.push(&self.text, &self.trail, range);
        part
    }

    /// Where a byte of it stands.
    pub(crate) fn place(&self, at: usize) -> Option<Place> {
        let (lines, original) = self.trail.origin(at)?;
        Some(lines.place(original))
    }

    /// Where a line and column of it stand, both counted from 1, columns in characters.
    pub(crate) fn place_at(&self, line: u64, column: u64) -> Option<Place> {
        let mut rest = self.text.as_str();
        for _ in 1..line {
            rest = &rest[rest.find('\n')? + 1..];
        }
        let into = rest.char_indices().nth(usize::try_from(column).ok()?.saturating_sub(1)).map_or(rest.len(), |(at, _)| at);
        self.place(self.text.len() - rest.len() + into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_know_where_they_stand_however_they_are_put_together() {
        let lines = Arc::new(Lines::new("a.sql", "select é, b\r\nfrom t"));
        let mut trail = Trail::default();
        trail.step(0, &lines, 0, true);
        let file = Woven { text: "select é, b\r\nfrom t".to_owned(), trail };
        let mut woven = Woven::default();
        woven.say("SELECT * FROM (");
        woven.push(&file.text, &file.trail, 0..19);
        woven.put("silver.t", &file.trail, 19);
        woven.say(") AS v");
        let at = |needle: &str| {
            let before = &woven.text[..woven.text.find(needle).unwrap()];
            let line = before.matches('\n').count() as u64 + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() as u64 + 1;
            woven.place_at(line, column).map(|place| (place.line, place.column))
        };
        assert_eq!(woven.text, "SELECT * FROM (select é, b\r\nfrom silver.t) AS v");
        assert_eq!(
            [at("b\r"), at("from s"), at("silver"), at("t) AS"), at("AS v")].map(Option::unwrap),
            [(1, 11), (2, 1), (2, 6), (2, 6), (2, 6)]
        );
        assert_eq!(woven.part(22..27).place(0).map(|place| place.column), Some(8));
    }

    #[test]
    fn a_text_of_very_many_parts_keeps_few_of_their_places() {
        let lines = Arc::new(Lines::new("a.sql", "x"));
        let mut trail = Trail::default();
        (0..STEPS_MAX * 2).for_each(|at| trail.step(at, &lines, at, true));
        assert_eq!(trail.len(), STEPS_MAX);
        assert_eq!(trail.origin(STEPS_MAX * 2).unwrap().1, STEPS_MAX - 1);
        assert_eq!(trail.forgotten().len(), 1);
    }
}
