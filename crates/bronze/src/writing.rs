//! A table's writer on a task of its own, so that the next records are decoded while the last are written.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::{DataWriter, NewFile};
use tributary_specs::TableName;

use crate::{Error, Result, events};

/// Batches that wait for the writer, besides the one it writes.
const WAITING: usize = 1;

/// A writer at work. Dropping it ends the task; the files it was at belong to no commit.
pub(crate) struct Writing {
    table: TableName,
    batches: mpsc::Sender<RecordBatch>,
    task: JoinHandle<tributary_lake::Result<DataWriter>>,
}

impl Writing {
    pub(crate) fn start(table: TableName, mut writer: DataWriter) -> Self {
        let (batches, mut waiting) = mpsc::channel::<RecordBatch>(WAITING);
        let task = tokio::spawn(async move {
            while let Some(batch) = waiting.recv().await {
                writer.write(&batch).await?;
            }
            Ok(writer)
        });
        Self { table, batches, task }
    }

    /// Hands a batch over; an error of an earlier one may come out here.
    pub(crate) async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if self.batches.send(batch).await.is_ok() {
            return Ok(());
        }
        ended(&self.table, (&mut self.task).await).and(Err(Error::Cancelled))
    }

    /// Waits for what was handed over and completes the files.
    pub(crate) async fn finish(self) -> Result<Vec<NewFile>> {
        drop(self.batches);
        let writer = ended(&self.table, self.task.await)?;
        writer.finish().await.map_err(|source| Error::lake(&self.table, "writing rows", source))
    }

    /// Gives up what was written.
    pub(crate) async fn abandon(self) {
        drop(self.batches);
        if let Ok(Ok(writer)) = self.task.await
            && let Err(error) = writer.abandon().await
        {
            events::not_abandoned(&error);
        }
    }
}

/// What the task came to: a panic in it goes on here, as if there were no task.
fn ended(table: &TableName, outcome: Result<tributary_lake::Result<DataWriter>, tokio::task::JoinError>) -> Result<DataWriter> {
    match outcome {
        Ok(Ok(writer)) => Ok(writer),
        Ok(Err(source)) => Err(Error::lake(table, "writing rows", source)),
        Err(join) => match join.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The program's runtime is going down.
            Err(_) => Err(Error::Cancelled),
        },
    }
}
