//! A folder of this machine that its store cannot list to the end, because some path below it cannot be read.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// What is below a folder: the files that can be reached, and why the other paths cannot.
#[derive(Debug, Default)]
pub(super) struct Reached {
    pub files: Vec<PathBuf>,
    pub faults: Vec<(PathBuf, String)>,
}

/// Why a person must act before a path can be read; none for what a retry may change.
pub(super) fn needs_a_person(error: &Error) -> Option<String> {
    /// `ELOOP`: links that lead in a circle.
    const LOOP: i32 = 40;
    match error.kind() {
        ErrorKind::PermissionDenied => Some("permission denied".to_owned()),
        _ if cfg!(target_os = "linux") && error.raw_os_error() == Some(LOOP) => Some("its symbolic links lead in a circle".to_owned()),
        _ => None,
    }
}

/// Walks a folder, links followed. A link whose target is gone is no file, as the store has it.
pub(super) fn walk(folder: &Path) -> Reached {
    let mut reached = Reached::default();
    // Each folder with the real folders above it, by which a circle is known.
    let mut open: Vec<(PathBuf, Vec<PathBuf>)> = vec![(folder.to_owned(), Vec::new())];
    while let Some((folder, mut above)) = open.pop() {
        let entries = fs::canonicalize(&folder).and_then(|real| {
            if above.contains(&real) {
                return Err(Error::other("its symbolic links lead in a circle"));
            }
            above.push(real);
            fs::read_dir(&folder)
        });
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                reached.fault(folder, &error);
                continue;
            }
        };
        for entry in entries {
            let path = match entry {
                Ok(entry) => entry.path(),
                Err(error) => {
                    reached.fault(folder.clone(), &error);
                    break;
                }
            };
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => open.push((path, above.clone())),
                Ok(metadata) if metadata.is_file() => reached.files.push(path),
                Ok(_) => {}
                Err(error) => reached.fault(path, &error),
            }
        }
    }
    reached
}

impl Reached {
    fn fault(&mut self, path: PathBuf, error: &Error) {
        if error.kind() != ErrorKind::NotFound {
            self.faults.push((path, needs_a_person(error).unwrap_or_else(|| error.to_string())));
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_circle_of_links_is_a_fault_and_every_other_file_is_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/b/1.jsonl"), "{}").unwrap();
        fs::write(path("2.jsonl"), "{}").unwrap();
        symlink("..", path("a/up")).unwrap();
        symlink("self", path("self")).unwrap();
        symlink("gone", path("dangling")).unwrap();
        symlink("2.jsonl", path("3.jsonl")).unwrap();
        let mut reached = walk(folder.path());
        reached.files.sort();
        reached.faults.sort();
        assert_eq!(reached.files, [path("2.jsonl"), path("3.jsonl"), path("a/b/1.jsonl")]);
        let faults: Vec<_> = reached.faults.iter().map(|(path, why)| (path.clone(), why.as_str())).collect();
        let circle = "its symbolic links lead in a circle";
        assert_eq!(faults, [(path("a/up"), circle), (path("self"), circle)]);
    }
}
