//! The allow list of functions: what each name of the dialect is here, and why others are not on it.
//!
//! A function is the engine's where it means the same, written here where it does not, said otherwise, or refused. One file a
//! subject holds names and meanings side by side; the page of functions is made of this list.

mod aggregates;
mod arithmetic;
mod arrays;
mod conditions;
mod dates;
mod digests;
mod formats;
mod gathered;
mod generators;
mod hidden;
mod json;
mod lambdas;
mod maps;
mod numbers;
pub(crate) mod own;
#[cfg(test)]
mod page;
mod patterns;
mod texts;
mod times;
pub(crate) mod windows;

use std::sync::Arc;

use tributary_lake::datafusion::logical_expr::ScalarUDF;
use tributary_lake::datafusion::prelude::SessionContext;

use self::gathered::Gathered;
use self::own::Own;

pub(crate) use self::conditions::common;
pub(crate) use self::dates::field;

/// What a function of the dialect is here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meaning<'n> {
    /// Executed.
    Known(Known<'n>),
    /// Not executed by this release: what the engine would do, or what to say instead.
    Refused(&'static str),
    /// Not known.
    Unknown,
}

/// How a function that is known is executed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Known<'n> {
    /// What the engine calls does the same with so many arguments.
    Same {
        name: &'n str,
        least: usize,
        most: usize,
        /// Whether it is of one row: it takes no FILTER, DISTINCT or OVER.
        of_row: bool,
    },
    /// Another way to say it, made by `calls.rs`.
    Rewritten(Rewrite),
}

/// How a call is said to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// `if(condition, a, b)`.
    If,
    /// `nvl2(x, there, missing)`.
    Nvl2,
    /// `isnull(x)`.
    IsNull,
    /// `isnotnull(x)`.
    IsNotNull,
    /// `equal_null(a, b)`.
    EqualNull,
    /// `current_user()`.
    CurrentUser,
    /// `bigint(x)`: a cast.
    Cast,
    /// `struct(a, b AS c)`.
    Struct,
    /// `count(*)`, `count(a, b)`.
    Count,
    /// `count_if(condition)`.
    CountIf,
    /// `approx_count_distinct(x)`.
    CountDistinct,
    /// `first(x[, ignore nulls])`.
    Edge(&'static str),
    /// `percentile_cont(p) WITHIN GROUP (ORDER BY x)`.
    WithinGroup,
    /// `like(text, pattern)`.
    Like,
    /// `ilike(text, pattern)`.
    ILike,
    /// `explode(x)` and its kin, which are rows.
    Rows,
}

impl Rewrite {
    /// Whether it makes one value of the rows of a group.
    pub fn is_of_group(self) -> bool {
        matches!(self, Self::Count | Self::CountIf | Self::CountDistinct | Self::Edge(_) | Self::WithinGroup)
    }
}

/// What calls it.
#[derive(Debug, Clone, Copy)]
enum How {
    Engine,
    Own(Own),
    Lambda,
    EngineAggregate,
    EngineWindow,
    Aggregate(Gathered),
    Said(Rewrite),
    Refused(&'static str),
}

/// Whether a function answers alike when it is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Determinism {
    /// It answers by its arguments alone.
    Always,
    /// By its arguments and the order in which rows come.
    ByOrder,
    /// Alike within one query.
    WithinAQuery,
    /// Never.
    Never,
}

/// Names of the dialect and what they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// None where only rewritten texts call it.
    names: &'static [&'static str],
    calls: &'static str,
    least: usize,
    most: usize,
    how: How,
    determinism: Determinism,
}

const fn entry(names: &'static [&'static str], calls: &'static str, least: usize, most: usize, how: How) -> Entry {
    Entry { names, calls, least, most, how, determinism: Determinism::Always }
}

/// The engine's function of one row does the same.
const fn engine_row(names: &'static [&'static str], calls: &'static str, least: usize, most: usize) -> Entry {
    entry(names, calls, least, most, How::Engine)
}

/// The engine's function of the moment of a query does the same.
const fn of_the_moment(names: &'static [&'static str], calls: &'static str, least: usize, most: usize) -> Entry {
    within_a_query(engine_row(names, calls, least, most))
}

/// The engine's function, which never answers alike.
const fn random(names: &'static [&'static str], calls: &'static str, least: usize, most: usize) -> Entry {
    Entry { determinism: Determinism::Never, ..engine_row(names, calls, least, most) }
}

/// The engine's aggregate does the same.
const fn engine_aggregate(names: &'static [&'static str], calls: &'static str, least: usize, most: usize) -> Entry {
    entry(names, calls, least, most, How::EngineAggregate)
}

/// The engine's window function does the same.
const fn engine_window(names: &'static [&'static str], calls: &'static str, least: usize, most: usize) -> Entry {
    entry(names, calls, least, most, How::EngineWindow)
}

/// Written here.
const fn own(names: &'static [&'static str], own: Own) -> Entry {
    let most = if own.more.is_some() { usize::MAX } else { own.takes.len() };
    entry(names, own.name, own.least, most, How::Own(own))
}

/// Written here, for operators and other rewritten texts.
const fn hidden(of: Own) -> Entry {
    own(&[], of)
}

/// Written here, over the values of a group.
const fn aggregate(names: &'static [&'static str], of: Gathered) -> Entry {
    entry(names, of.name, of.least, of.most, How::Aggregate(of))
}

/// Likewise, for rewritten texts.
const fn hidden_aggregate(of: Gathered) -> Entry {
    aggregate(&[], of)
}

/// It depends on the order of rows.
const fn ordered(entry: Entry) -> Entry {
    Entry { determinism: Determinism::ByOrder, ..entry }
}

/// It answers alike within one query.
const fn within_a_query(entry: Entry) -> Entry {
    Entry { determinism: Determinism::WithinAQuery, ..entry }
}

/// It takes a function.
const fn lambda(names: &'static [&'static str], least: usize, most: usize) -> Entry {
    entry(names, names[0], least, most, How::Lambda)
}

/// Said otherwise, with at most so many arguments.
const fn rewritten(names: &'static [&'static str], rewrite: Rewrite, most: usize) -> Entry {
    entry(names, "", 0, most, How::Said(rewrite))
}

/// Not executed, and why.
const fn refused(names: &'static [&'static str], why: &'static str) -> Entry {
    entry(names, "", 0, 0, How::Refused(why))
}

/// Every function that is known, by subject.
const SUBJECTS: &[(&str, &[Entry])] = &[
    ("Aggregates and windows", aggregates::FUNCTIONS),
    ("Conditions", conditions::FUNCTIONS),
    ("Texts", texts::FUNCTIONS),
    ("Formats", formats::FUNCTIONS),
    ("Regular expressions", patterns::FUNCTIONS),
    ("Digests and bytes", digests::FUNCTIONS),
    ("Numbers", numbers::FUNCTIONS),
    ("Arithmetic", arithmetic::FUNCTIONS),
    ("Dates", dates::FUNCTIONS),
    ("Times", times::FUNCTIONS),
    ("Windows of time", windows::FUNCTIONS),
    ("JSON", json::FUNCTIONS),
    ("Arrays", arrays::FUNCTIONS),
    ("Maps and structs", maps::FUNCTIONS),
    ("Functions of functions", lambdas::FUNCTIONS),
    ("Rows and casts", generators::FUNCTIONS),
    ("Of rewritten texts", hidden::FUNCTIONS),
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    SUBJECTS.iter().flat_map(|(_, entries)| *entries)
}

fn of_name(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.names.contains(&name))
}

/// What the function of this name, in lower case, is here.
pub(crate) fn meaning(name: &str) -> Meaning<'static> {
    let Some(entry) = of_name(name) else { return Meaning::Unknown };
    let of_row = matches!(entry.how, How::Engine | How::Own(_) | How::Lambda);
    match entry.how {
        How::Said(rewrite) => Meaning::Known(Known::Rewritten(rewrite)),
        How::Refused(why) => Meaning::Refused(why),
        _ => Meaning::Known(Known::Same { name: entry.calls, least: entry.least, most: entry.most, of_row }),
    }
}

/// Whether the function of this name, in lower case, makes one value of the rows of a group.
pub(crate) fn is_aggregate(name: &str) -> bool {
    of_name(name).is_some_and(|entry| match entry.how {
        How::EngineAggregate | How::Aggregate(_) => true,
        How::Said(rewrite) => rewrite.is_of_group(),
        How::Engine | How::EngineWindow | How::Own(_) | How::Lambda | How::Refused(_) => false,
    })
}

/// Names that are executed.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    entries().filter(|entry| !matches!(entry.how, How::Refused(_))).flat_map(|entry| entry.names.iter().copied())
}

/// Whether the function of a name answers alike when it is asked again; none for a name that is not executed.
pub fn determinism(name: &str) -> Option<Determinism> {
    let entry = of_name(&name.to_lowercase()).filter(|entry| !matches!(entry.how, How::Refused(_)))?;
    Some(entry.determinism)
}

/// A function of one row that is written here, as the engine calls it.
pub(crate) fn udf(name: &str) -> Option<Arc<ScalarUDF>> {
    entries().find_map(|entry| match entry.how {
        How::Own(own) if own.name == name => Some(Arc::new(own.udf())),
        _ => None,
    })
}

/// Makes what is written here known to a context.
pub(crate) fn register(context: &SessionContext) {
    for entry in entries() {
        match entry.how {
            How::Own(own) => context.register_udf(own.udf()),
            How::Aggregate(aggregate) => context.register_udaf(aggregate.udf()),
            _ => {}
        }
    }
    lambdas::functions().for_each(|function| context.register_higher_order_function(Arc::new(function)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_once() {
        let mut names: Vec<&str> = entries().flat_map(|entry| entry.names.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn what_answers_otherwise_each_time_is_known() {
        assert_eq!(determinism("UPPER"), Some(Determinism::Always));
        assert_eq!(determinism("uuid"), Some(Determinism::Never));
        assert_eq!(determinism("now"), Some(Determinism::WithinAQuery));
        assert_eq!(determinism("collect_list"), Some(Determinism::ByOrder));
        assert_eq!(determinism("monotonically_increasing_id"), None);
    }
}
