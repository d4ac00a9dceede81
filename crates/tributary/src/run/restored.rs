//! Tables that somebody else has brought back to an earlier version: they wait until a person says what that means for what they have
//! consumed.

use std::time::Instant;

use tributary_specs::{DatasetReport, TableName};

use super::work::{Run, Work, failed};
use crate::Error;

impl Run {
    /// Of the tables of a piece of work those that cannot go on so, with the reason; what is built anew can.
    pub(super) async fn restored_by_others(&self, work: &Work, only: &[TableName]) -> Vec<DatasetReport> {
        let mut stopped = Vec::new();
        for table in only {
            let started = Instant::now();
            // What cannot be read fails the work itself.
            let Ok(Some(found)) = self.lake.inner().table(table).await else { continue };
            if let Ok(Some(version)) = found.restored_by_others().await
                && !self.is_built_anew(work, table)
            {
                stopped.push(failed(table, &Error::RestoredByOthers { table: table.to_string(), version }, started));
            }
        }
        stopped
    }

    fn is_built_anew(&self, work: &Work, table: &TableName) -> bool {
        let spec = self.pipeline.spec();
        match work {
            Work::Feeds(feeds) => {
                let feed = feeds.iter().map(|feed| &spec.feeds[*feed]).find(|feed| feed.table == *table);
                feed.is_some_and(|feed| self.options.full_refresh.contains(table) && self.builds_anew(table, &feed.properties))
            }
            Work::Silver(index) => self.builds_anew(table, &spec.silver[*index].properties),
            Work::Gold(index) => self.builds_anew(table, &spec.gold[*index].properties),
        }
    }
}
