//! Streaming tables that remember rows, and what an oracle in memory makes of the rows that came.

use std::collections::{BTreeMap, BTreeSet};

use tributary_specs::Column;
use tributary_testkit::{Frame, Value};

pub const MINUTE: i64 = 60_000_000;
/// Minutes that it is waited for rows.
pub const DELAY: i64 = 10;
pub const LEFT: &str = "bronze.shown";
pub const RIGHT: &str = "bronze.clicked";

/// A row of a stream: its number, its key and its time in minutes.
pub type Row = (i64, Option<i64>, Option<i64>);

/// A streaming table and what it must hold.
pub struct Question {
    /// What the law counts its runs under.
    pub name: &'static str,
    pub query: &'static str,
    pub expected: fn(&[Row], &[Row]) -> Vec<Vec<Value>>,
    pub columns: &'static [(&'static str, &'static str)],
}

pub fn columns(of: &[(&str, &str)]) -> Vec<Column> {
    of.iter().map(|(name, data_type)| Column::new(*name, data_type.parse().unwrap())).collect()
}

pub fn frame(rows: &[Row]) -> Frame {
    let of_row = |(id, key, minute): &Row| vec![number(Some(*id)), number(*key), time(*minute)];
    Frame::of(&columns(&[("id", "long"), ("k", "long"), ("at", "timestamp")]), &rows.iter().map(of_row).collect::<Vec<_>>())
}

fn number(value: Option<i64>) -> Value {
    value.map_or(Value::Null, |value| Value::Int(value.into()))
}

fn at(minute: i64) -> Value {
    Value::Int(i128::from(minute * MINUTE))
}

fn time(minute: Option<i64>) -> Value {
    minute.map_or(Value::Null, at)
}

/// Rows of both sides that are partners: of one key, and the right one within these minutes behind the left one.
fn partners(left: &[Row], right: &[Row], within: fn(i64) -> bool) -> Vec<(Row, Row)> {
    let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b)));
    let are = |((_, key, shown), (_, other, clicked)): &(Row, Row)| {
        key.is_some() && key == other && shown.zip(*clicked).is_some_and(|(shown, clicked)| within(clicked - shown))
    };
    pairs.filter(are).collect()
}

fn in_five(behind: i64) -> bool {
    (0..=5).contains(&behind)
}

/// The least of what both streams reach, less the delay; none where one has no row with a time.
fn watermark(left: &[Row], right: &[Row]) -> Option<i64> {
    let reached = |rows: &[Row]| rows.iter().filter_map(|(_, _, minute)| *minute).max();
    reached(left).zip(reached(right)).map(|(left, right)| left.min(right) - DELAY)
}

/// Rows without a partner that wait for none: those whose last minute, which is so much behind theirs, lies before the watermark, and
/// those without a time.
fn alone(rows: &[Row], met: &BTreeSet<i64>, last: i64, watermark: Option<i64>) -> Vec<Row> {
    let waits_not = |minute: Option<i64>| minute.is_none_or(|minute| watermark.is_some_and(|watermark| minute + last < watermark));
    rows.iter().filter(|(id, _, minute)| !met.contains(id) && waits_not(*minute)).copied().collect()
}

fn paired(left: Option<Row>, right: Option<Row>) -> Vec<Value> {
    let key = |row: Option<Row>| number(row.and_then(|row| row.1));
    vec![number(left.map(|row| row.0)), number(right.map(|row| row.0)), key(left), key(right)]
}

/// `last`: minutes behind a left row, and behind a right one, until which a partner may come; none where such rows do not stay alone.
fn outer(left: &[Row], right: &[Row], within: fn(i64) -> bool, last: [Option<i64>; 2]) -> Vec<(Option<Row>, Option<Row>)> {
    let pairs = partners(left, right, within);
    let watermark = watermark(left, right);
    let lefts = pairs.iter().map(|(left, _)| left.0).collect();
    let rights = pairs.iter().map(|(_, right)| right.0).collect();
    let mut out: Vec<_> = pairs.into_iter().map(|(left, right)| (Some(left), Some(right))).collect();
    if let Some(last) = last[0] {
        out.extend(alone(left, &lefts, last, watermark).into_iter().map(|row| (Some(row), None)));
    }
    if let Some(last) = last[1] {
        out.extend(alone(right, &rights, last, watermark).into_iter().map(|row| (None, Some(row))));
    }
    out
}

fn told(rows: Vec<(Option<Row>, Option<Row>)>) -> Vec<Vec<Value>> {
    rows.into_iter().map(|(left, right)| paired(left, right)).collect()
}

fn left_join(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    told(outer(left, right, in_five, [Some(5), None]))
}

/// The bound is not part of the span: a row waits a minute less, told in whole minutes.
fn left_join_before(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    told(outer(left, right, |behind| (0..5).contains(&behind), [Some(4), None]))
}

fn right_join(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    told(outer(left, right, in_five, [None, Some(0)]))
}

fn full_join(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    told(outer(left, right, in_five, [Some(5), Some(0)]))
}

fn counted_left_join(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<Option<i64>, (i64, i64)> = BTreeMap::new();
    for (left, right) in outer(left, right, in_five, [Some(5), None]) {
        let group = groups.entry(left.and_then(|row| row.1)).or_default();
        *group = (group.0 + 1, group.1 + i64::from(right.is_some()));
    }
    groups.into_iter().map(|(key, (rows, met))| vec![number(key), number(Some(rows)), number(Some(met))]).collect()
}

fn joined(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    let of_pair = |(a, b): (Row, Row)| vec![number(Some(a.0)), number(Some(b.0)), number(a.1), time(a.2)];
    partners(left, right, in_five).into_iter().map(of_pair).collect()
}

fn by_key(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<Option<i64>, (i64, Option<i64>)> = BTreeMap::new();
    for (_, key, minute) in left {
        let group = groups.entry(*key).or_default();
        group.0 += 1;
        group.1 = group.1.max(*minute);
    }
    groups.into_iter().map(|(key, (rows, last))| vec![number(key), number(Some(rows)), time(last)]).collect()
}

fn distinct(left: &[Row], right: &[Row]) -> Vec<Vec<Value>> {
    let keys: BTreeSet<Option<i64>> = left.iter().chain(right).map(|(_, key, _)| *key).collect();
    keys.into_iter().map(|key| vec![number(key)]).collect()
}

/// Of each key the first row by its time, rows without one before all others; of those of one time the one with the least number.
fn first_of_key(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    let mut first: BTreeMap<Option<i64>, (Option<i64>, i64)> = BTreeMap::new();
    for (id, key, minute) in left {
        let found = first.entry(*key).or_insert((*minute, *id));
        *found = (*found).min((*minute, *id));
    }
    first.into_iter().map(|(key, (minute, id))| vec![number(Some(id)), number(key), time(minute)]).collect()
}

/// Rows by key and window, of these lengths in minutes: how many there are in each.
fn windows(rows: &[Row], length: i64, slide: i64) -> Vec<Vec<Value>> {
    let mut groups: BTreeMap<(Option<i64>, i64), i64> = BTreeMap::new();
    for (_, key, minute) in rows {
        let Some(minute) = minute else { continue };
        for start in (-length..=*minute).filter(|start| start % slide == 0 && start + length > *minute) {
            *groups.entry((*key, start)).or_default() += 1;
        }
    }
    groups.into_iter().map(|((key, start), rows)| vec![number(key), at(start), at(start + length), number(Some(rows))]).collect()
}

fn tumbling(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    windows(left, 5, 5)
}

fn hopping(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    windows(left, 7, 5)
}

fn sessions(left: &[Row], _: &[Row]) -> Vec<Vec<Value>> {
    let mut by_key: BTreeMap<Option<i64>, Vec<i64>> = BTreeMap::new();
    left.iter()
        .filter_map(|(_, key, minute)| Some((key, (*minute)?)))
        .for_each(|(key, minute)| by_key.entry(*key).or_default().push(minute));
    let mut out = Vec::new();
    for (key, mut minutes) in by_key {
        minutes.sort_unstable();
        for session in minutes.chunk_by(|before, after| after - before <= 4) {
            let (first, last) = (session[0], session[session.len() - 1]);
            out.push(vec![number(key), at(first), at(last + 4), number(Some(session.len() as i64))]);
        }
    }
    out
}

const WINDOWED: &[(&str, &str)] = &[("k", "long"), ("since", "timestamp"), ("until", "timestamp"), ("n", "long")];
const PAIRED: &[(&str, &str)] = &[("shown", "long"), ("clicked", "long"), ("k", "long"), ("other", "long")];
const ROWS: &[(&str, &str)] = &[("id", "long"), ("k", "long"), ("at", "timestamp")];

pub const QUESTIONS: &[Question] = &[
    Question {
        name: "inner joins",
        query: "SELECT a.id AS shown, b.id AS clicked, a.k, a.at FROM bronze.shown a JOIN bronze.clicked b \
                ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES",
        expected: joined,
        columns: &[("shown", "long"), ("clicked", "long"), ("k", "long"), ("at", "timestamp")],
    },
    Question {
        name: "left joins",
        query: "SELECT a.id AS shown, b.id AS clicked, a.k, b.k AS other FROM bronze.shown a LEFT JOIN bronze.clicked b \
                ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES",
        expected: left_join,
        columns: PAIRED,
    },
    Question {
        name: "left joins before a time",
        query: "SELECT a.id AS shown, b.id AS clicked, a.k, b.k AS other FROM (SELECT * FROM bronze.shown WHERE id >= 0) a \
                LEFT JOIN (SELECT k, id, at AS clicked_at FROM bronze.clicked) b \
                ON a.k = b.k AND b.clicked_at - INTERVAL 5 MINUTES < a.at AND a.at <= b.clicked_at",
        expected: left_join_before,
        columns: PAIRED,
    },
    Question {
        name: "right joins",
        query: "SELECT a.id AS shown, b.id AS clicked, a.k, b.k AS other FROM bronze.shown a RIGHT JOIN bronze.clicked b \
                ON a.k = b.k AND b.at >= a.at AND b.at <= a.at + INTERVAL '5' MINUTE",
        expected: right_join,
        columns: PAIRED,
    },
    Question {
        name: "full joins",
        query: "SELECT a.id AS shown, b.id AS clicked, a.k, b.k AS other FROM bronze.shown a FULL JOIN bronze.clicked b \
                ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES",
        expected: full_join,
        columns: PAIRED,
    },
    Question {
        name: "counts of left joins",
        query: "SELECT a.k, count(*) AS n, count(b.id) AS met FROM bronze.shown a LEFT JOIN bronze.clicked b \
                ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 5 MINUTES GROUP BY a.k",
        expected: counted_left_join,
        columns: &[("k", "long"), ("n", "long"), ("met", "long")],
    },
    Question {
        name: "first rows",
        query: "SELECT id, k, at FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY at) AS place FROM bronze.shown) AS r \
                WHERE place = 1",
        expected: first_of_key,
        columns: ROWS,
    },
    Question {
        name: "first rows by QUALIFY",
        query: "SELECT id, k, at FROM bronze.shown QUALIFY row_number() OVER (PARTITION BY k ORDER BY at) = 1",
        expected: first_of_key,
        columns: ROWS,
    },
    Question {
        name: "groups",
        query: "SELECT k, count(*) AS n, max(at) AS last FROM bronze.shown GROUP BY k",
        expected: by_key,
        columns: &[("k", "long"), ("n", "long"), ("last", "timestamp")],
    },
    Question {
        name: "distinct rows",
        query: "SELECT DISTINCT k FROM (SELECT k FROM bronze.shown UNION ALL SELECT k FROM bronze.clicked) AS both",
        expected: distinct,
        columns: &[("k", "long")],
    },
    Question {
        name: "tumbling windows",
        query: "SELECT k, window.start AS since, window.end AS until, count(*) AS n FROM bronze.shown GROUP BY k, window(at, '5 minutes')",
        expected: tumbling,
        columns: WINDOWED,
    },
    Question {
        name: "hopping windows",
        query: "SELECT k, window(at, '7 minutes', '5 minutes').start AS since, window.end AS until, count(*) AS n FROM bronze.shown \
                GROUP BY k, window(at, '7 minutes', '5 minutes')",
        expected: hopping,
        columns: WINDOWED,
    },
    Question {
        name: "sessions",
        query: "SELECT k, session_window.start AS since, session_window.end AS until, count(*) AS n FROM bronze.shown \
                GROUP BY session_window(at, '4 minutes'), k",
        expected: sessions,
        columns: WINDOWED,
    },
];
