//! What a table's state asks for.

use std::collections::BTreeSet;

use tributary_lake::Curve;

use super::{Along, Becomes, Bin, File, Rules, compact, cubes};
use crate::{Options, Task};

/// Commits without a checkpoint from which on one is written: writers write their own, after ten at the earliest.
const COMMITS_MAX: u64 = 20;

/// What is asked of a table, and what it is.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub task: &'a Task,
    pub files: &'a [File],
    /// The table's.
    pub cluster_columns: &'a [String],
    /// By which its declaration wants it Z-ordered.
    pub zorder_columns: &'a [String],
    /// Bytes that a file is to have.
    pub file_bytes: u64,
    pub commits_since_checkpoint: u64,
    /// Paths of files that have columns which the table does not have.
    pub outdated: &'a BTreeSet<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Work {
    pub bins: Vec<Bin>,
    pub checkpoint: bool,
    /// Why.
    pub reason: String,
}

/// What is to be done to a table.
pub(crate) fn decide(asked: &Asked<'_>, options: &Options) -> Work {
    let clustered = !asked.cluster_columns.is_empty();
    let along = |columns: &[String], curve| Along {
        columns: columns.to_vec(),
        curve,
        cube_bytes: options.cube_bytes,
        former_bytes: options.group_bytes,
        vector_share: options.vector_share,
    };
    let hilbert = || cubes(asked.files, &along(asked.cluster_columns, Curve::Hilbert));
    let few = |waits| {
        let (file_bytes, bin_bytes, vector_share) = (asked.file_bytes, options.group_bytes, options.vector_share);
        compact(asked.files, &Rules { file_bytes, bin_bytes, vector_share, waits })
    };
    let bins = match asked.task {
        Task::Auto | Task::Optimize | Task::Cluster if clustered => hilbert(),
        Task::Auto if !asked.zorder_columns.is_empty() => cubes(asked.files, &along(asked.zorder_columns, Curve::ZOrder)),
        Task::Auto => few(true),
        Task::Optimize => few(false),
        Task::ZOrder(columns) => cubes(asked.files, &along(columns, Curve::ZOrder)),
        Task::Reorg => purge(asked),
        Task::Cluster | Task::Checkpoint => Vec::new(),
    };
    let checkpoint = match asked.task {
        Task::Auto => asked.commits_since_checkpoint >= COMMITS_MAX,
        Task::Checkpoint => asked.commits_since_checkpoint > 0,
        _ => false,
    };
    Work { reason: reason(&bins, checkpoint.then_some(asked.commits_since_checkpoint)), bins, checkpoint }
}

/// Each file with rows marked as deleted, or with columns that are gone.
fn purge(asked: &Asked<'_>) -> Vec<Bin> {
    let is_outdated = |file: &&File| file.marked.is_some() || asked.outdated.contains(&file.path);
    let purged = asked.files.iter().filter(is_outdated).filter(|file| !file.foreign);
    purged.map(|file| Bin { files: vec![file.clone()], becomes: Becomes::Purged }).collect()
}

fn reason(bins: &[Bin], commits: Option<u64>) -> String {
    let of = |is: fn(&Becomes) -> bool| bins.iter().filter(|bin| is(&bin.becomes)).map(|bin| bin.files.len()).sum::<usize>();
    let few = of(|becomes| matches!(becomes, Becomes::Few));
    let purged = of(|becomes| matches!(becomes, Becomes::Purged));
    let cubes = of(|becomes| matches!(becomes, Becomes::Cube { .. }));
    let said = [
        (few > 0).then(|| format!("{few} small files")),
        (cubes > 0).then(|| format!("{cubes} files not in order")),
        (purged > 0).then(|| format!("{purged} files to write without what is gone")),
        commits.map(|commits| format!("{commits} commits since the last checkpoint")),
    ];
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(task: &'a Task, files: &'a [File], outdated: &'a BTreeSet<String>, commits: u64) -> Asked<'a> {
        Asked { task, files, cluster_columns: &[], zorder_columns: &[], file_bytes: 32 << 20, commits_since_checkpoint: commits, outdated }
    }

    #[test]
    fn a_table_asks_for_nothing_or_says_why() {
        let none = BTreeSet::new();
        let small = |at| File { at, bytes: 10, rows: Some(1), ..File::default() };
        let (one, two) = ([small(0)], [small(0), small(1)]);
        let of = |task: &Task, files: &[File], commits| decide(&asked(task, files, &none, commits), &Options::default());
        assert_eq!(of(&Task::Auto, &one, 19), Work::default());
        assert_eq!(of(&Task::Auto, &two, 20).reason, "2 small files, 20 commits since the last checkpoint");
        assert_eq!(of(&Task::Optimize, &two, 20).reason, "2 small files");
        assert_eq!(of(&Task::Checkpoint, &two, 0), Work::default());
        assert!(of(&Task::Checkpoint, &two, 1).checkpoint);
    }

    #[test]
    fn what_is_gone_is_purged_whatever_its_share() {
        let outdated = BTreeSet::from(["b".to_owned()]);
        let file = |at, path: &str, marked| File { at, path: path.to_owned(), rows: Some(1000), marked, ..File::default() };
        let files = [file(0, "a", None), file(1, "b", None), file(2, "c", Some(1))];
        let work = decide(&asked(&Task::Reorg, &files, &outdated, 0), &Options::default());
        assert_eq!(work.bins.iter().map(|bin| bin.files[0].at).collect::<Vec<_>>(), [1, 2]);
    }
}
