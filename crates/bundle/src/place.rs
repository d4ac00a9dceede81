//! Where in which file something stands.

use tributary_specs::Place;

/// A place in one of the files that were read: its number in [`Files`], line and column from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct At {
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

impl At {
    /// Line and column from 1; what is further than can be counted is at the last that can.
    pub fn new(file: u32, line: usize, column: usize) -> Self {
        let counted = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { file, line: counted(line), column: counted(column) }
    }

    pub const fn start_of(file: u32) -> Self {
        Self { file, line: 1, column: 1 }
    }
}

/// One file that was read or looked at.
#[derive(Debug)]
pub(crate) struct File {
    /// From the bundle's folder on, parts separated by `/`.
    pub relative: String,
    /// As messages name it.
    pub shown: String,
    /// Its text, where it was read.
    pub text: String,
    /// Where its lines begin.
    pub lines: Vec<usize>,
}

/// A line longer than this is not looked into.
const LINE_BYTES_MAX: usize = 4_096;

/// Every file, in the order they were read; the first is the root file.
#[derive(Debug, Default)]
pub(crate) struct Files(Vec<File>);

impl Files {
    /// Takes a file down and gives it its number.
    pub fn add(&mut self, file: File) -> u32 {
        self.0.push(file);
        u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX)
    }

    pub fn set_text(&mut self, number: u32, text: String) {
        if let Some(file) = self.0.get_mut(number as usize) {
            file.lines = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
            file.text = text;
        }
    }

    /// The number of a file that was read already.
    pub fn number_of(&self, relative: &str) -> Option<u32> {
        let at = self.0.iter().position(|file| file.relative == relative)?;
        u32::try_from(at).ok()
    }

    pub fn get(&self, number: u32) -> Option<&File> {
        self.0.get(usize::try_from(number).ok()?)
    }

    pub fn shown(&self, number: u32) -> &str {
        self.get(number).map_or("", |file| &file.shown)
    }

    /// The folder of a file, from the bundle's folder on; empty for the bundle's folder itself.
    pub fn folder(&self, number: u32) -> &str {
        let relative = self.get(number).map_or("", |file| file.relative.as_str());
        relative.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Names of all files, each once, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.iter().map(|file| file.shown.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The same place by the file's name in messages.
    pub fn place(&self, at: At) -> Place {
        Place { file: self.shown(at.file).to_owned(), line: at.line as usize, column: at.column as usize }
    }

    /// `file:line` of a place.
    pub fn line(&self, at: At) -> String {
        format!("{}:{}", self.shown(at.file), at.line)
    }

    /// Where `part` stands in the text that begins at `at`, if it stands in the same line; else `at`.
    pub fn within(&self, at: At, part: &str) -> At {
        let line = self.get(at.file).and_then(|file| {
            let begin = *file.lines.get(at.line as usize - 1)?;
            let end = file.lines.get(at.line as usize).copied().unwrap_or(file.text.len());
            file.text.get(begin..end).filter(|line| line.len() <= LINE_BYTES_MAX)
        });
        let begin = at.column as usize - 1;
        let found = line.and_then(|line| {
            let (offset, _) = line.char_indices().nth(begin)?;
            let before = line[offset..].find(part)?;
            u32::try_from(line[offset..offset + before].chars().count()).ok()
        });
        At { column: at.column + found.unwrap_or(0), ..at }
    }
}
