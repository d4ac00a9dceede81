//! The bundle's folder: every path that is followed stays in it, every file that is read is small and text.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use tributary_fault::nearest;

use crate::error::Error;
use crate::place::{At, File, Files};
use crate::sql::Located;

/// How large one file is at most.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;
/// How large all files of a bundle are at most.
const ALL_BYTES_MAX: u64 = 64 << 20;
/// How many entries of folders one pattern looks at, at most.
const ENTRIES_MAX: usize = 20_000;
/// What makes a folder a table, whose files, however many, are not looked through.
const LOG: &str = "_delta_log";
/// How deep folders are followed at most.
const FOLDERS_MAX: usize = 32;

/// The folder of the root file.
#[derive(Debug)]
pub(crate) struct Folder {
    /// As it was given; stands before the names of files in messages.
    shown: PathBuf,
    /// Without symbolic links.
    real: PathBuf,
    bytes_read: u64,
}

/// What a pattern found, and what it could not follow.
pub(crate) struct Matches {
    /// From the bundle's folder on, in alphabetical order.
    pub paths: Vec<String>,
    pub mistakes: Vec<Error>,
}

impl Folder {
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let none = |reason: String| Error::NoBundle { path: folder.display().to_string(), reason };
        let real = fs::canonicalize(folder).map_err(|error| none(reason_of(&error)))?;
        if !real.is_dir() {
            return Err(none("it is not a folder".to_owned()));
        }
        let shown = if folder == Path::new(".") { PathBuf::new() } else { folder.to_owned() };
        Ok(Self { shown, real, bytes_read: 0 })
    }

    /// The folder as it was given; empty for the working folder.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// The folder without symbolic links.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// A file's name in messages.
    pub fn name_of(&self, relative: &str) -> String {
        let shown = self.shown.join(relative);
        shown.to_string_lossy().replace('\\', "/")
    }

    /// A path that stands in a file of `folder`, from the bundle's folder on; refused where it leads out of the bundle.
    pub fn resolve(&self, folder: &str, path: &str) -> Result<String, Error> {
        let outside = |by_link| Error::OutsideBundle { path: path.to_owned(), by_link };
        if path.starts_with('/') || path.starts_with('~') || path.contains('\0') {
            return Err(outside(false));
        }
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in path.split(['/', '\\']) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop().ok_or_else(|| outside(false))?),
                part => parts.push(part),
            }
        }
        let relative = parts.join("/");
        match fs::canonicalize(self.real.join(&relative)) {
            Ok(real) if !real.starts_with(&self.real) => Err(outside(true)),
            _ => Ok(relative),
        }
    }

    pub fn is_file(&self, relative: &str) -> bool {
        self.real.join(relative).is_file()
    }

    pub fn is_folder(&self, relative: &str) -> bool {
        self.real.join(relative).is_dir()
    }

    /// That a file is not there, with the nearest that is.
    pub fn missing(&self, relative: &str) -> Error {
        let (folder, name) = relative.rsplit_once('/').unwrap_or(("", relative));
        let entries = fs::read_dir(self.real.join(folder)).into_iter().flatten().take(1000).flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        let near = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
        Error::NoFile { path: relative.to_owned(), nearest: near }
    }

    /// Reads a file and takes it down. A mistake comes with its place, also in the file itself.
    pub fn read(&mut self, relative: &str, files: &mut Files) -> Result<u32, (At, Error)> {
        let number =
            files.add(File { relative: relative.to_owned(), shown: self.name_of(relative), text: String::new(), lines: Vec::new() });
        let text = self.text_of(relative).map_err(|Located { line, column, error }| (At { file: number, line, column }, error))?;
        files.set_text(number, text);
        Ok(number)
    }

    /// The text of a file.
    pub fn text_of(&mut self, relative: &str) -> Result<String, Located> {
        let whole = Located::from;
        let unreadable = |reason: String| Error::Unreadable { path: relative.to_owned(), reason };
        let path = self.real.join(relative);
        let metadata = fs::metadata(&path).map_err(|error| whole(unreadable(reason_of(&error))))?;
        if !metadata.is_file() {
            return Err(whole(unreadable("it is not a file".to_owned())));
        }
        let file = fs::File::open(&path).map_err(|error| whole(unreadable(reason_of(&error))))?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| whole(unreadable(reason_of(&error))))?;
        self.bytes_read = self.bytes_read.saturating_add(bytes.len() as u64);
        if bytes.len() as u64 > FILE_BYTES_MAX {
            let limit = format!("more than {FILE_BYTES_MAX} bytes");
            return Err(whole(Error::TooLarge { what: relative.to_owned(), limit }));
        }
        if self.bytes_read > ALL_BYTES_MAX {
            let limit = format!("its files have more than {ALL_BYTES_MAX} bytes");
            return Err(whole(Error::TooLarge { what: "the bundle".to_owned(), limit }));
        }
        text_of(bytes).map_err(|(line, column)| Located { line, column, error: unreadable("it is not text in UTF-8".to_owned()) })
    }

    /// Files that a pattern with `*`, `?`, `[…]` and `**` names, from the bundle's folder on. Links are followed inside the bundle.
    pub fn matching(&self, pattern: &str) -> Matches {
        let mut matches = Matches { paths: Vec::new(), mistakes: Vec::new() };
        let glob = match globset::GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build() {
            Ok(glob) => glob.compile_matcher(),
            Err(error) => {
                matches.mistakes.push(Error::Include { pattern: pattern.to_owned(), problem: error.kind().to_string() });
                return matches;
            }
        };
        let literal: Vec<&str> = pattern.split('/').take_while(|part| !has_wildcard(part)).collect();
        let start = literal.join("/");
        let depth = if pattern.contains("**") { FOLDERS_MAX } else { pattern.split('/').count() - literal.len() };
        let mut walk = Walk { folder: self, glob: &glob, matches: &mut matches, seen: HashSet::new(), entries: 0 };
        walk.enter(&start, depth);
        matches.paths.sort();
        matches
    }

    /// All files below a folder, at any depth.
    pub fn below(&self, relative: &str) -> Matches {
        let escaped = globset::escape(relative);
        self.matching(&if escaped.is_empty() { "**".to_owned() } else { format!("{escaped}/**") })
    }
}

/// One look through folders.
struct Walk<'a> {
    folder: &'a Folder,
    glob: &'a globset::GlobMatcher,
    matches: &'a mut Matches,
    seen: HashSet<PathBuf>,
    entries: usize,
}

impl Walk<'_> {
    fn enter(&mut self, relative: &str, depth: usize) {
        let path = self.folder.real.join(relative);
        let Ok(real) = fs::canonicalize(&path) else { return };
        if depth == 0 || !real.is_dir() || real.join(LOG).is_dir() || !self.seen.insert(real) {
            return;
        }
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                let limit = format!("more than {ENTRIES_MAX} entries");
                self.matches.mistakes.push(Error::TooLarge { what: format!("the folder {relative:?}"), limit });
                return;
            }
            names.extend(entry.file_name().into_string().ok().filter(|name| !name.starts_with('.')));
        }
        names.sort();
        for name in names {
            let below = if relative.is_empty() { name } else { format!("{relative}/{name}") };
            match self.folder.resolve("", &below) {
                Err(error) if self.glob.is_match(&below) || (depth > 1 && self.folder.is_folder(&below)) => {
                    self.matches.mistakes.push(error)
                }
                Err(_) => {}
                Ok(below) if self.folder.is_folder(&below) => self.enter(&below, depth - 1),
                Ok(below) if self.glob.is_match(&below) => self.matches.paths.push(below),
                Ok(_) => {}
            }
            if self.entries > ENTRIES_MAX {
                return;
            }
        }
    }
}

pub(crate) fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

/// The text, or line and column of the first byte that is none.
fn text_of(bytes: Vec<u8>) -> Result<String, (u32, u32)> {
    let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => bytes,
    };
    let valid = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    };
    let end = bytes[..valid].iter().position(|byte| *byte == 0).unwrap_or(valid);
    if end < bytes.len() {
        let before = String::from_utf8_lossy(&bytes[..end]);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        return Err((u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX)));
    }
    String::from_utf8(bytes).map_err(|_| (1, 1))
}

fn reason_of(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it is not there".to_owned(),
        std::io::ErrorKind::PermissionDenied => "you may not read it".to_owned(),
        kind => kind.to_string(),
    }
}
