//! Rows that go: marked as deleted where the table has deletion vectors, else left out of a new file.

use futures::TryStreamExt;

use crate::{DataFile, KeySearch, NewFile, Result, RowMarks, Table, WriterOptions};

/// What a commit does to files that lose rows.
#[derive(Debug, Default)]
pub struct TakenOut {
    /// Rows marked where they stand.
    pub marks: Vec<RowMarks>,
    /// Files whose other rows were written anew, or that have none left.
    pub removes: Vec<DataFile>,
    /// What was written anew.
    pub adds: Vec<NewFile>,
}

/// Takes rows out of the files of a table.
#[derive(Debug, Clone, Copy)]
pub struct Taker<'a> {
    /// The files.
    pub search: &'a KeySearch,
    /// The table that is written over: of the same files, or of a later version.
    pub over: &'a Table,
    /// Whether the dataset allows deletion vectors.
    pub vectors: bool,
    /// How files are written anew.
    pub options: &'a WriterOptions,
}

impl Taker<'_> {
    /// Takes rows out of a file that is live in the table.
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
        let mut rows = self.search.rows_but(number, gone).await?;
        let mut writer = self.over.writer(self.options.clone())?;
        while let Some(batch) = rows.try_next().await? {
            writer.write(&batch).await?;
        }
        out.adds.extend(writer.finish().await?);
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
