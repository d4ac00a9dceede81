//! `OPTIMIZE` and `REORG` of a table.

use tributary_maintenance::{Options, Status, Task, maintain};
use tributary_spark_sql::Name;

use super::{Error, Session};

impl Session {
    /// Does a task to a table, whoever keeps it: no row changes.
    pub(super) async fn maintain(&mut self, name: &Name, task: Task) -> Result<String, Error> {
        let table = self.catalogues.table_named(name).await?;
        let full = format!("{}.{}", table.lake().options().catalogue, table.name());
        let mut report = maintain(table.lake(), &[table.name().clone()], &task, &Options::default(), &|_| {}).await;
        let Some(done) = report.tables.pop() else { return Ok(format!("nothing to do to {full}")) };
        if let Some(error) = done.error {
            return Err(Error::Maintenance(Box::new(error)));
        }
        let left = done.left.map(|left| format!("; left: {left}")).unwrap_or_default();
        self.catalogues.look_again();
        Ok(match done.status {
            Status::NothingToDo => format!("nothing to do to {full}"),
            _ => format!(
                "{full}: {} files of {} bytes became {} of {}{left}",
                done.read.files, done.read.bytes, done.written.files, done.written.bytes
            ),
        })
    }
}
