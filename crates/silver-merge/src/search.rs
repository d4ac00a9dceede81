//! Finds the rows of keys with the least reading: files that statistics exclude are not opened, and of the others only the key
//! columns are read before it is known which rows are wanted.

use futures::TryStreamExt;
use tributary_lake::arrow::array::{RecordBatch, UInt32Array};
use tributary_lake::arrow::compute::{concat_batches, take_record_batch};
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::{DataFile, DataWriter, Table};

use crate::conform::conform;
use crate::error::{Error, Result};
use crate::keys::{KeyCodec, Slices, Wanted};
use crate::shape::Shape;

/// Where a row is: number of its file, and its number among the file's live rows.
pub(crate) type Place = (usize, u32);

/// Rows found.
#[derive(Debug)]
pub(crate) struct Hits {
    /// All columns of the table.
    pub rows: RecordBatch,
    /// Where each is.
    pub places: Vec<Place>,
}

/// The rows of `files` that are wanted.
///
/// # Errors
/// Store errors.
pub(crate) async fn find(
    table: &Table,
    files: impl Iterator<Item = (usize, &DataFile)>,
    shape: &Shape,
    codec: &KeyCodec,
    wanted: &Wanted,
    slices: &Slices,
) -> Result<Hits> {
    let schema = table.schema();
    let mut found = Vec::new();
    let mut places = Vec::new();
    for (number, file) in files.filter(|(_, file)| wanted.may_be_in(file)) {
        let hits = hits_of(table, file, shape, codec, wanted, slices).await?;
        if !hits.is_empty() {
            found.extend(rows_at(table, file, &hits).await?);
            places.extend(hits.into_iter().map(|row| (number, row)));
        }
    }
    Ok(Hits { rows: concat(table, &schema, &found)?, places })
}

/// Numbers of the wanted rows of a file, ascending.
async fn hits_of(table: &Table, file: &DataFile, shape: &Shape, codec: &KeyCodec, wanted: &Wanted, slices: &Slices) -> Result<Vec<u32>> {
    let kernel = |error| Error::kernel(table.name(), error);
    let read = |source| Error::lake("read keys of", table.name(), source);
    let mut stream = table.read_file(file, Some(&codec.names)).await.map_err(read)?;
    let (mut hits, mut first) = (Vec::new(), 0_u32);
    while let Some(batch) = stream.try_next().await.map_err(|error| read(error.into()))? {
        let column = |(at, key): (usize, &usize)| conform(batch.column(at), shape.schema.field(*key).data_type());
        let columns = shape.keys.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>().map_err(kernel)?;
        let keys = codec.encode(&columns).map_err(kernel)?;
        hits.extend((0..batch.num_rows()).filter(|row| wanted.contains(keys.row(*row).as_ref(), slices)).map(|row| first + row as u32));
        first += batch.num_rows() as u32;
    }
    Ok(hits)
}

async fn rows_at(table: &Table, file: &DataFile, rows: &[u32]) -> Result<Vec<RecordBatch>> {
    let read = |source| Error::lake("read rows of", table.name(), source);
    let mut stream = table.read_file(file, None).await.map_err(read)?;
    let (mut found, mut first, mut rest) = (Vec::new(), 0_u32, rows);
    while let Some(batch) = stream.try_next().await.map_err(|error| read(error.into()))? {
        let after = first + batch.num_rows() as u32;
        let here = rest.partition_point(|row| *row < after);
        if here > 0 {
            let at = UInt32Array::from_iter_values(rest[..here].iter().map(|row| row - first));
            found.push(take_record_batch(&batch, &at).map_err(|error| Error::kernel(table.name(), error))?);
        }
        (rest, first) = (&rest[here..], after);
        if rest.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Writes the rows of a file but those at `gone`, ascending, batch by batch.
///
/// # Errors
/// Store errors.
pub(crate) async fn copy_survivors(table: &Table, file: &DataFile, gone: &[u32], into: &mut DataWriter) -> Result<()> {
    let read = |source| Error::lake("read rows of", table.name(), source);
    let mut stream = table.read_file(file, None).await.map_err(read)?;
    let mut first = 0_u32;
    while let Some(batch) = stream.try_next().await.map_err(|error| read(error.into()))? {
        let stays = (0..batch.num_rows() as u32).filter(|row| gone.binary_search(&(first + row)).is_err());
        let stays = UInt32Array::from_iter_values(stays);
        first += batch.num_rows() as u32;
        if !stays.is_empty() {
            let rows = if stays.len() == batch.num_rows() {
                batch
            } else {
                take_record_batch(&batch, &stays).map_err(|error| Error::kernel(table.name(), error))?
            };
            into.write(&rows).await.map_err(|source| Error::lake("write to", table.name(), source))?;
        }
    }
    Ok(())
}

/// Every row of files.
///
/// # Errors
/// Store errors.
pub(crate) async fn all(table: &Table, files: impl Iterator<Item = (usize, &DataFile)>) -> Result<Hits> {
    let schema = table.schema();
    let mut found = Vec::new();
    let mut places = Vec::new();
    for (number, file) in files {
        let read = |source| Error::lake("read rows of", table.name(), source);
        let rows: Vec<RecordBatch> =
            table.read_file(file, None).await.map_err(read)?.try_collect().await.map_err(|error| read(error.into()))?;
        let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
        places.extend((0..count as u32).map(|row| (number, row)));
        found.extend(rows);
    }
    Ok(Hits { rows: concat(table, &schema, &found)?, places })
}

fn concat(table: &Table, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    concat_batches(schema, batches).map_err(|error| Error::kernel(table.name(), error))
}
