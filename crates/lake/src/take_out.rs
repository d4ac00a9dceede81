//! Rows that go: marked as deleted where the table has deletion vectors, else left out of a new file.

use futures::TryStreamExt;
use tributary_lake::{DataFile, KeySearch, NewFile, RowMarks, Table, WriterOptions};

use crate::error::{Error, Result};

/// What a commit does to files that lose rows.
#[derive(Debug, Default)]
pub(crate) struct TakenOut {
    pub marks: Vec<RowMarks>,
    pub removes: Vec<DataFile>,
    pub adds: Vec<NewFile>,
}

/// How the table that loses rows is written.
pub(crate) struct Taker<'a> {
    /// The files.
    pub search: &'a KeySearch,
    /// The table that is written over: of the same files, or of a later version.
    pub over: &'a Table,
    /// Whether the dataset allows deletion vectors.
    pub vectors: bool,
    pub options: &'a WriterOptions,
}

impl Taker<'_> {
    /// Takes rows out of a file that is live in `over`.
    ///
    /// # Errors
    /// Store errors.
    pub async fn take(&self, number: usize, mut gone: Vec<u64>, out: &mut TakenOut) -> Result<()> {
        let file = &self.search.files()[number];
        gone.sort_unstable();
        if self.vectors && self.over.marks_rows() && is_worth_marks(file, gone.len() as u64) {
            out.marks.push(RowMarks { file: file.clone(), rows: gone });
            return Ok(());
        }
        out.removes.push(file.clone());
        self.copy(number, &gone, out).await
    }

    /// Writes the live rows of a file but some into new files.
    ///
    /// # Errors
    /// Store errors.
    pub async fn copy(&self, number: usize, gone: &[u64], out: &mut TakenOut) -> Result<()> {
        let table = self.over.name();
        let (read, write) = (|source| Error::lake("read rows of", table, source), |source| Error::lake("write to", table, source));
        let mut rows = self.search.rows_but(number, gone).await.map_err(read)?;
        let mut writer = self.over.writer(self.options.clone()).map_err(write)?;
        while let Some(batch) = rows.try_next().await.map_err(|error| read(error.into()))? {
            writer.write(&batch).await.map_err(write)?;
        }
        out.adds.extend(writer.finish().await.map_err(write)?);
        Ok(())
    }
}

/// A file more than half of whose rows are marked costs its readers more than writing the rest anew; one of which nothing is left costs
/// nobody anything.
fn is_worth_marks(file: &DataFile, gone: u64) -> bool {
    let (Some(all), Some(live)) = (file.stats.rows, file.live_rows()) else { return false };
    let left = live.saturating_sub(gone);
    left == 0 || left * 2 >= all
}
