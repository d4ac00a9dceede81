//! Every function is held to what Spark answers: expressions and queries with the types and values, or the errors, that were recorded
//! from it (`tests/interop/readers/record_functions.py`).
//!
//! Where we answer, we answer as Spark does. What we do not answer though Spark does, and what we answer though Spark does not, is
//! listed in `tests/golden/unlike_spark.txt`, which is to be read when it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tributary_lake::arrow::array::ArrayRef;
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::prelude::{DataFrame, SessionContext};

use crate::convert::word;
use crate::value::{self, Value};
use crate::{Tables, Text, functions, prepare, run_as, shortest, words};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// What Spark said of a text.
#[derive(Debug, Clone)]
struct Recorded {
    subject: String,
    text: String,
    /// Types and rows, or the class of an error.
    said: Result<(Vec<String>, Vec<Json>), String>,
}

fn recorded() -> Vec<Recorded> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder().join("values")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let subject = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let record: Json = serde_json::from_str(line).unwrap();
            let text = record["text"].as_str().unwrap().to_owned();
            let said = match (record["error"].as_str(), record.get("columns")) {
                (Some(error), _) => Err(error.to_owned()),
                (None, Some(columns)) => {
                    let types = columns.as_array().unwrap().iter().map(|column| column[1].as_str().unwrap().to_owned()).collect();
                    Ok((types, record["rows"].as_array().unwrap().clone()))
                }
                // a day or an instant that could not be written down
                (None, None) => continue,
            };
            all.push(Recorded { subject: subject.clone(), text, said });
        }
    }
    all
}

/// A value in the form of the records.
fn told(value: &Value, of: &DataType) -> Json {
    match (value, of) {
        (Value::Null, _) => Json::Null,
        (Value::Boolean(yes), _) => json!(yes),
        (Value::Whole(number), _) => json!(number),
        (Value::Float(number), _) if number.is_finite() => json!(f64::from(*number)),
        (Value::Double(number), _) if number.is_finite() => json!(number),
        (Value::Float(number), _) => not_finite(f64::from(*number)),
        (Value::Double(number), _) => not_finite(*number),
        (Value::Decimal(digits, scale), _) => json!(shortest::decimal(*digits, *scale)),
        (Value::Text(text), _) => json!(text),
        (Value::Bytes(bytes), _) => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        (Value::Date(days), _) => json!(crate::times::day_as_text(i64::from(*days))),
        (Value::Instant(at), _) => {
            let text = crate::form::Form::parse("yyyy-MM-dd'T'HH:mm:ss.SSSSSS").unwrap().write(*at).unwrap();
            json!(text)
        }
        (Value::List(inside), DataType::List(field)) => Json::Array(inside.iter().map(|value| told(value, field.data_type())).collect()),
        (Value::Struct(inside), DataType::Struct(fields)) => {
            Json::Array(inside.iter().zip(fields).map(|(value, field)| told(value, field.data_type())).collect())
        }
        (Value::Map(inside), DataType::Map(entries, _)) => {
            let DataType::Struct(fields) = entries.data_type() else { panic!("a map without entries") };
            let mut pairs: Vec<Json> =
                inside.iter().map(|(key, value)| json!([told(key, fields[0].data_type()), told(value, fields[1].data_type())])).collect();
            pairs.sort_by_key(|pair| pair[0].to_string());
            Json::Array(pairs)
        }
        other => panic!("{other:?}"),
    }
}

fn not_finite(number: f64) -> Json {
    json!(if number.is_nan() {
        "nan"
    } else if number > 0.0 {
        "inf"
    } else {
        "-inf"
    })
}

/// What we say of a text: types and rows.
async fn answered(context: &SessionContext, text: &str) -> Result<(Vec<String>, Vec<Json>), String> {
    let is_query = ["select", "values", "with"].iter().any(|word| text.to_lowercase().starts_with(word));
    let query = if is_query { text.to_owned() } else { format!("select {text} as x") };
    let parsed = Text::parse(&query).map_err(|error| error.to_string())?;
    let mut tables = Tables::default();
    for used in parsed.uses() {
        tables.put(used.clone(), Err(crate::Missing::NoTable { suggestion: None }));
    }
    let plan = parsed.plan(context, &context.state(), &tables, &[]).await.map_err(|error| error.to_string())?;
    let frame = DataFrame::new(context.state(), plan);
    // what the engine's analysis makes of it
    let frame = DataFrame::new(context.state(), frame.into_optimized_plan().map_err(|error| words(&error))?);
    let types: Vec<DataType> = frame.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let mut rows = Vec::new();
    for batch in frame.collect().await.map_err(|error| format!("the query failed: {}", words(&error)))? {
        let columns: Vec<ArrayRef> = batch.columns().iter().map(|column| value::in_canonical_form(column).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let one = |column: &ArrayRef| told(&value::read(column, row).unwrap(), column.data_type());
            rows.push(Json::Array(columns.iter().map(one).collect()));
        }
    }
    Ok((types.iter().map(word).collect(), rows))
}

/// Whether two values are one: doubles may differ in the last digits, which sums and powers of another order do.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Number(a), Json::Number(b)) => {
            let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return a == b };
            a == b || (a - b).abs() <= 1e-13 * a.abs().max(b.abs())
        }
        (a, b) => a == b,
    }
}

fn same_type(ours: &str, sparks: &str) -> bool {
    ours == sparks || (sparks == "void" || ours == "void") || is_of_nothing(ours, sparks)
}

/// Lists and maps of nothing have no other type.
fn is_of_nothing(ours: &str, sparks: &str) -> bool {
    sparks.contains("void") && ours.split(['<', '(', ' ']).next() == sparks.split(['<', '(', ' ']).next()
}

/// What is different about a text; none where it is as Spark has it.
#[derive(Debug)]
enum Difference {
    /// We answer otherwise: never.
    Wrong(String),
    /// We do not answer.
    Silent(String),
    /// We answer where Spark does not.
    Lenient(String),
}

fn difference(record: &Recorded, ours: &Result<(Vec<String>, Vec<Json>), String>) -> Option<Difference> {
    match (&record.said, ours) {
        (Err(_), Err(_)) => None,
        (Ok(_), Err(error)) => Some(Difference::Silent(error.clone())),
        (Err(class), Ok((_, rows))) => Some(Difference::Lenient(format!("{} where Spark says {class}", Json::Array(rows.clone())))),
        (Ok((types, rows)), Ok((our_types, our_rows))) => {
            let of_type = types.len() == our_types.len() && our_types.iter().zip(types).all(|(ours, sparks)| same_type(ours, sparks));
            let (told, given) = (comparable(&record.text, rows), comparable(&record.text, our_rows));
            let all = told.len() == given.len() && told.iter().zip(&given).all(|(a, b)| same(a, b));
            (!of_type || !all).then(|| {
                Difference::Wrong(format!("{our_types:?} {}, Spark {types:?} {}", Json::Array(our_rows.clone()), Json::Array(rows.clone())))
            })
        }
    }
}

/// Rows in an order of their own where the text gives them none: a union's come as its sides are done.
fn comparable(text: &str, rows: &[Json]) -> Vec<Json> {
    let mut rows = rows.to_vec();
    if text.contains(" union ") && !text.contains(" order by ") {
        rows.sort_by_key(Json::to_string);
    }
    rows
}

fn context() -> SessionContext {
    let context = SessionContext::new_with_config(tributary_lake::datafusion::prelude::SessionConfig::new().with_target_partitions(1));
    prepare(&context);
    run_as(&context, "somebody");
    context
}

/// Names of functions that a text calls.
fn called(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut word = String::new();
    for sign in text.chars() {
        if sign.is_ascii_alphanumeric() || sign == '_' {
            word.push(sign.to_ascii_lowercase());
        } else {
            if sign == '(' && !word.is_empty() {
                names.push(word.clone());
            }
            word.clear();
        }
    }
    names
}

async fn compare(records: Vec<Recorded>) -> Vec<(Recorded, Option<Difference>)> {
    let context = Arc::new(context());
    let mut found = Vec::with_capacity(records.len());
    for record in records {
        let context = Arc::clone(&context);
        let text = record.text.clone();
        let ours = tokio::spawn(async move { answered(&context, &text).await }).await;
        let ours = ours.unwrap_or_else(|panic| Err(format!("a panic: {panic}")));
        if ours.as_ref().is_err_and(|error| error.starts_with("a panic")) {
            found.push((record.clone(), Some(Difference::Wrong(format!("{ours:?}")))));
            continue;
        }
        let difference = difference(&record, &ours);
        found.push((record, difference));
    }
    found
}

#[test]
fn functions_answer_as_recorded_from_spark() {
    let only = std::env::var("TRIBUTARY_ONLY").ok();
    let records: Vec<Recorded> = recorded().into_iter().filter(|record| only.as_ref().is_none_or(|only| record.subject == *only)).collect();
    let tried = records.len();
    assert!(only.is_some() || tried > 5000, "only {tried} expressions are recorded");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_stack_size(16 << 20).enable_all().build().unwrap();
    let halves: Vec<Vec<Recorded>> = records.chunks(tried.div_ceil(2)).map(<[Recorded]>::to_vec).collect();
    let found = runtime.block_on(async {
        let tasks: Vec<_> = halves.into_iter().map(|half| tokio::spawn(compare(half))).collect();
        let mut found = Vec::new();
        for task in tasks {
            found.extend(task.await.unwrap());
        }
        found
    });
    let (mut wrong, mut unlike, mut same) = (Vec::new(), String::new(), BTreeMap::<String, usize>::new());
    for (record, difference) in &found {
        match difference {
            None => {
                if record.said.is_ok() {
                    called(&record.text).into_iter().for_each(|name| *same.entry(name).or_default() += 1);
                }
            }
            Some(Difference::Wrong(how)) => wrong.push(format!("[{}] {}: {how}", record.subject, record.text)),
            Some(Difference::Silent(why)) => unlike.push_str(&format!("{}\n  not answered: {why}\n", record.text)),
            Some(Difference::Lenient(how)) => unlike.push_str(&format!("{}\n  answered: {how}\n", record.text)),
        }
    }
    if let Some(path) = std::env::var_os("TRIBUTARY_REPORT") {
        std::fs::write(path, format!("{}\n\n{unlike}", wrong.join("\n"))).unwrap();
    }
    assert!(
        wrong.is_empty(),
        "{} of {tried} are answered otherwise than by Spark:\n{}",
        wrong.len(),
        wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
    if only.is_some() {
        return;
    }
    let without: Vec<&str> = functions::names()
        .filter(|name| same.get(*name).is_none_or(|count| *count == 0))
        .filter(|name| !BY_SYNTAX.contains(name) && !OF_THE_PLATFORM.contains(name))
        .collect();
    assert!(without.is_empty(), "no recorded value holds {without:?}");
    let path = folder().join("golden/unlike_spark.txt");
    if std::env::var_os("TRIBUTARY_BLESS").is_some() {
        std::fs::write(&path, &unlike).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), unlike, "look at the difference and run with TRIBUTARY_BLESS=1");
    let names = functions::names().count();
    println!(
        "{names} functions, {tried} expressions tried, {} answered as by Spark",
        found.iter().filter(|(_, difference)| difference.is_none()).count()
    );
}

/// Names that Spark itself does not have; `session.rs` holds them to what the platform says.
const OF_THE_PLATFORM: &[&str] = &["is_account_group_member", "is_member"];

/// Names that Spark knows without brackets only.
const BY_SYNTAX: &[&str] = &[];

#[test]
fn an_altered_value_is_found() {
    let mut records: Vec<Recorded> = recorded().into_iter().filter(|record| record.text == "date_add(date'2024-02-29', 1)").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    assert!(runtime.block_on(compare(records.clone())).iter().all(|(_, difference)| difference.is_none()));
    let Ok((_, rows)) = &mut records[0].said else { panic!("a value is recorded") };
    rows[0][0] = json!("2024-03-02");
    assert!(matches!(runtime.block_on(compare(records)).as_slice(), [(_, Some(Difference::Wrong(_)))]));
}
