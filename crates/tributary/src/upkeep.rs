//! What a lake's tables no longer need is deleted, an earlier version comes back, and what their logs name is looked for.

use tributary_maintenance::{
    CleanLogOptions, CleanLogReport, FsckOptions, FsckReport, Reader, Readers, RestoreOptions, RestoreReport, RestoreTo, VacuumOptions,
    VacuumReport,
};
use tributary_specs::TableName;

use crate::maintenance::{Error, found};
use crate::{Lake, Table};

impl Lake {
    /// Tables by their names in any case; all of the lake where none is named.
    ///
    /// # Errors
    /// [`crate::Error::NoTable`] for a name that no table has; [`crate::Error::Lake`] when the store does not answer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// assert!(lake.tables_named(&[]).await?.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn tables_named(&self, names: &[&str]) -> Result<Vec<TableName>, crate::Error> {
        let known = self.inner().tables().await?;
        if names.is_empty() {
            return Ok(known);
        }
        names.iter().map(|name| found(name, &known)).collect()
    }

    /// Deletes files of these tables that no version within the retention, no reader and no writer needs. A failure of one table keeps
    /// none of the others from its turn.
    ///
    /// # Errors
    /// Where the positions of the lake's readers cannot be read: then nothing is deleted.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), Box<dyn std::error::Error>> {
    /// let dry_run = tributary::maintenance::VacuumOptions { dry_run: true, ..Default::default() };
    /// for report in lake.vacuum(&lake.tables_named(&["silver.orders"]).await?, &dry_run).await? {
    ///     println!("{} files would go", report?.deleted.files);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn vacuum(&self, tables: &[TableName], options: &VacuumOptions) -> Result<Vec<Result<VacuumReport, Error>>, Error> {
        let readers = Readers::of(self.inner()).await?;
        let mut reports = Vec::with_capacity(tables.len());
        for table in tables {
            reports.push(tributary_maintenance::vacuum(self.inner(), &readers, table, options).await);
        }
        Ok(reports)
    }

    /// Deletes commits and checkpoints of these tables that no version within the retention, no reader and no writer needs.
    ///
    /// # Errors
    /// As [`Self::vacuum`].
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), Box<dyn std::error::Error>> {
    /// for report in lake.clean_log(&lake.tables_named(&[]).await?, &Default::default()).await? {
    ///     println!("{:?}", report?.cut);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn clean_log(&self, tables: &[TableName], options: &CleanLogOptions) -> Result<Vec<Result<CleanLogReport, Error>>, Error> {
        let readers = Readers::of(self.inner()).await?;
        let mut reports = Vec::with_capacity(tables.len());
        for table in tables {
            reports.push(tributary_maintenance::clean_log(self.inner(), &readers, table, options).await);
        }
        Ok(reports)
    }

    /// Brings a table back to an earlier version by one commit, with its schema, properties and positions.
    ///
    /// # Errors
    /// Where files of the version are gone, or what came since cannot be read again; a version that is not available.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), Box<dyn std::error::Error>> {
    /// use tributary::maintenance::RestoreTo;
    /// let report = lake.restore(&"silver.orders".parse()?, RestoreTo::Version(3), &Default::default()).await?;
    /// println!("{:?}", report.positions);
    /// # Ok(()) }
    /// ```
    pub async fn restore(&self, table: &TableName, to: RestoreTo, options: &RestoreOptions) -> Result<RestoreReport, Error> {
        tributary_maintenance::restore(self.inner(), table, to, options).await
    }

    /// Looks for every file that these tables' logs name.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), Box<dyn std::error::Error>> {
    /// for report in lake.fsck(&lake.tables_named(&[]).await?, Default::default()).await {
    ///     assert!(report?.findings.is_empty());
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn fsck(&self, tables: &[TableName], options: FsckOptions) -> Vec<Result<FsckReport, Error>> {
        let mut reports = Vec::with_capacity(tables.len());
        for table in tables {
            reports.push(tributary_maintenance::fsck(self.inner(), table, options).await);
        }
        reports
    }

    /// Who reads a table, and up to where: targets of the lake by their own commits, and those that the table's properties declare.
    ///
    /// # Errors
    /// Where positions cannot be read, or a declaration says nothing.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), Box<dyn std::error::Error>> {
    /// for reader in lake.readers(&lake.table("silver.orders").await?).await? {
    ///     println!("{} needs {}", reader.name, reader.needs);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn readers(&self, table: &Table) -> Result<Vec<Reader>, Error> {
        Readers::of(self.inner()).await?.of_table(&table.clone().into_inner(), &[])
    }
}
