//! What a statement that changes rows has read of its table, as far as ranges of its columns say it: what others do beyond them breaks no
//! plan, and files beyond them are not opened.
//!
//! What must stay true: a row beyond the ranges, whoever adds it, is none that the statement would touch, and keeps it from adding none.

use std::collections::BTreeMap;

use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use tributary_lake::datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue};
use tributary_lake::datafusion::error::Result;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::functions_aggregate::expr_fn::{max, min};
use tributary_lake::datafusion::logical_expr::expr::InList;
use tributary_lake::datafusion::logical_expr::utils::split_conjunction;
use tributary_lake::datafusion::logical_expr::{Between, BinaryExpr, Distinct, Expr, Join, JoinType, LogicalPlan, Operator, lit};
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{KeyRange, KeyRanges, Reads};
use tributary_spark_sql::FILE;

/// What an `UPDATE` or a `DELETE` reads: rows whose columns are in the ranges that its condition has; without any, all.
pub(super) fn of_condition(plan: &LogicalPlan) -> Result<Reads> {
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::Filter(filter) = node
            && is_target(&filter.input)
        {
            found = Some(ranges(&filter.predicate, filter.input.schema()));
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found.filter(|KeyRanges(ranges)| !ranges.is_empty()).map_or(Reads::WholeTable, Reads::Keys))
}

/// A `MERGE` whose join looks only for rows of its table within the range of the source's keys, and that range; as it is where the source
/// need not give the same rows twice, and where the rows are wanted that the source has not.
pub(super) async fn of_keys(plan: LogicalPlan, state: &SessionState) -> Result<(LogicalPlan, Reads)> {
    let Some((source, keys)) = keys_of(&plan)? else { return Ok((plan, Reads::WholeTable)) };
    let asked = keys.iter().flat_map(|Key { from, .. }| [min(Expr::Column(from.clone())), max(Expr::Column(from.clone()))]);
    let bounds = DataFrame::new(state.clone(), source).aggregate(Vec::new(), asked.collect())?.collect().await?;
    let row = bounds.iter().find(|batch| batch.num_rows() == 1);
    let bound = |at: usize, to: &DataType| row.map(|batch| ScalarValue::try_from_array(batch.column(at), 0)?.cast_to(to)).transpose();
    let (mut ranges, mut within) = (BTreeMap::new(), Vec::new());
    for (at, Key { of: column, data_type, .. }) in keys.iter().enumerate() {
        let (Some(least), Some(most)) = (bound(2 * at, data_type)?, bound(2 * at + 1, data_type)?) else {
            return Ok((plan, Reads::WholeTable));
        };
        let bounds = (!least.is_null() && !most.is_null()).then_some((least, most));
        let of_column = Expr::Column(column.clone());
        within.push(match &bounds {
            Some((least, most)) => of_column.clone().gt_eq(lit(least.clone())).and(of_column.lt_eq(lit(most.clone()))),
            None => lit(false),
        });
        ranges.insert(column.name.clone(), KeyRange { bounds, nulls: false });
    }
    let narrowed = plan.transform_down(|node| match node {
        LogicalPlan::Join(join) if is_target(&join.left) => {
            let filter = join.filter.clone().into_iter().chain(within.clone()).reduce(Expr::and);
            Ok(Transformed::new(LogicalPlan::Join(Join { filter, ..join }), true, TreeNodeRecursion::Stop))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok((narrowed.data, Reads::Keys(KeyRanges(ranges))))
}

/// A column of the table that is compared with one of the source.
struct Key {
    of: Column,
    data_type: DataType,
    from: Column,
}

/// The source of a merge, and the columns of the table that are compared with columns of its.
fn keys_of(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Vec<Key>)>> {
    let mut found = None;
    plan.apply(|node| {
        let LogicalPlan::Join(join) = node else { return Ok(TreeNodeRecursion::Continue) };
        if is_target(&join.left) && matches!(join.join_type, JoinType::Inner | JoinType::Right) && gives_the_same(&join.right) {
            let mut keys: Vec<Key> = Vec::new();
            let on = join.on.iter().map(|(left, right)| (left, right));
            let equal = join.filter.iter().flat_map(split_conjunction).filter_map(|part| match part {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => Some((left.as_ref(), right.as_ref())),
                _ => None,
            });
            for (a, b) in on.chain(equal) {
                let (Expr::Column(a), Expr::Column(b)) = (a, b) else { continue };
                let key = [(a, b), (b, a)].into_iter().find_map(|(of, from)| key(of, join.left.schema(), from, join.right.schema()));
                keys.extend(key.filter(|key| !keys.iter().any(|known| known.of.name == key.of.name)));
            }
            found = (!keys.is_empty()).then(|| (join.right.as_ref().clone(), keys));
        }
        Ok(TreeNodeRecursion::Stop)
    })?;
    Ok(found)
}

/// Columns of the table and of the source as a key, where all values of the source's are values of the table's, and bounds mean something.
fn key(of: &Column, table: &DFSchema, from: &Column, source: &DFSchema) -> Option<Key> {
    let (to, given) = (table.field_from_column(of).ok()?.data_type(), source.field_from_column(from).ok()?.data_type());
    let is_wider = to.is_signed_integer() && given.is_signed_integer() && to.primitive_width() >= given.primitive_width();
    let fits = has_bounds(to) && (to == given || is_wider) && of.name() != FILE;
    fits.then(|| Key { of: of.clone(), data_type: to.clone(), from: from.clone() })
}

fn has_bounds(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Date32 | DataType::Timestamp(..) | DataType::Decimal128(..)) || data_type.is_integer()
}

/// Whether a plan reads the table that is changed and nothing else.
fn is_target(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => is_target(&alias.input),
        LogicalPlan::TableScan(scan) => scan.projected_schema.fields().iter().any(|field| field.name() == FILE),
        _ => false,
    }
}

/// Whether a source gives the same rows when it is asked again: nothing of it is chance, or depends on an order that rows have not.
fn gives_the_same(plan: &LogicalPlan) -> bool {
    let is_steady = match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_none(),
        LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.iter().all(|one| {
            let one = one.clone().unalias_nested().data;
            matches!(&one, Expr::AggregateFunction(call) if matches!(call.func.name(), "count" | "sum" | "min" | "max" | "avg"))
        }),
        LogicalPlan::TableScan(scan) => return scan.source.get_logical_plan().is_none_or(|plan| gives_the_same(&plan)),
        _ => false,
    };
    let is_chance = || plan.expressions().iter().any(|expression| expression.is_volatile() || has_query(expression));
    is_steady && !is_chance() && plan.inputs().into_iter().all(gives_the_same)
}

fn has_query(expression: &Expr) -> bool {
    let is_query = |part: &Expr| Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)));
    expression.exists(is_query).unwrap_or(true)
}

/// The ranges that a condition has for columns, which all of its parts hold to.
fn ranges(condition: &Expr, schema: &DFSchema) -> KeyRanges {
    let mut ends: BTreeMap<String, (Option<ScalarValue>, Option<ScalarValue>)> = BTreeMap::new();
    let mut note = |column: &Column, least: Option<&Expr>, most: Option<&Expr>| {
        let Ok(field) = schema.field_from_column(column) else { return };
        let value = |end: Option<&Expr>| end.and_then(|end| literal(end, field.data_type()));
        let (least, most) = (value(least), value(most));
        let (low, high) = ends.entry(column.name.clone()).or_default();
        *low = greater(low.take(), least);
        *high = less(high.take(), most);
    };
    for part in split_conjunction(condition) {
        match part {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (column, op, value) = match (left.as_ref(), right.as_ref()) {
                    (Expr::Column(column), value) => (column, Some(*op), value),
                    (value, Expr::Column(column)) => (column, op.swap(), value),
                    _ => continue,
                };
                match op {
                    Some(Operator::Eq) => note(column, Some(value), Some(value)),
                    Some(Operator::Gt | Operator::GtEq) => note(column, Some(value), None),
                    Some(Operator::Lt | Operator::LtEq) => note(column, None, Some(value)),
                    _ => {}
                }
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                if let Expr::Column(column) = expr.as_ref() {
                    note(column, Some(low), Some(high));
                }
            }
            Expr::InList(InList { expr, list, negated: false }) => {
                let Expr::Column(column) = expr.as_ref() else { continue };
                let Ok(field) = schema.field_from_column(column) else { continue };
                let values: Option<Vec<ScalarValue>> = list.iter().map(|value| literal(value, field.data_type())).collect();
                let values = values.unwrap_or_default();
                let least = values.iter().cloned().map(Some).reduce(less).flatten();
                let most = values.iter().cloned().map(Some).reduce(greater).flatten();
                note(column, least.map(lit).as_ref(), most.map(lit).as_ref());
            }
            _ => {}
        }
    }
    let both = ends.into_iter().filter_map(|(column, ends)| match ends {
        (Some(least), Some(most)) => Some((column, KeyRange { bounds: Some((least, most)), nulls: false })),
        _ => None,
    });
    KeyRanges(both.collect())
}

/// A value in the type of a column; none that is no literal, null, or of a type whose bounds mean nothing.
fn literal(value: &Expr, data_type: &DataType) -> Option<ScalarValue> {
    let Expr::Literal(value, _) = value else { return None };
    let same = value.data_type() == *data_type || (value.data_type().is_integer() && data_type.is_integer());
    let value = value.cast_to(data_type).ok().filter(|value| same && !value.is_null())?;
    has_bounds(data_type).then_some(value)
}

fn greater(a: Option<ScalarValue>, b: Option<ScalarValue>) -> Option<ScalarValue> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a >= b { a } else { b }),
        (a, b) => a.or(b),
    }
}

fn less(a: Option<ScalarValue>, b: Option<ScalarValue>) -> Option<ScalarValue> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a <= b { a } else { b }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    use tributary_lake::CommitOutcome;
    use tributary_lake::arrow::datatypes::{Field, Schema};
    use tributary_lake::datafusion::prelude::col;
    use tributary_spark_sql::{Change, Statement, only_statement};

    use crate::sql::{Session, SessionOptions, rows, steps};

    #[test]
    fn conditions_that_all_hold_make_a_range_where_both_ends_are_known() {
        let fields = vec![
            Field::new("id", DataType::Int64, true),
            Field::new("name", DataType::Utf8, true),
            Field::new("x", DataType::Float64, true),
        ];
        let schema = DFSchema::try_from(Arc::new(Schema::new(fields))).unwrap();
        let range = |condition: Expr| {
            let KeyRanges(ranges) = ranges(&condition, &schema);
            let told = ranges.into_iter().map(|(column, range)| format!("{column} {:?}", range.bounds.map(|(a, b)| format!("{a}..{b}"))));
            told.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(range(col("id").eq(lit(5_i32))), "id Some(\"5..5\")");
        assert_eq!(range(lit(9_i64).gt(col("id")).and(col("id").gt_eq(lit(2_i64))).and(col("id").gt(lit(4_i64)))), "id Some(\"4..9\")");
        assert_eq!(
            range(col("id").in_list(vec![lit(7_i64), lit(3_i64)], false).and(col("name").eq(lit("a")))),
            "id Some(\"3..7\"), name Some(\"a..a\")"
        );
        assert_eq!(range(col("id").between(lit(1_i64), lit(2_i64))), "id Some(\"1..2\")");
        for unknown in [
            col("id").gt(lit(1_i64)),
            col("id").eq(lit(1_i64)).or(col("id").eq(lit(9_i64))),
            col("x").eq(lit(1.0)),
            col("id").eq(col("x")),
            col("id").in_list(vec![lit(1_i64), col("id")], false),
            col("id").in_list(vec![lit(1_i64)], true),
            col("id").eq(lit(ScalarValue::Int64(None))),
            col("id").not_eq(lit(1_i64)),
        ] {
            assert_eq!(range(unknown.clone()), "", "{unknown}");
        }
    }

    /// Whether a statement that was planned on the rows before another one commits after it.
    async fn survives(statement: &str, rival: &str) -> bool {
        let lake = crate::Lake::open("memory://", crate::OpenOptions::default()).unwrap();
        let mut session = Session::new(&lake, SessionOptions::default());
        let rows = "INSERT INTO s.t VALUES (1, 1), (5, 5); INSERT INTO s.t VALUES (11, 1), (15, 5)";
        run(&mut session, &format!("CREATE SCHEMA s; CREATE TABLE s.t (id BIGINT, v BIGINT); {rows}")).await;
        let Statement::Change(change) = only_statement(statement).unwrap() else { panic!("{statement}") };
        let table = session.catalogues.table_named(change.target()).await.unwrap();
        let tables = session.catalogues.open(change.uses()).await.unwrap();
        let planner = session.planner().await.unwrap();
        run(&mut session, rival).await;
        let Change::Rows(change) = change else { panic!("{statement}") };
        let (_, outcome) = rows::attempt(&table, *change, tables, &planner).await.unwrap();
        matches!(outcome, Some(CommitOutcome::Committed { .. }))
    }

    async fn run(session: &mut Session, text: &str) {
        for step in steps("rows.sql", text).unwrap() {
            session.execute(step).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_race_is_lost_only_where_the_other_touched_rows_that_are_looked_for() {
        const MERGE: &str = "MERGE INTO s.t USING (VALUES (5, 50), (6, 60)) s (id, v) ON t.id = s.id \
                             WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *";
        const RESTS: &str = "MERGE INTO s.t USING (VALUES (5, 1), (7, 1)) s (id, v) ON t.id = s.id \
                             WHEN MATCHED AND s.v > 100 THEN DELETE WHEN NOT MATCHED THEN INSERT *";
        const WHOLE: &str = "MERGE INTO s.t USING (VALUES (5, 50)) s (id, v) ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE";
        let cases = [
            ("UPDATE s.t SET v = 9 WHERE id = 1", "INSERT INTO s.t VALUES (100, 1)", true),
            ("UPDATE s.t SET v = 9 WHERE id = 1", "DELETE FROM s.t WHERE id = 15", true),
            ("UPDATE s.t SET v = 9 WHERE id = 1", "INSERT INTO s.t VALUES (1, 7)", false),
            ("UPDATE s.t SET v = 9 WHERE id = 1", "UPDATE s.t SET id = 1 WHERE id = 15", false),
            ("UPDATE s.t SET v = 9 WHERE id > 1", "INSERT INTO s.t VALUES (0, 7)", false),
            ("DELETE FROM s.t WHERE id IN (1, 2) AND v < 9", "INSERT INTO s.t VALUES (3, 1)", true),
            ("DELETE FROM s.t WHERE id IN (1, 2)", "DELETE FROM s.t WHERE id = 1", false),
            ("DELETE FROM s.t WHERE id = 1 AND v <= (SELECT max(v) FROM s.t)", "INSERT INTO s.t VALUES (100, 1)", false),
            (MERGE, "INSERT INTO s.t VALUES (100, 1)", true),
            (MERGE, "DELETE FROM s.t WHERE id = 15", true),
            (MERGE, "INSERT INTO s.t VALUES (6, 1)", false),
            (MERGE, "UPDATE s.t SET v = 7 WHERE id = 5", false),
            (RESTS, "INSERT INTO s.t VALUES (100, 1)", true),
            (RESTS, "DELETE FROM s.t WHERE id = 5", false),
            (WHOLE, "INSERT INTO s.t VALUES (100, 1)", false),
        ];
        for (statement, rival, as_meant) in cases {
            assert_eq!(survives(statement, rival).await, as_meant, "{statement} after {rival}");
        }
    }
}
