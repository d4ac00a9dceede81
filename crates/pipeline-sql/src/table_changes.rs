//! `table_changes('table', from[, to])`: the change feed of a table, from a version or an instant on.

use tributary_specs::StreamRead;
use tributary_sql_dialect::name_parts;

use crate::call::{Call, Value};
use crate::error::Error;
use crate::literal::quoted;
use crate::names::Written;
use crate::report::Report;

/// How the function is called.
pub(crate) const NAME: &str = "table_changes";

/// The range of changes that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changes {
    from: Value,
    to: Option<Value>,
}

/// What the call of `table_changes` reads; a mistake is told and gives none.
pub(crate) fn read(call: &Call, of: &str, report: &mut Report) -> Option<(Written, Changes)> {
    let is_point = |value: &Value| matches!(value, Value::Text(_)) || version(value).is_some();
    let given: Vec<&Value> = call.unnamed.iter().chain(&call.options).map(|argument| &argument.value).collect();
    let read = match given.as_slice() {
        [Value::Text(name), from, to @ ..] if to.len() <= 1 && is_point(from) && to.iter().all(|to| is_point(to)) => {
            name_of(name).map(|name| (name, Changes { from: (*from).clone(), to: to.first().map(|to| (*to).clone()) }))
        }
        _ => None,
    };
    if read.is_none() {
        let expected = "table_changes('table', first[, last]), each a version or an instant in quotes".to_owned();
        report.fault(&call.place, &Error::Syntax { of: of.to_owned(), expected, found: "other arguments".to_owned() });
    }
    read
}

/// A name in a text, parts in back-quotes as they are.
fn name_of(text: &str) -> Option<Written> {
    let parts = name_parts(text)?.into_iter().map(|part| (part.value, part.quote_style.is_some()));
    Some(Written::of(&parts.collect::<Vec<_>>()))
}

fn version(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.parse().ok(),
        _ => None,
    }
}

impl Changes {
    /// How a stream of them is read; none where an instant stands for a version.
    pub(crate) fn stream(&self) -> Option<StreamRead> {
        let to = self.to.as_ref().map(version);
        Some(StreamRead::Changes { from: version(&self.from)?, to: to.map_or(Some(None), |to| to.map(Some))? })
    }

    /// The call as engines take it, of a table by this name.
    pub(crate) fn call(&self, table: &str) -> String {
        let points = std::iter::once(&self.from).chain(&self.to).map(|point| match point {
            Value::Number(number) => number.clone(),
            Value::Text(text) => quoted(text),
            _ => String::new(),
        });
        let arguments: Vec<String> = std::iter::once(quoted(table)).chain(points).collect();
        format!("{NAME}({})", arguments.join(", "))
    }
}
