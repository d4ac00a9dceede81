//! Maintenance of a lake's tables: what is done to files, and never to rows.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
//! use tributary::maintenance::{Options, Task};
//! let lake = tributary::Lake::open("memory://", Default::default())?;
//! let report = lake.maintain(&[], &Task::Auto, &Options::default(), &|_| {}).await?;
//! assert!(report.nothing_to_do());
//! # Ok(()) }
//! ```

use tributary_specs::TableName;

pub use tributary_maintenance::{Amount, Error, Event, Options, Report, Status, TableReport, Task};
pub use tributary_maintenance::{
    CleanLogOptions, CleanLogReport, Defect, Finding, FsckOptions, FsckReport, HeldBy, LOG_RETENTION_DEFAULT, LONGEST_WRITE_DEFAULT, Needs,
    OldFile, PositionMove, Positions, READER_PROPERTY, RETENTION_DEFAULT, Reader, RestoreOptions, RestoreReport, RestoreTo, VacuumMode,
    VacuumOptions, VacuumReport,
};

use crate::Lake;

impl Lake {
    /// Does a task to tables of the lake, one after the other; to all of them where none is named. `tell` is told of each table when it is
    /// known what is to be done, and when it has had its turn. A failure of one table is in its report.
    ///
    /// # Errors
    /// [`crate::Error::NoTable`] for a name that no table has, in any case; [`crate::Error::Lake`] when the store does not answer.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// use tributary::maintenance::{Options, Task};
    /// let dry_run = Options { dry_run: true, ..Options::default() };
    /// let report = lake.maintain(&["silver.orders"], &Task::Optimize, &dry_run, &|_| {}).await?;
    /// println!("{} files would be left", report.tables[0].predicted.files);
    /// # Ok(()) }
    /// ```
    pub async fn maintain(
        &self,
        tables: &[&str],
        task: &Task,
        options: &Options,
        tell: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<Report, crate::Error> {
        let known = self.inner().tables().await?;
        let named = tables.iter().map(|name| found(name, &known)).collect::<Result<Vec<TableName>, _>>()?;
        let tables = if tables.is_empty() { known } else { named };
        Ok(tributary_maintenance::maintain(self.inner(), &tables, task, options, tell).await)
    }
}

pub(crate) fn found(name: &str, known: &[TableName]) -> Result<TableName, crate::Error> {
    let missing = || crate::Error::NoTable { table: name.to_owned() };
    let parsed: TableName = name.parse().map_err(|_| missing())?;
    known.iter().find(|table| table.same_without_case(&parsed)).cloned().ok_or_else(missing)
}
