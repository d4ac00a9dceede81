//! One bin written anew.

use futures::TryStreamExt;
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::{Cube, DataFile, NewFile, Table, WriterOptions};

use crate::plan::{Becomes, Bin};
use crate::{Error, Result, controls, inputs};

/// Where new files go, and until when they are written.
#[derive(Clone, Copy)]
pub(crate) struct Sink<'a> {
    /// Bytes that a file is to have.
    pub file_bytes: u64,
    /// To memory, and forgotten.
    pub rehearses: bool,
    /// Whether no more may be done.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

/// Writes the rows of a bin anew; nothing where time is over. `files` are those of the snapshot that the bin was planned on.
///
/// # Errors
/// Store errors; [`Error::NoRoom`] when rows cannot be sorted.
pub(crate) async fn rewrite(table: &Table, files: &[DataFile], bin: &Bin, sink: Sink<'_>) -> Result<Option<Vec<NewFile>>> {
    let inputs: Vec<DataFile> = bin.files.iter().map(|file| files[file.at].clone()).collect();
    let form = inputs::form(table, &inputs).await?;
    let cube = match (&bin.becomes, inputs.as_slice()) {
        (Becomes::Cube { columns, curve }, _) => {
            Some(Cube { id: table.lake().new_id().to_string(), columns: columns.clone(), curve: *curve })
        }
        (Becomes::Purged, [file]) => file.arranged().cube,
        (Becomes::Purged | Becomes::Few, _) => None,
    };
    let options = WriterOptions {
        // A file without its deleted rows is one again.
        file_bytes_target: Some(if bin.becomes == Becomes::Purged { u64::MAX } else { sink.file_bytes }),
        key_columns: form.key_columns.clone(),
        says: form.says,
        cube,
        rehearses: sink.rehearses,
        ..WriterOptions::default()
    };
    let read = if controls::forgets_an_input(table.lake().options()) { without_the_last(&inputs) } else { inputs };
    let mut rows = match &bin.becomes {
        Becomes::Cube { columns, curve } => inputs::along(table, read, columns, *curve).await?,
        Becomes::Few if !form.key_columns.is_empty() => inputs::by_columns(table, read, &form.key_columns).await?,
        Becomes::Few | Becomes::Purged => inputs::as_they_come(table, read),
    };
    let mut writer = table.writer(options).map_err(Error::lake("writing", table.name()))?;
    loop {
        let next = rows.try_next().await.map_err(|error| failed(table, error));
        let written = match next {
            Ok(None) => break,
            Ok(Some(_)) if (sink.is_over)() => return writer.abandon().await.map(|()| None).map_err(Error::lake("writing", table.name())),
            Ok(Some(batch)) => writer.write(&batch).await.map_err(Error::lake("writing", table.name())),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            if let Err(error) = writer.abandon().await {
                tracing::debug!(table = %table.name(), %error, "an unfinished file stays until vacuum");
            }
            return Err(error);
        }
    }
    writer.finish().await.map(Some).map_err(Error::lake("writing", table.name()))
}

/// What the lake says of its tables stays the lake's.
fn failed(table: &Table, error: DataFusionError) -> Error {
    Error::sorting(table.name())(error)
}

/// The control: the first file twice and the last not at all.
fn without_the_last(inputs: &[DataFile]) -> Vec<DataFile> {
    inputs.iter().take(1).chain(&inputs[..inputs.len().saturating_sub(1)]).cloned().collect()
}
