//! Aggregates and windows.

use tributary_lake::arrow::datatypes::{DataType, i256};
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::gathered::{Gathered, Row};
use super::own::fault;
use super::{Entry, Rewrite, aggregate, engine_aggregate, engine_window, hidden_aggregate, ordered, refused, rewritten};
use crate::convert::{real, word};
use crate::decimal::{Digits, divided, power};
use crate::value::{Value, doubles, list_type};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    rewritten(&["count"], Rewrite::Count, usize::MAX),
    rewritten(&["count_if"], Rewrite::CountIf, 1),
    rewritten(&["approx_count_distinct"], Rewrite::CountDistinct, 1),
    engine_aggregate(&["sum"], "sum", 1, 1),
    engine_aggregate(&["min"], "min", 1, 1),
    engine_aggregate(&["max"], "max", 1, 1),
    engine_aggregate(&["avg", "mean"], "avg", 1, 1),
    engine_aggregate(&["bool_and", "every"], "bool_and", 1, 1),
    engine_aggregate(&["bool_or", "some", "any"], "bool_or", 1, 1),
    engine_aggregate(&["stddev", "stddev_samp", "std"], "stddev", 1, 1),
    engine_aggregate(&["stddev_pop"], "stddev_pop", 1, 1),
    engine_aggregate(&["variance", "var_samp"], "var_samp", 1, 1),
    engine_aggregate(&["var_pop"], "var_pop", 1, 1),
    engine_aggregate(&["covar_pop"], "covar_pop", 2, 2),
    engine_aggregate(&["covar_samp"], "covar_samp", 2, 2),
    engine_aggregate(&["corr"], "corr", 2, 2),
    engine_aggregate(&["bit_and"], "bit_and", 1, 1),
    engine_aggregate(&["bit_or"], "bit_or", 1, 1),
    engine_aggregate(&["bit_xor"], "bit_xor", 1, 1),
    engine_aggregate(&["regr_count"], "regr_count", 2, 2),
    engine_aggregate(&["regr_slope"], "regr_slope", 2, 2),
    engine_aggregate(&["regr_intercept"], "regr_intercept", 2, 2),
    engine_aggregate(&["regr_r2"], "regr_r2", 2, 2),
    engine_aggregate(&["regr_avgx"], "regr_avgx", 2, 2),
    engine_aggregate(&["regr_avgy"], "regr_avgy", 2, 2),
    engine_aggregate(&["regr_sxx"], "regr_sxx", 2, 2),
    engine_aggregate(&["regr_syy"], "regr_syy", 2, 2),
    engine_aggregate(&["regr_sxy"], "regr_sxy", 2, 2),
    ordered(rewritten(&["first", "first_value", "any_value"], Rewrite::Edge("first_value"), 2)),
    ordered(rewritten(&["last", "last_value"], Rewrite::Edge("last_value"), 2)),
    aggregate(&["max_by"], Gathered { name: "max_by", least: 2, most: 2, typing: first_type, keep: keep_greatest, tell: first_of_kept }),
    aggregate(&["min_by"], Gathered { name: "min_by", least: 2, most: 2, typing: first_type, keep: keep_least, tell: first_of_kept }),
    ordered(aggregate(
        &["collect_list", "array_agg"],
        Gathered {
            name: "collect_list",
            least: 1,
            most: 1,
            typing: |types| Ok(list_type(types[0].clone())),
            keep: keep_values,
            tell: |rows, _, _| Ok(Value::List(rows.iter().map(|row| row[0].clone()).collect())),
        },
    )),
    ordered(aggregate(
        &["collect_set"],
        Gathered {
            name: "collect_set",
            least: 1,
            most: 1,
            typing: |types| Ok(list_type(types[0].clone())),
            keep: keep_values,
            tell: |rows, _, _| {
                let mut values: Vec<&Value> = rows.iter().map(|row| &row[0]).collect();
                values.sort_by(|a, b| a.order(b));
                values.dedup_by(|a, b| a.is(b));
                Ok(Value::List(values.into_iter().cloned().collect()))
            },
        },
    )),
    aggregate(&["mode"], Gathered { name: "mode", least: 1, most: 1, typing: first_type, keep: keep_values, tell: mode }),
    aggregate(
        &["median"],
        Gathered {
            name: "median",
            least: 1,
            most: 1,
            typing: |types| number(types).map(|()| DataType::Float64),
            keep: keep_values,
            tell: |rows, _, _| Ok(percentile(&weighted(rows, None)?, 0.5)),
        },
    ),
    aggregate(
        &["percentile"],
        Gathered { name: "percentile", least: 2, most: 3, typing: percentile_type, keep: keep_values, tell: percentiles },
    ),
    aggregate(
        &["percentile_approx", "approx_percentile"],
        Gathered { name: "percentile_approx", least: 2, most: 3, typing: approx_type, keep: keep_values, tell: approximates },
    ),
    rewritten(&["percentile_cont", "percentile_disc"], Rewrite::WithinGroup, 1),
    hidden_aggregate(Gathered {
        name: "percentile_disc",
        least: 3,
        most: 3,
        typing: |types| number(types).map(|()| DataType::Float64),
        keep: keep_values,
        tell: |rows, _, _| {
            let share = rows.first().and_then(|row| real(&row[1])).unwrap_or(0.0);
            let falls = rows.first().is_some_and(|row| matches!(row[2], Value::Boolean(true)));
            let mut numbers: Vec<f64> = rows.iter().filter_map(|row| real(&row[0])).collect();
            numbers.sort_by(|a, b| if falls { doubles(*b, *a) } else { doubles(*a, *b) });
            let at = ((share * numbers.len() as f64).ceil() as usize).saturating_sub(1);
            Ok(numbers.get(at).map_or(Value::Null, |number| Value::Double(*number)))
        },
    }),
    ordered(aggregate(
        &["listagg", "string_agg"],
        Gathered {
            name: "listagg",
            least: 1,
            most: 4,
            typing: |types| match types[0] {
                DataType::Utf8 | DataType::Null => Ok(DataType::Utf8),
                _ => Err(DataFusionError::Plan("`listagg` takes a string: cast it".to_owned())),
            },
            keep: keep_values,
            tell: listagg,
        },
    )),
    aggregate(
        &["skewness"],
        Gathered {
            name: "skewness",
            least: 1,
            most: 1,
            typing: |types| number(types).map(|()| DataType::Float64),
            keep: keep_values,
            tell: |rows, _, _| {
                Ok(moments(rows).map_or(Value::Null, |(n, second, third, _)| {
                    if second == 0.0 { Value::Null } else { Value::Double(n.sqrt() * third / second.powf(1.5)) }
                }))
            },
        },
    ),
    aggregate(
        &["kurtosis"],
        Gathered {
            name: "kurtosis",
            least: 1,
            most: 1,
            typing: |types| number(types).map(|()| DataType::Float64),
            keep: keep_values,
            tell: |rows, _, _| {
                Ok(moments(rows).map_or(Value::Null, |(n, second, _, fourth)| {
                    if second == 0.0 { Value::Null } else { Value::Double(n * fourth / (second * second) - 3.0) }
                }))
            },
        },
    ),
    aggregate(&["try_sum"], Gathered { name: "try_sum", least: 1, most: 1, typing: sum_type, keep: keep_values, tell: try_sum }),
    aggregate(&["try_avg"], Gathered { name: "try_avg", least: 1, most: 1, typing: average_type, keep: keep_values, tell: try_avg }),
    // windows
    engine_window(&["row_number"], "row_number", 0, 0),
    engine_window(&["rank"], "rank", 0, 0),
    engine_window(&["dense_rank"], "dense_rank", 0, 0),
    engine_window(&["percent_rank"], "percent_rank", 0, 0),
    engine_window(&["cume_dist"], "cume_dist", 0, 0),
    engine_window(&["ntile"], "ntile", 1, 1),
    engine_window(&["lag"], "lag", 1, 3),
    engine_window(&["lead"], "lead", 1, 3),
    engine_window(&["nth_value"], "nth_value", 2, 2),
    refused(&["grouping", "grouping_id"], "groups of ROLLUP and CUBE are numbered otherwise"),
    refused(
        &["histogram_numeric", "count_min_sketch", "hll_sketch_agg", "hll_union_agg", "bitmap_construct_agg", "approx_top_k"],
        "sketches are not made in this release",
    ),
    refused(&["max_by_k", "min_by_k"], "say row_number() over (…)"),
];

fn first_type(types: &[DataType]) -> Result<DataType> {
    Ok(types[0].clone())
}

fn number(types: &[DataType]) -> Result<()> {
    match &types[0] {
        of if of.is_numeric() || of.is_null() || *of == DataType::Utf8 => Ok(()),
        other => Err(DataFusionError::Plan(format!("this takes a number, not {}", word(other)))),
    }
}

fn keep_values(kept: &mut Vec<Row>, row: Row) {
    if !row[0].is_null() {
        kept.push(row);
    }
}

fn keep_greatest(kept: &mut Vec<Row>, row: Row) {
    if !row[1].is_null() && kept.first().is_none_or(|best| row[1].order(&best[1]).is_ge()) {
        *kept = vec![row];
    }
}

fn keep_least(kept: &mut Vec<Row>, row: Row) {
    if !row[1].is_null() && kept.first().is_none_or(|best| row[1].order(&best[1]).is_le()) {
        *kept = vec![row];
    }
}

fn first_of_kept(rows: &[Row], _: &[DataType], _: &DataType) -> Result<Value> {
    Ok(rows.first().map_or(Value::Null, |row| row[0].clone()))
}

/// The value that is there most often; of several the least.
fn mode(rows: &[Row], _: &[DataType], _: &DataType) -> Result<Value> {
    let mut values: Vec<&Value> = rows.iter().map(|row| &row[0]).collect();
    values.sort_by(|a, b| a.order(b));
    let mut best: Option<(usize, &Value)> = None;
    for group in values.chunk_by(|a, b| a.is(b)) {
        if best.is_none_or(|(count, _)| group.len() > count) {
            best = Some((group.len(), group[0]));
        }
    }
    Ok(best.map_or(Value::Null, |(_, value)| value.clone()))
}

/// Numbers in their order, each with how often it counts.
fn weighted(rows: &[Row], weight: Option<usize>) -> Result<Vec<(f64, i64)>> {
    let mut numbers = Vec::with_capacity(rows.len());
    for row in rows {
        let count = match weight.map(|at| &row[at]) {
            None => 1,
            Some(Value::Whole(count)) if *count >= 0 => *count,
            Some(Value::Null) => 0,
            Some(_) => return fault("the weight of `percentile` is negative"),
        };
        if let Some(number) = real(&row[0]).filter(|_| count > 0) {
            numbers.push((number, count));
        }
    }
    numbers.sort_by(|a, b| doubles(a.0, b.0));
    Ok(numbers)
}

/// Between the two numbers around a share of the way.
fn percentile(numbers: &[(f64, i64)], share: f64) -> Value {
    let all: i64 = numbers.iter().map(|(_, count)| count).sum();
    if all == 0 {
        return Value::Null;
    }
    let at = |place: i64| {
        let mut passed = 0;
        numbers
            .iter()
            .find(|(_, count)| {
                passed += count;
                passed > place
            })
            .map_or(f64::NAN, |(number, _)| *number)
    };
    let place = share * (all - 1) as f64;
    let (below, above) = (place.floor(), place.ceil());
    let (low, high) = (at(below as i64), at(above as i64));
    Value::Double(if below == above || low == high { low } else { (above - place) * low + (place - below) * high })
}

fn share(value: &Value) -> Result<f64> {
    match real(value) {
        Some(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => fault("a share of a percentile is between 0 and 1"),
    }
}

fn percentile_type(types: &[DataType]) -> Result<DataType> {
    number(types)?;
    Ok(if matches!(types[1], DataType::List(_)) { list_type(DataType::Float64) } else { DataType::Float64 })
}

/// For one share, or for each of a list.
fn of_shares(rows: &[Row], f: impl Fn(f64) -> Value) -> Result<Value> {
    match rows.first().map(|row| &row[1]) {
        None => Ok(Value::Null),
        Some(Value::List(shares)) => Ok(Value::List(shares.iter().map(|one| share(one).map(&f)).collect::<Result<_>>()?)),
        Some(one) => share(one).map(f),
    }
}

fn percentiles(rows: &[Row], types: &[DataType], _: &DataType) -> Result<Value> {
    let numbers = weighted(rows, (types.len() == 3).then_some(2))?;
    if numbers.is_empty() {
        return Ok(Value::Null);
    }
    of_shares(rows, |share| percentile(&numbers, share))
}

fn approx_type(types: &[DataType]) -> Result<DataType> {
    match &types[0] {
        of if of.is_numeric() || matches!(of, DataType::Date32 | DataType::Timestamp(..) | DataType::Null) => {
            Ok(if matches!(types[1], DataType::List(_)) { list_type(of.clone()) } else { of.clone() })
        }
        other => Err(DataFusionError::Plan(format!("`percentile_approx` takes a number or a time, not {}", word(other)))),
    }
}

/// The value of the group at a share of the way: exact, whatever accuracy is asked for.
fn approximates(rows: &[Row], _: &[DataType], _: &DataType) -> Result<Value> {
    let mut values: Vec<&Value> = rows.iter().map(|row| &row[0]).collect();
    values.sort_by(|a, b| a.order(b));
    of_shares(rows, |share| {
        let at = ((share * values.len() as f64).ceil() as usize).saturating_sub(1);
        values.get(at).map_or(Value::Null, |value| Value::clone(value))
    })
}

/// Texts one after the other; a third argument orders them, a fourth says whether it falls.
fn listagg(rows: &[Row], _: &[DataType], _: &DataType) -> Result<Value> {
    if rows.is_empty() {
        return Ok(Value::Null);
    }
    let mut sorted: Vec<&Row> = rows.iter().collect();
    if rows[0].len() > 2 {
        let falls = matches!(rows[0].get(3), Some(Value::Boolean(true)));
        sorted.sort_by(|a, b| if falls { b[2].order(&a[2]) } else { a[2].order(&b[2]) });
    }
    let mark = match rows[0].get(1) {
        Some(Value::Text(mark)) => mark.as_str(),
        _ => "",
    };
    let texts: Vec<&str> =
        sorted.iter().filter_map(|row| if let Value::Text(text) = &row[0] { Some(text.as_str()) } else { None }).collect();
    Ok(Value::Text(texts.join(mark)))
}

/// How many, and the sums of the second, third and fourth powers of the distances from the mean.
fn moments(rows: &[Row]) -> Option<(f64, f64, f64, f64)> {
    let numbers: Vec<f64> = rows.iter().filter_map(|row| real(&row[0])).collect();
    if numbers.is_empty() {
        return None;
    }
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let sum = |power: i32| numbers.iter().map(|number| (number - mean).powi(power)).sum::<f64>();
    Some((n, sum(2), sum(3), sum(4)))
}

fn sum_type(types: &[DataType]) -> Result<DataType> {
    number(types)?;
    Ok(match &types[0] {
        DataType::Decimal128(precision, scale) => DataType::Decimal128((precision + 10).min(38), *scale),
        of if of.is_integer() => DataType::Int64,
        _ => DataType::Float64,
    })
}

fn total(rows: &[Row]) -> Option<i128> {
    rows.iter().try_fold(0_i128, |sum, row| match &row[0] {
        Value::Whole(number) => sum.checked_add(i128::from(*number)),
        Value::Decimal(digits, _) => sum.checked_add(*digits),
        _ => Some(sum),
    })
}

fn try_sum(rows: &[Row], _: &[DataType], to: &DataType) -> Result<Value> {
    if rows.is_empty() {
        return Ok(Value::Null);
    }
    Ok(match to {
        DataType::Int64 => total(rows).and_then(|sum| i64::try_from(sum).ok()).map_or(Value::Null, Value::Whole),
        DataType::Decimal128(precision, scale) => {
            let fits = Digits { precision: i32::from(*precision), scale: 0 };
            total(rows).filter(|sum| fits.holds(*sum)).map_or(Value::Null, |sum| Value::Decimal(sum, *scale))
        }
        _ => Value::Double(rows.iter().filter_map(|row| real(&row[0])).sum()),
    })
}

fn average_type(types: &[DataType]) -> Result<DataType> {
    number(types)?;
    Ok(match &types[0] {
        DataType::Decimal128(precision, scale) => {
            Digits { precision: i32::from(*precision) + 4, scale: i32::from(*scale) + 4 }.adjusted().data_type()
        }
        _ => DataType::Float64,
    })
}

fn try_avg(rows: &[Row], types: &[DataType], to: &DataType) -> Result<Value> {
    if rows.is_empty() {
        return Ok(Value::Null);
    }
    let count = rows.len() as i64;
    Ok(match (to, &types[0]) {
        (DataType::Decimal128(precision, scale), DataType::Decimal128(_, from)) => {
            let average = total(rows).and_then(|sum| {
                let sum = i256::from_i128(sum).checked_mul(power(i32::from(scale - from))?)?;
                divided(sum, i256::from_i128(i128::from(count)))
            });
            let fits = Digits { precision: i32::from(*precision), scale: 0 };
            average.filter(|digits| fits.holds(*digits)).map_or(Value::Null, |digits| Value::Decimal(digits, *scale))
        }
        _ => Value::Double(rows.iter().filter_map(|row| real(&row[0])).sum::<f64>() / count as f64),
    })
}
