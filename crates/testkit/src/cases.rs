//! The worked cases: `tests/cases/scd-cases.json` (32 histories with both types' results) and `handed.jsonl` (94 problems).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::oracle::{Event, IgnoreNulls, Kind, Model, Row};
use crate::value::Value;

/// One worked history.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScdCase {
    /// Its id.
    pub name: String,
    /// Key columns.
    pub keys: Vec<String>,
    /// One column, or several that are compared as a struct.
    pub sequence_by: SequenceBy,
    /// Declarations of the dataset.
    pub options: CaseOptions,
    /// Declarations of the type 1 run, where they differ.
    #[serde(default)]
    pub options_scd1: Option<CaseOptions>,
    /// Source rows; `_batch` is the micro-batch a row arrives in.
    pub events: Vec<BTreeMap<String, Json>>,
    /// Rows of the type 1 table; none = an error.
    pub expected_scd1: Option<Vec<BTreeMap<String, Json>>>,
    /// Rows of the type 2 table; none = an error.
    pub expected_scd2: Option<Vec<BTreeMap<String, Json>>>,
    /// The error of the type 1 run.
    #[serde(default)]
    pub expect_error: Option<String>,
    /// The error of the type 2 run.
    #[serde(default)]
    pub expect_error_scd2: Option<String>,
    /// Where the result comes from.
    pub provenance: String,
    /// What to look at.
    #[serde(default)]
    pub notes: Option<String>,
}

/// `SEQUENCE BY` of a case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum SequenceBy {
    /// A column.
    Column(String),
    /// `STRUCT(…)` of columns.
    Struct(Vec<String>),
}

impl SequenceBy {
    /// Its columns, most significant first.
    pub fn columns(&self) -> Vec<String> {
        match self {
            Self::Column(column) => vec![column.clone()],
            Self::Struct(columns) => columns.clone(),
        }
    }
}

/// Declarations of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaseOptions {
    /// `col = 'literal'`.
    pub apply_as_delete_when: Option<String>,
    /// `col = 'literal'`.
    pub apply_as_truncate_when: Option<String>,
    /// Columns of the result.
    pub columns: Option<Vec<String>>,
    /// Columns left out of the result.
    pub columns_except: Option<Vec<String>>,
    /// Null in any column is not written.
    pub ignore_null_updates: bool,
    /// Tracked columns.
    pub track_history: Option<Vec<String>>,
    /// Columns that are not tracked.
    pub track_history_except: Option<Vec<String>>,
}

/// One problem from the field.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedCase {
    /// Its id, such as `AC-01`.
    pub id: String,
    /// What it is about.
    pub area: String,
    /// Where it was seen.
    pub source_url: String,
    /// What went wrong there.
    pub problem: String,
    /// What goes in.
    pub input: Json,
    /// What must come out.
    pub expected: Json,
    /// How bad it is.
    pub severity: String,
}

/// All worked histories.
///
/// # Panics
/// When the file is not of the form.
pub fn scd() -> Vec<ScdCase> {
    serde_json::from_str(&read("scd-cases.json")).unwrap_or_else(|why| panic!("scd-cases.json: {why}"))
}

/// All problems from the field.
///
/// # Panics
/// When a line is not of the form.
pub fn handed() -> Vec<HandedCase> {
    read("handed.jsonl").lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("handed.jsonl: {why}"))).collect()
}

/// The problem with this id.
///
/// # Panics
/// When there is none.
pub fn handed_case(id: &str) -> HandedCase {
    handed().into_iter().find(|case| case.id == id).unwrap_or_else(|| panic!("there is no case {id}"))
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(file);
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("read {}: {why}", path.display()))
}

impl ScdCase {
    /// The declarations of a type's run.
    pub fn options_of(&self, scd2: bool) -> &CaseOptions {
        match &self.options_scd1 {
            Some(options) if !scd2 => options,
            _ => &self.options,
        }
    }

    /// Every column any event has, in the order they are first seen, without `_batch`.
    pub fn source_columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        for name in self.events.iter().flat_map(BTreeMap::keys) {
            if name != "_batch" && !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        columns
    }

    /// The events batch by batch, as they arrive.
    pub fn batches(&self) -> Vec<Vec<&BTreeMap<String, Json>>> {
        let mut batches: BTreeMap<u64, Vec<&BTreeMap<String, Json>>> = BTreeMap::new();
        for event in &self.events {
            batches.entry(event["_batch"].as_u64().expect("a batch number")).or_default().push(event);
        }
        batches.into_values().collect()
    }

    /// What the dataset declares, for the oracle.
    pub fn model(&self, scd2: bool) -> Model {
        let options = self.options_of(scd2);
        let all = self.source_columns();
        let kept = |column: &String| match (&options.columns, &options.columns_except) {
            (Some(only), _) => only.contains(column),
            (None, Some(except)) => !except.contains(column),
            (None, None) => true,
        };
        let columns: Vec<String> = all.into_iter().filter(kept).collect();
        let tracked = |column: &&String| match (&options.track_history, &options.track_history_except) {
            (Some(only), _) => only.contains(column),
            (None, Some(except)) => !except.contains(column),
            (None, None) => true,
        };
        let mut model = Model::new(&self.keys, &columns);
        model.tracked = model.tracked.iter().filter(tracked).cloned().collect();
        model.ignore_nulls = if options.ignore_null_updates { IgnoreNulls::All } else { IgnoreNulls::Off };
        model
    }

    /// The event of a source row, for the oracle.
    pub fn event(&self, row: &BTreeMap<String, Json>, scd2: bool) -> Event {
        let options = self.options_of(scd2);
        let holds = |condition: &Option<String>| {
            condition.as_ref().is_some_and(|condition| {
                let (column, literal) = equality(condition);
                row.get(column).and_then(Json::as_str) == Some(literal)
            })
        };
        let value = |column: &String| row.get(column).map(Value::from_json).unwrap_or_default();
        let kind = match (holds(&options.apply_as_truncate_when), holds(&options.apply_as_delete_when)) {
            (true, _) => Kind::Truncate,
            (_, true) => Kind::Delete,
            _ => Kind::Upsert,
        };
        let sequence = match &self.sequence_by {
            SequenceBy::Column(column) => value(column),
            SequenceBy::Struct(columns) => Value::Struct(columns.iter().map(|column| (column.clone(), value(column))).collect()),
        };
        let key = if kind == Kind::Truncate { Vec::new() } else { self.keys.iter().map(value).collect() };
        let row = row.keys().filter(|name| *name != "_batch").map(|name| (name.clone(), value(name))).collect();
        Event { kind, ..Event::upsert(key, sequence, row) }
    }

    /// Expected rows in the model's column order, with the ends of the period for type 2.
    pub fn expected(&self, scd2: bool) -> Option<Vec<Row>> {
        let mut columns = self.model(scd2).columns;
        if scd2 {
            columns.extend(["__START_AT".to_owned(), "__END_AT".to_owned()]);
        }
        let rows = if scd2 { &self.expected_scd2 } else { &self.expected_scd1 };
        rows.as_ref()
            .map(|rows| rows.iter().map(|row| columns.iter().map(|column| self.expected_value(column, &row[column])).collect()).collect())
    }

    /// A struct's fields come in the order of the sequence, not of the JSON text.
    fn expected_value(&self, column: &str, json: &Json) -> Value {
        match (column, json, &self.sequence_by) {
            ("__START_AT" | "__END_AT", Json::Object(fields), SequenceBy::Struct(columns)) => {
                Value::Struct(columns.iter().map(|column| (column.clone(), Value::from_json(&fields[column]))).collect())
            }
            _ => Value::from_json(json),
        }
    }

    /// The error a type's run must end with.
    pub fn expected_error(&self, scd2: bool) -> Option<&str> {
        if scd2 { self.expect_error_scd2.as_deref() } else { self.expect_error.as_deref() }
    }
}

fn equality(condition: &str) -> (&str, &str) {
    let (column, literal) = condition.split_once(" = ").unwrap_or_else(|| panic!("{condition} is not col = 'literal'"));
    (column, literal.trim_matches('\''))
}
