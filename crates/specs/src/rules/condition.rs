//! Merge conditions, held to the forms whose result does not depend on how changes are cut or in which order they arrive.
//!
//! A condition is asked when an event meets the row, or finds none; which row it meets depends on what has arrived. Two kinds do
//! not: a filter, that looks at the event alone and treats it the same whether or not the row is there, and a condition that
//! only repeats the order in which events are applied anyway.
//!
//! - `insert_when` and `update_when` with one text over `source.`: a filter of upserts.
//! - `insert_when` alone over key columns: the same for every event of a key, so none of a refused key is ever a row: a filter.
//! - `insert_when` alone over any `source.` column for `append` and `insert_only`, which never update: a filter.
//! - `update_when` alone: only `source.s >= target.s` with `s` the one column of the declared sequence (`>` would keep the
//!   first to arrive of two equal ones), for `monotonic_advance` `source.c > target.c` with its one column.
//! - `delete_when` over `source.`: a filter of deletes.

use super::sql::{Token, tokens};
use super::{Findings, silver};
use crate::dataset::{MergePolicy, SilverSpec};
use crate::error::Error;
use crate::problem::Path;

pub(super) fn check(findings: &mut Findings, path: &Path, spec: &SilverSpec) {
    let insert = Condition::read(findings, path, "insert_when", spec.insert_when.as_deref());
    let update = Condition::read(findings, path, "update_when", spec.update_when.as_deref());
    let delete = Condition::read(findings, path, "delete_when", spec.delete_when.as_deref());
    let same_text = insert.is_some() && insert.as_ref().map(|insert| &insert.tokens) == update.as_ref().map(|update| &update.tokens);
    let mut refuse = |condition: &Condition, reason: String| {
        findings.add(path.field(condition.name), Error::ConditionDependsOnArrival { condition: condition.name, reason });
    };
    if let Some(insert) = &insert {
        let only_inserts = matches!(spec.policy, MergePolicy::Append | MergePolicy::InsertOnly { .. });
        if let Some(column) = insert.target.first() {
            refuse(insert, format!("there is no target row when target.{column} is asked for"));
        } else if let Some(column) = insert.source.iter().find(|column| !silver::is_key(spec, column))
            && !only_inserts
            && !same_text
        {
            let reason = format!(
                "source.{column} is no key column, and a later event of the key would update the row; give update_when the same text"
            );
            refuse(insert, reason);
        }
    }
    if let Some(update) = update.as_ref().filter(|_| !same_text)
        && let Some(reason) = reason_against_update(update, spec)
    {
        refuse(update, reason);
    }
    if let Some(delete) = &delete
        && let Some(column) = delete.target.first()
    {
        refuse(delete, format!("target.{column} is what has arrived so far"));
    }
    check_effect(findings, path, spec);
}

/// Conditions that are never asked under the policy.
fn check_effect(findings: &mut Findings, path: &Path, spec: &SilverSpec) {
    let updates = !matches!(spec.policy, MergePolicy::Append | MergePolicy::InsertOnly { .. });
    if spec.update_when.is_some() && !updates {
        silver::no_effect(findings, path.field("update_when"), "update_when", &spec.policy, "it updates no rows");
    }
    if spec.delete_when.is_some() && !spec.policy.applies_deletes() {
        silver::no_effect(findings, path.field("delete_when"), "delete_when", &spec.policy, "it applies no deletes");
    }
}

fn reason_against_update(update: &Condition, spec: &SilverSpec) -> Option<String> {
    let (order, operator) = match &spec.policy {
        MergePolicy::MonotonicAdvance { columns } => (columns, ">"),
        _ => (&spec.sequence_by, ">="),
    };
    if let (Some((column, found)), [only]) = (update.compares_source_with_target(), order.as_slice())
        && column.eq_ignore_ascii_case(only)
    {
        return (found != operator).then(|| format!("write source.{column} {operator} target.{column}; {found} keeps what arrived first"));
    }
    Some(match (update.target.first(), &spec.policy) {
        (Some(column), MergePolicy::MonotonicAdvance { .. }) => format!("target.{column} is what has arrived so far"),
        (Some(column), _) => format!("target.{column} is what has arrived so far; to accept only growing values use monotonic_advance"),
        (None, _) => "an event that it refuses would still be inserted where it arrives first; give insert_when the same text".to_owned(),
    })
}

/// A condition taken apart.
struct Condition {
    name: &'static str,
    tokens: Vec<Token>,
    /// Columns named after `source.`, in lower case where not quoted.
    source: Vec<String>,
    /// Columns named after `target.`.
    target: Vec<String>,
}

impl Condition {
    /// Reads a condition; one that is not readable, or names columns without saying whose, is reported.
    fn read(findings: &mut Findings, path: &Path, name: &'static str, text: Option<&str>) -> Option<Self> {
        let text = text?;
        let path = path.field(name);
        findings.refuse_empty(&path, text, name);
        match Self::parse(name, text) {
            Ok(condition) => Some(condition),
            Err(reason) => {
                findings.add(path, Error::ConditionDependsOnArrival { condition: name, reason });
                None
            }
        }
    }

    fn parse(name: &'static str, text: &str) -> Result<Self, String> {
        let tokens = tokens(text)?;
        let (mut source, mut target) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < tokens.len() {
            match (&tokens[at], tokens.get(at + 1), tokens.get(at + 2)) {
                (Token::Word(side), Some(dot), Some(Token::Word(column) | Token::Quoted(column))) if is_symbol(dot, ".") => {
                    match side.as_str() {
                        "source" => source.push(column.clone()),
                        "target" => target.push(column.clone()),
                        _ => return Err(format!("{side}.{column} is neither of source nor of target")),
                    }
                    at += 3;
                    while tokens.get(at).is_some_and(|token| is_symbol(token, ".")) {
                        at += 2;
                    }
                }
                (Token::Word(function), Some(bracket), _) if is_symbol(bracket, "(") && !is_keyword(function) => {
                    if VOLATILE.contains(&function.as_str()) {
                        return Err(format!("{function}() differs from run to run"));
                    }
                    at += 1;
                }
                (Token::Word(word), ..) if VOLATILE.contains(&word.as_str()) => return Err(format!("{word} differs from run to run")),
                (Token::Word(word), ..) if matches!(word.as_str(), "select" | "exists") => {
                    return Err("it asks other tables".to_owned());
                }
                (Token::Word(word), ..) if is_keyword(word) => at += 1,
                (Token::Word(word) | Token::Quoted(word), ..) => {
                    return Err(format!("{word} does not say whose column it is; write source.{word} or target.{word}"));
                }
                _ => at += 1,
            }
        }
        Ok(Self { name, tokens, source, target })
    }

    /// The column and operator of `source.c <op> target.c`, also written the other way round.
    fn compares_source_with_target(&self) -> Option<(&str, &str)> {
        let [Token::Word(left), _, _, Token::Symbol(operator), Token::Word(right), _, _] = self.tokens.as_slice() else { return None };
        let ([source], [target]) = (self.source.as_slice(), self.target.as_slice()) else { return None };
        let operator = match (left.as_str(), right.as_str(), operator.as_str()) {
            ("source", "target", operator) => operator,
            ("target", "source", "<") => ">",
            ("target", "source", "<=") => ">=",
            _ => return None,
        };
        source.eq_ignore_ascii_case(target).then_some((source, operator))
    }
}

fn is_symbol(token: &Token, symbol: &str) -> bool {
    matches!(token, Token::Symbol(found) if found == symbol)
}

/// Functions and words whose value is not the event's.
const VOLATILE: [&str; 14] = [
    "now",
    "random",
    "rand",
    "uuid",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtimestamp",
    "today",
    "current_user",
    "session_user",
    "user",
    "version",
    "nextval",
];

fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "and",
        "or",
        "not",
        "is",
        "null",
        "true",
        "false",
        "unknown",
        "in",
        "like",
        "ilike",
        "similar",
        "to",
        "rlike",
        "between",
        "case",
        "when",
        "then",
        "else",
        "end",
        "cast",
        "try_cast",
        "as",
        "distinct",
        "from",
        "extract",
        "interval",
        "escape",
        "at",
        "time",
        "zone",
        "date",
        "timestamp",
        "timestamp_ntz",
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "integer",
        "bigint",
        "real",
        "float",
        "double",
        "precision",
        "decimal",
        "numeric",
        "string",
        "varchar",
        "text",
        "binary",
        "year",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "any",
        "all",
        "div",
        "for",
        "both",
        "leading",
        "trailing",
        "array",
        "struct",
        "map",
    ];
    KEYWORDS.contains(&word)
}
