//! Whether a file may go. Pure.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// What the log says of files, by their relative paths. Those that stay are known by a hash: two of the same hash keep one file too many.
#[derive(Debug, Default)]
pub(super) struct Known {
    needed: HashSet<u64>,
    held: HashSet<u64>,
    /// Removed by a commit that nobody looks behind any more, or needed by a reader alone.
    removed: BTreeSet<String>,
}

/// What may be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A version within the retention has it.
    Needed,
    /// Only a reader needs it.
    Held,
    /// A commit removed it, and nobody needs it.
    Removed,
    /// No commit that is known names it.
    Unknown,
}

impl Known {
    /// A file that stays.
    pub fn need(&mut self, paths: &[String]) {
        self.needed.extend(paths.iter().map(|path| hash(path)));
    }

    /// A file that a commit removed, or a change-feed file of one.
    pub fn take(&mut self, paths: &[String], is_retained: bool, is_held: bool) {
        if is_retained {
            self.need(paths);
            return;
        }
        if is_held {
            self.held.extend(paths.iter().map(|path| hash(path)));
        }
        self.removed.extend(paths.iter().cloned());
    }

    pub fn fate(&self, path: &str) -> Fate {
        let hashed = hash(path);
        match () {
            () if self.needed.contains(&hashed) => Fate::Needed,
            () if self.held.contains(&hashed) => Fate::Held,
            () if self.removed.contains(path) => Fate::Removed,
            () => Fate::Unknown,
        }
    }

    /// Paths that a commit removed and that no version within the retention has.
    pub fn removed(&self) -> Vec<String> {
        self.removed.iter().filter(|path| self.fate(path) != Fate::Needed).cloned().collect()
    }
}

fn hash(path: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(path)
}

/// Whether a path is none of the table's own, by the protocol's rule: a name that begins with `_` or `.` hides what is below it, but for
/// change-feed files, indexes and values of a partition column; so does the folder `metadata` of another format.
pub(super) fn is_hidden(path: &str, partition_columns: &[String]) -> bool {
    let is_value =
        |name: &str| partition_columns.iter().any(|column| name.strip_prefix(column.as_str()).is_some_and(|rest| rest.starts_with('=')));
    let hides = |name: &str| {
        (name.starts_with('_') || name.starts_with('.'))
            && !name.starts_with("_change_data")
            && !name.starts_with("_delta_index")
            && !is_value(name)
    };
    path.starts_with("metadata/") || path.split('/').any(hides)
}

/// The folder that a path shows to be another table's, with a slash at its end.
pub(super) fn nested_roots(path: &str) -> Option<String> {
    let at = path.find("/_delta_log/")?;
    Some(path[..=at].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(of: &[&str]) -> Vec<String> {
        of.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn what_a_version_needs_stays_whatever_else_is_said_of_it() {
        let mut known = Known::default();
        known.take(&paths(&["a", "b", "c", "d"]), false, false);
        known.take(&paths(&["b"]), false, true);
        known.take(&paths(&["c"]), true, false);
        known.need(&paths(&["d"]));
        let fates: Vec<Fate> = ["a", "b", "c", "d", "e"].iter().map(|path| known.fate(path)).collect();
        assert_eq!(fates, [Fate::Removed, Fate::Held, Fate::Needed, Fate::Needed, Fate::Unknown]);
        assert_eq!(known.removed(), ["a", "b"]);
    }

    #[test]
    fn hidden_is_what_the_protocol_hides() {
        let columns = paths(&["_day", "site"]);
        for (path, hidden) in [
            ("a.parquet", false),
            ("site=_x/a.parquet", false),
            ("_day=1/a.parquet", false),
            ("_days=1/a.parquet", true),
            ("_change_data/cdc.parquet", false),
            ("_change_data/_day=1/cdc.parquet", false),
            ("_delta_log/00000000000000000000.json", true),
            ("_tmp/a.parquet", true),
            ("site=1/_tmp/a.parquet", true),
            (".a.parquet.crc", true),
            ("metadata/v1.json", true),
            ("site=1/metadata/v1.json", false),
        ] {
            assert_eq!(is_hidden(path, &columns), hidden, "{path}");
        }
    }

    #[test]
    fn a_table_below_is_known_by_its_log() {
        assert_eq!(nested_roots("sub/t/_delta_log/0.json"), Some("sub/t/".to_owned()));
        assert_eq!(nested_roots("_delta_log/0.json"), None);
    }
}
