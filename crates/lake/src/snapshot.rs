//! One version of a table, its files included, and how the next one follows from it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tributary_specs::TableName;

use crate::action::Action;
use crate::log::{Log, Opened};
use crate::state::State;
use crate::{DataFile, Result, live_files};

/// See the module.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub state: State,
    /// Live files, once somebody has asked.
    files: OnceCell<Arc<Vec<DataFile>>>,
    since: Option<Since>,
}

/// Files of an earlier version and what each commit since did.
#[derive(Debug, Clone)]
struct Since {
    files: Arc<Vec<DataFile>>,
    commits: Vec<Arc<Vec<Action>>>,
}

/// Commits that are looked through for files one by one; of more the log is read as a whole.
const COMMITS_MAX: usize = 64;

impl Snapshot {
    /// # Errors
    /// As [`State::new`].
    pub(crate) fn new(table: &TableName, opened: Opened) -> Result<Self> {
        Ok(Self { state: State::new(table, opened)?, files: OnceCell::new(), since: None })
    }

    /// A snapshot without files.
    ///
    /// # Errors
    /// As [`State::new`].
    pub(crate) fn of_no_files(table: &TableName, opened: Opened) -> Result<Self> {
        Ok(Self { state: State::new(table, opened)?, files: OnceCell::new_with(Some(Arc::default())), since: None })
    }

    /// The snapshot that follows from this one by `commits`.
    ///
    /// # Errors
    /// As [`State::new`].
    pub(crate) fn followed_by(&self, table: &TableName, opened: Opened, commits: Vec<Vec<Action>>) -> Result<Self> {
        let state = State::new(table, opened)?;
        let known = self.files.get().map(|files| Since { files: Arc::clone(files), commits: Vec::new() });
        let mut since = known.or_else(|| self.since.clone());
        if let Some(since) = &mut since {
            since.commits.extend(commits.into_iter().map(Arc::new));
        }
        // Statistics are typed by the schema.
        let since = since.filter(|since| since.commits.len() <= COMMITS_MAX && state.schema == self.state.schema);
        Ok(Self { state, files: OnceCell::new(), since })
    }

    /// Live files with their statistics.
    ///
    /// # Errors
    /// Store errors.
    pub(crate) async fn files(&self, log: &Log) -> Result<&Arc<Vec<DataFile>>> {
        let read = || async {
            if let Some(files) = self.since.as_ref().and_then(|since| since.files_now(&self.state, &log.table)) {
                return Ok(Arc::new(files));
            }
            live_files::read(log, &self.state).await.map(Arc::new)
        };
        self.files.get_or_try_init(read).await
    }

    /// Whether the files are known by now.
    pub(crate) fn knows_files(&self) -> bool {
        self.files.get().is_some()
    }

    /// Bytes it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        /// What the kernel holds of a log, and the schema.
        const SNAPSHOT: usize = 64 << 10;
        /// A file's entry without its columns.
        const FILE: usize = 512;
        /// Typed and spelled bounds of a column.
        const COLUMN: usize = 256;
        let of_files = |files: &Arc<Vec<DataFile>>| files.iter().map(|file| FILE + COLUMN * file.stats.columns.len()).sum::<usize>();
        let known = self.files.get().map(of_files).unwrap_or_default();
        let since = self.since.as_ref().map(|since| of_files(&since.files)).unwrap_or_default();
        SNAPSHOT + known + since
    }
}

impl Since {
    /// The files after the commits; none where the log says something that does not follow.
    fn files_now(&self, state: &State, table: &TableName) -> Option<Vec<DataFile>> {
        let mut files: Vec<Option<DataFile>> = self.files.iter().cloned().map(Some).collect();
        let mut places: HashMap<String, usize> = self.files.iter().enumerate().map(|(at, file)| (file.log_path.clone(), at)).collect();
        for commit in &self.commits {
            for action in commit.iter() {
                if let Action::Remove(remove) = action {
                    files[places.remove(&remove.path)?] = None;
                }
            }
            for action in commit.iter() {
                if let Action::Add(add) = action {
                    if let Some(at) = places.insert(add.path.clone(), files.len()) {
                        files[at] = None;
                    }
                    files.push(Some(live_files::of_add(add, state, table)));
                }
            }
        }
        Some(files.into_iter().flatten().collect())
    }
}
