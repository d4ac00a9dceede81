//! Windows of time, in GROUP BY: `window(time, length[, slide[, start]])` and `session_window(time, gap)`.
//!
//! ```text
//! text    window.start ─▶ window(time, …).start                                                                       spell.rs
//! plan    tumbling     rows with a time ─▶ GROUP BY the window of the time                                            plan.rs
//!         hopping      rows × numbers of the windows that may hold one ─▶ those that do ─▶ GROUP BY the numbered window
//!         session      rows with a time ─▶ gaps before each, of its groups ─▶ first and last time ─▶ GROUP BY these
//! ```
//!
//! As in the dialect, a row without a time is in no window, a window holds its start and not its end, and a row at the very end of a
//! session still belongs to it.

mod plan;
mod spell;

use std::sync::Arc;

use tributary_lake::arrow::array::{ArrayRef, Int64Array, StructArray, TimestampMicrosecondArray};
use tributary_lake::arrow::buffer::NullBuffer;
use tributary_lake::arrow::datatypes::{DataType, Field, Fields};
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Any, Long, Text};
use super::own::{Arguments, Gives, Own, column, fault, instants, longs};
use super::{Entry, hidden, own};
use crate::convert;
use crate::value::{instant_type, local_type};

pub(crate) use plan::{apply, outside};
pub(crate) use spell::spell;

/// The names that are written.
const WINDOW: &str = "window";
const SESSION: &str = "session_window";
/// `__window(time, length, slide, start, number)`, in microseconds: the numbered window that holds the time, the last one first; null
/// where it does not hold it.
const NUMBERED: &str = "__window";
/// `__gap(before, time, gap)`: 1 where a session begins, else 0.
const GAP: &str = "__gap";
/// `__span(first, last, gap)`: a session.
const SPAN: &str = "__span";

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(&[WINDOW], Own::new(WINDOW, &[Any, Text, Text, Text], Gives::By(spans), ungrouped).at_least(2)),
    own(&[SESSION], Own::new(SESSION, &[Any, Text], Gives::By(spans), ungrouped)),
    hidden(Own::new(NUMBERED, &[Any, Long, Long, Long, Long], Gives::By(spans), numbered)),
    hidden(Own::new(GAP, &[Any, Any, Long], Gives::Long, gap)),
    hidden(Own::new(SPAN, &[Any, Any, Long], Gives::By(spans), span)),
];

/// The type of a window: its start and its end, as the time is.
fn spans(arguments: &Arguments<'_>) -> Result<DataType> {
    let time = match arguments.types.first() {
        Some(DataType::Timestamp(_, None)) => local_type(),
        Some(DataType::Timestamp(..) | DataType::Date32 | DataType::Utf8 | DataType::Null) => instant_type(),
        _ => return Err(DataFusionError::Plan("a window is of a timestamp".to_owned())),
    };
    Ok(DataType::Struct(fields(&time)))
}

fn fields(time: &DataType) -> Fields {
    ["start", "end"].into_iter().map(|name| Field::new(name, time.clone(), true)).collect()
}

fn ungrouped(_: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    fault("a window of time stands in GROUP BY alone")
}

fn time_type(to: &DataType) -> Result<&DataType> {
    match to {
        DataType::Struct(fields) if !fields.is_empty() => Ok(fields[0].data_type()),
        _ => Err(DataFusionError::Internal("a window has a start and an end".to_owned())),
    }
}

/// Windows of these starts and ends; null where there is none.
fn built(windows: Vec<Option<(i64, i64)>>, to: &DataType) -> Result<ArrayRef> {
    let time = time_type(to)?;
    let of = |edge: fn((i64, i64)) -> i64| -> ArrayRef {
        let edges = windows.iter().map(|window| window.map(edge));
        Arc::new(edges.collect::<TimestampMicrosecondArray>().with_data_type(time.clone()))
    };
    let nulls: NullBuffer = windows.iter().map(Option::is_some).collect();
    column(StructArray::try_new(fields(time), vec![of(|window| window.0), of(|window| window.1)], Some(nulls))?)
}

fn numbered(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let time = convert::cast(&arguments[0], time_type(to)?, false)?;
    let [length, slide, start, number] = [1, 2, 3, 4].map(|at| longs(&arguments[at]));
    let windows = instants(&time).iter().enumerate().map(|(row, time)| match time {
        Some(time) => numbered_window(time, length.value(row), slide.value(row), start.value(row), number.value(row)),
        None => Ok(None),
    });
    built(windows.collect::<Result<_>>()?, to)
}

/// The window with this number, the last that may hold the time being 0; none where it does not hold it.
fn numbered_window(time: i64, length: i64, slide: i64, start: i64, number: i64) -> Result<Option<(i64, i64)>> {
    let wide = i128::from(time) - i128::from(start);
    let begin = i128::from(time) - wide.rem_euclid(i128::from(slide)) - i128::from(number) * i128::from(slide);
    let end = begin + i128::from(length);
    match (i64::try_from(begin), i64::try_from(end)) {
        _ if end <= i128::from(time) => Ok(None),
        (Ok(begin), Ok(end)) => Ok(Some((begin, end))),
        _ => fault("a window is too far away"),
    }
}

fn gap(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let [before, time] = [0, 1].map(|at| convert::cast(&arguments[at], &instant_type(), false));
    let (before, time) = (before?, time?);
    let begins = instants(&before).iter().zip(instants(&time)).zip(longs(&arguments[2])).map(|((before, time), gap)| {
        let within =
            before.zip(time).zip(gap).is_some_and(|((before, time), gap)| i128::from(time) - i128::from(before) <= i128::from(gap));
        i64::from(!within)
    });
    column(begins.map(Some).collect::<Int64Array>())
}

fn span(arguments: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let [first, last] = [0, 1].map(|at| convert::cast(&arguments[at], time_type(to)?, false));
    let (first, last) = (first?, last?);
    let gaps = longs(&arguments[2]);
    let spans = instants(&first).iter().zip(instants(&last)).enumerate().map(|(row, edges)| match edges {
        (Some(first), Some(last)) => match last.checked_add(gaps.value(row)) {
            Some(end) => Ok(Some((first, end))),
            None => fault("a window is too far away"),
        },
        _ => Ok(None),
    });
    built(spans.collect::<Result<_>>()?, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted_from_their_start_before_the_epoch_too() {
        for (time, length, slide, start, number, expected) in [
            (7, 5, 5, 0, 0, Some((5, 10))),
            (5, 5, 5, 0, 0, Some((5, 10))),
            (-1, 5, 5, 0, 0, Some((-5, 0))),
            (7, 5, 5, 1, 0, Some((6, 11))),
            (5, 5, 5, 7, 0, Some((2, 7))),
            (7, 10, 5, 0, 1, Some((0, 10))),
            (7, 10, 5, 0, 2, None),
            (9, 7, 5, 0, 1, None),
            (6, 7, 5, 0, 1, Some((0, 7))),
        ] {
            assert_eq!(numbered_window(time, length, slide, start, number).unwrap(), expected, "{time} {length} {slide} {start} {number}");
        }
        assert!(numbered_window(i64::MAX, 5, 5, 0, 0).is_err());
    }
}
