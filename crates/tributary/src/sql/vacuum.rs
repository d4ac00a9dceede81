//! `VACUUM` and `RESTORE` of a table.

use std::time::Duration;

use tributary_lake::arrow::array::RecordBatch;
use tributary_maintenance::{Readers, RestoreOptions, RestoreTo, Status, VacuumMode, VacuumOptions, restore, vacuum};
use tributary_spark_sql::{Name, Point};

use super::listing::{Cell, Listing, Of};
use super::{Error, Session};

/// What `VACUUM` is asked for.
pub(super) struct Asked {
    pub lite: bool,
    pub retain_hours: Option<u64>,
    pub dry_run: bool,
}

impl Session {
    /// Deletes what no version of a table needs, or lists it.
    pub(super) async fn vacuum(&mut self, name: &Name, asked: Asked) -> Result<RecordBatch, Error> {
        let table = self.catalogues.table_named(name).await?;
        let options = VacuumOptions {
            mode: if asked.lite { VacuumMode::Lite } else { VacuumMode::Full },
            retain: asked.retain_hours.map(|hours| Duration::from_secs(hours.saturating_mul(3600))),
            dry_run: asked.dry_run,
            ..VacuumOptions::default()
        };
        let failed = |error| Error::Maintenance(Box::new(error));
        let readers = Readers::of(table.lake()).await.map_err(failed)?;
        let report = vacuum(table.lake(), &readers, table.name(), &options).await.map_err(failed)?;
        self.catalogues.look_again();
        let mut listing = Listing::new(&[("path", Of::Text), ("bytes", Of::Whole), ("deleted", Of::Truth)]);
        let is_deleted = report.status == Status::Done;
        for file in report.files {
            listing.push([file.path.into(), Cell::Whole(i64::try_from(file.bytes).ok()), Cell::Truth(is_deleted)]);
        }
        listing.batch()
    }

    /// Brings a table back to an earlier version, its positions with it.
    pub(super) async fn restore(&mut self, name: &Name, to: Point) -> Result<String, Error> {
        let table = self.catalogues.table_named(name).await?;
        let to = match to {
            Point::Version(version) => RestoreTo::Version(version),
            Point::Instant(instant) => RestoreTo::Timestamp(instant),
        };
        let report = restore(table.lake(), table.name(), to, &RestoreOptions::default()).await;
        let report = report.map_err(|error| Error::Maintenance(Box::new(error)))?;
        self.catalogues.look_again();
        let full = format!("{}.{}", table.lake().options().catalogue, table.name());
        Ok(match report.version {
            None => format!("{full} is as it was at version {}", report.to),
            Some(version) => format!(
                "{full} is at version {version} what it was at version {}: {} files live again, {} no longer, {} positions went back",
                report.to,
                report.restored.files,
                report.removed.files,
                report.positions.len()
            ),
        })
    }
}
