//! The live files of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, RecordBatch, StructArray};
use arrow::datatypes::{Int32Type, Int64Type};
use delta_kernel::Engine;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::scan::StatsOptions;
use tributary_specs::TableName;

use crate::action::{Add, decode_path};
use crate::file::{RowTracking, Said};
use crate::log::{Log, kernel_error};
use crate::state::State;
use crate::stats_read::Statistics;
use crate::{DataFile, DeletionVector, Error, FileStats, Result};

/// Every live file, statistics typed.
pub(crate) async fn read(log: &Log, state: &State) -> Result<Vec<DataFile>> {
    let (kernel, engine, table, schema) = (log.kernel(state).await?, log.delta.engine(None), log.table.clone(), state.schema.clone());
    let read = tokio::task::spawn_blocking(move || {
        let mut files = Vec::new();
        let statistics = Statistics::new(&schema);
        for batch in scan_rows(&table, kernel, engine.as_ref())? {
            files.extend(files_of(&table, &batch, &statistics)?);
        }
        Ok(files)
    });
    read.await.map_err(|error| log.unreadable(error.to_string()))?
}

fn scan_rows(table: &TableName, kernel: delta_kernel::SnapshotRef, engine: &dyn Engine) -> Result<Vec<RecordBatch>> {
    let failed = |error| kernel_error(table, error);
    let scan = kernel.scan_builder().with_stats(StatsOptions::json_only()).without_row_transforms().build().map_err(failed)?;
    let mut batches = Vec::new();
    for metadata in scan.scan_metadata(engine).map_err(failed)? {
        let selected = metadata.map_err(failed)?.scan_files.apply_selection_vector().map_err(failed)?;
        batches.push(ArrowEngineData::try_from_engine_data(selected).map_err(failed)?.record_batch().clone());
    }
    Ok(batches)
}

fn files_of(table: &TableName, batch: &RecordBatch, statistics: &Statistics) -> Result<Vec<DataFile>> {
    let rows = Rows::of(batch).ok_or_else(|| Error::Log { table: table.clone(), reason: "the live files cannot be read".to_owned() })?;
    let stats: Vec<Option<&str>> = (0..batch.num_rows()).map(|row| rows.stats(row)).collect();
    let values: Vec<_> = (0..batch.num_rows()).map(|row| rows.partition_values(row)).collect();
    let stats = statistics.of_files(&stats, |row| &values[row], table);
    Ok(stats.into_iter().zip(&values).enumerate().map(|(row, (stats, values))| rows.file(row, values.clone(), stats)).collect())
}

/// The columns of the kernel's scan rows.
struct Rows<'a> {
    paths: &'a arrow::array::StringArray,
    sizes: &'a arrow::array::Int64Array,
    modified: &'a arrow::array::Int64Array,
    stats: &'a arrow::array::StringArray,
    vectors: &'a StructArray,
    constants: &'a StructArray,
    partitions: &'a MapArray,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let constants = batch.column_by_name("fileConstantValues")?.as_struct_opt()?;
        Some(Self {
            paths: batch.column_by_name("path")?.as_string_opt()?,
            sizes: batch.column_by_name("size")?.as_primitive_opt()?,
            modified: batch.column_by_name("modificationTime")?.as_primitive_opt()?,
            stats: batch.column_by_name("stats")?.as_string_opt()?,
            vectors: batch.column_by_name("deletionVector")?.as_struct_opt()?,
            partitions: constants.column_by_name("partitionValues")?.as_map_opt()?,
            constants,
        })
    }

    fn stats(&self, row: usize) -> Option<&'a str> {
        self.stats.is_valid(row).then(|| self.stats.value(row))
    }

    fn constant(&self, name: &str) -> Option<&'a ArrayRef> {
        self.constants.column_by_name(name)
    }

    fn partition_values(&self, row: usize) -> BTreeMap<String, Option<String>> {
        map_at(self.partitions, row).unwrap_or_default()
    }

    fn file(&self, row: usize, partition_values: BTreeMap<String, Option<String>>, stats: FileStats) -> DataFile {
        let log_path = self.paths.value(row).to_owned();
        DataFile {
            path: decode_path(&log_path),
            log_path,
            partition_values,
            size: u64::try_from(self.sizes.value(row)).unwrap_or_default(),
            modified_ms: self.modified.value(row),
            stats,
            deletion_vector: self.deletion_vector(row),
            row_tracking: self.row_tracking(row),
            said: Said {
                stats: self.stats(row).map(Arc::from),
                tags: self.constant("tags").and_then(|tags| map_at(tags.as_map_opt()?, row)),
                clustering_provider: self
                    .constant("clusteringProvider")
                    .and_then(|names| names.as_string_opt::<i32>())
                    .and_then(|names| names.is_valid(row).then(|| names.value(row).to_owned())),
            },
        }
    }

    fn deletion_vector(&self, row: usize) -> Option<DeletionVector> {
        let text = |name: &str| {
            let texts = self.vectors.column_by_name(name)?.as_string_opt::<i32>()?;
            texts.is_valid(row).then(|| texts.value(row).to_owned())
        };
        let int = |name: &str| {
            let ints = self.vectors.column_by_name(name)?.as_primitive_opt::<Int32Type>()?;
            ints.is_valid(row).then(|| ints.value(row))
        };
        let rows = self.vectors.column_by_name("cardinality")?.as_primitive_opt::<Int64Type>()?;
        Some(DeletionVector {
            storage_type: text("storageType").filter(|_| self.vectors.is_valid(row))?,
            path_or_inline_dv: text("pathOrInlineDv")?,
            offset: int("offset"),
            size_in_bytes: int("sizeInBytes")?,
            rows: u64::try_from(rows.value(row)).unwrap_or_default(),
        })
    }

    fn row_tracking(&self, row: usize) -> Option<RowTracking> {
        let long = |name: &str| {
            let longs = self.constants.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
            longs.is_valid(row).then(|| longs.value(row))
        };
        tracking(long("baseRowId"), long("defaultRowCommitVersion"))
    }
}

fn tracking(base_row_id: Option<i64>, default_row_commit_version: Option<i64>) -> Option<RowTracking> {
    (base_row_id.is_some() || default_row_commit_version.is_some()).then_some(RowTracking { base_row_id, default_row_commit_version })
}

/// The entries of a map of texts.
fn map_at(maps: &MapArray, row: usize) -> Option<BTreeMap<String, Option<String>>> {
    if maps.is_null(row) {
        return None;
    }
    let entries = maps.value(row);
    let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
    let entry = |at: usize| (keys.value(at).to_owned(), values.is_valid(at).then(|| values.value(at).to_owned()));
    Some((0..entries.len()).map(entry).collect())
}

/// A file as its `add` describes it.
pub(crate) fn of_add(add: &Add, state: &State, table: &TableName) -> DataFile {
    DataFile {
        path: decode_path(&add.path),
        log_path: add.path.clone(),
        partition_values: add.partition_values.clone(),
        size: add.size,
        modified_ms: add.modification_time,
        stats: crate::stats_read::of_file(add.stats.as_deref(), &add.partition_values, &state.schema, table),
        deletion_vector: add.deletion_vector.clone(),
        row_tracking: tracking(add.base_row_id, add.default_row_commit_version),
        said: Said {
            stats: add.stats.as_deref().map(Arc::from),
            tags: add.tags.clone(),
            clustering_provider: add.clustering_provider.clone(),
        },
    }
}
