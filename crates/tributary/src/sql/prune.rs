//! Which files of a snapshot may hold rows that conditions ask for, by the statistics of the log. Pure.
//!
//! What must stay true: a file that is passed over holds no row that meets all conditions. What is not known keeps a file, and so does a
//! condition that statistics say nothing of.

use std::collections::HashSet;
use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use tributary_lake::arrow::datatypes::SchemaRef;
use tributary_lake::datafusion::catalog::Session;
use tributary_lake::datafusion::common::{Column, DFSchema, ScalarValue};
use tributary_lake::datafusion::logical_expr::Expr;
use tributary_lake::datafusion::physical_optimizer::pruning::{PruningPredicateBuilder, PruningStatistics};
use tributary_lake::{ColumnStats, DataFile};

/// The numbers of the files that may hold rows which meet all of the conditions, over rows of this schema.
pub(super) fn may_hold(session: &dyn Session, conditions: &[Expr], schema: &SchemaRef, files: &[DataFile]) -> Vec<usize> {
    let statistics = Statistics { files, schema };
    let mut kept = vec![true; files.len()];
    for condition in conditions {
        for (kept, may) in kept.iter_mut().zip(by(session, condition, &statistics).into_iter().flatten()) {
            *kept &= may;
        }
    }
    kept.into_iter().enumerate().filter_map(|(at, kept)| kept.then_some(at)).collect()
}

/// For each file whether it may hold rows that meet a condition; none where the condition cannot be asked of statistics.
fn by(session: &dyn Session, condition: &Expr, statistics: &Statistics<'_>) -> Option<Vec<bool>> {
    let schema = DFSchema::try_from(Arc::clone(statistics.schema)).ok()?;
    let condition = session.create_physical_expr(condition.clone(), &schema).ok()?;
    let predicate = PruningPredicateBuilder::new().with_file_schema(Arc::clone(statistics.schema)).try_build(condition).ok()?;
    predicate.prune(statistics).ok()
}

/// What the log knows of files.
struct Statistics<'f> {
    files: &'f [DataFile],
    schema: &'f SchemaRef,
}

impl Statistics<'_> {
    fn bounds(&self, column: &Column, pick: fn(&ColumnStats) -> Option<&ScalarValue>) -> Option<ArrayRef> {
        let data_type = self.schema.field_with_name(&column.name).ok()?.data_type();
        // writers do not agree on what NaN is to bounds
        if data_type.is_floating() {
            return None;
        }
        let unknown = ScalarValue::try_from(data_type).ok()?;
        let bound = |file: &DataFile| {
            let found = file.stats.columns.get(&column.name).and_then(pick);
            found.filter(|bound| bound.data_type() == *data_type).unwrap_or(&unknown).clone()
        };
        ScalarValue::iter_to_array(self.files.iter().map(bound)).ok()
    }
}

impl PruningStatistics for Statistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, |stats| stats.min.as_ref())
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, |stats| stats.max.as_ref())
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let of = |file: &DataFile| file.stats.columns.get(&column.name).and_then(|stats| stats.null_count);
        Some(Arc::new(self.files.iter().map(of).collect::<UInt64Array>()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(self.files.iter().map(|file| file.stats.rows).collect::<UInt64Array>()))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
