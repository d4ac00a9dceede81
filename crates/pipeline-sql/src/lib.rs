//! Declarative pipeline SQL to specs, without executing anything: the union of the platform's dialect and of Spark's open pipelines.
//!
//! ```text
//! files ──▶ scan       statements, cut at semicolons and notebook cells; parameters put in, what people paste made plain
//!             ▼
//!           read       our grammar around the expressions and queries of the parser that DataFusion uses
//!             ▼
//!           check      names, who reads what, circles: over all files, definitions in any order
//!             ▼
//!           lower      feeds, silver and gold specs; views put into the queries that read them
//! ```
//!
//! - Every mistake of all files comes in one go, with file, line and column of the file as it was given.
//! - Nothing is skipped in silence: what is read but not executed is listed; what would change rows if left out is a mistake.
//! - No text makes it panic, recurse without bound or take long.

mod call;
mod check;
mod create;
mod cursor;
mod error;
mod expression;
mod fault;
mod flow;
mod items;
mod literal;
mod lower;
mod names;
mod origin;
mod parameters;
mod parsed;
mod place;
mod portability;
mod query;
mod read;
mod report;
mod scan;
mod streams;
mod table_changes;
mod text;
mod woven;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use error::Error;
pub use fault::{Fault, Faults};
pub use lower::Lowered;
pub use origin::{Origins, Spot};
pub use parsed::{
    AutoCdc, DatasetName, DeclaredColumn, Definition, Flow, FlowAction, Kind, NotApplied, Notice, Options, Parsed, Placed, SqlFile,
};
pub use portability::{Construct, Elsewhere, Platform, PortabilityRule};
pub use query::{Query, Read};
use report::Report;

/// Bytes of stack that the deepest text needs; they are only taken where they are used.
const ROOM: usize = 256 << 20;

/// Reads the files of one pipeline. `parameters` are what `${name}` and `:name` stand for; `SET` in a file goes before them.
///
/// Never panics; every mistake of all files is in [`Parsed::faults`].
///
/// ```
/// use tributary_pipeline_sql::{Options, SqlFile, parse};
///
/// let text = "
/// CREATE OR REFRESH STREAMING TABLE silver.orders;
/// CREATE FLOW orders AS AUTO CDC INTO silver.orders
///   FROM STREAM(bronze.orders) KEYS (order_id) SEQUENCE BY updated_at;
/// ";
/// let files = [SqlFile { path: "orders.sql".to_owned(), text: text.to_owned() }];
/// let parsed = parse(&files, &Default::default(), &Options::default());
/// assert!(parsed.faults.is_empty());
/// assert_eq!(parsed.to_pipeline("shop")?.pipeline.silver[0].keys, ["order_id"]);
/// # Ok::<(), tributary_pipeline_sql::Faults>(())
/// ```
pub fn parse(files: &[SqlFile], parameters: &BTreeMap<String, String>, options: &Options) -> Parsed {
    stacker::grow(ROOM, || read_files(files, parameters, options))
}

fn read_files(files: &[SqlFile], parameters: &BTreeMap<String, String>, options: &Options) -> Parsed {
    let mut report = Report::default();
    let mut defined = read::Defined::default();
    let mut lines_of = BTreeMap::new();
    for file in files {
        let lines = Arc::new(place::Lines::new(&file.path, &file.text));
        lines_of.insert(file.path.clone(), Arc::clone(&lines));
        let mut scope = names::Scope::new(options);
        let mut values = parameters::Parameters::new(parameters);
        let mut settings = Vec::new();
        scan::statements(&file.text, &lines, &mut values, |statement, values| {
            let mut reader =
                read::Reader { scope: &mut scope, parameters: values, report: &mut report, defined: &mut defined, settings: &mut settings };
            reader.statement(statement, &lines);
        });
        report.muted = false;
        for (name, place) in settings {
            match values.is_used(&name) {
                true => report.uses_one(place, &portability::rules::SET_VALUE, None, &name),
                false => report.not_applied(place, &format!("SET {name}"), None, "nothing in the file asks for it"),
            }
        }
    }
    let graph = check::check(&defined, &mut report);
    let lowered = lower::lower(&defined, &graph, lines_of, &mut report);
    portability::note(&defined, &mut report);
    let read::Defined { datasets, flows, .. } = defined;
    let Report { mut faults, mut not_applied, mut notices, mut constructs, .. } = report;
    let order: BTreeMap<&str, usize> = files.iter().enumerate().map(|(at, file)| (file.path.as_str(), at)).collect();
    let key = |file: &str, line, column| (order.get(file).copied().unwrap_or_default(), line, column);
    faults.sort_by_key(|fault| key(&fault.file, fault.line, fault.column));
    faults.dedup();
    not_applied.sort_by_key(|clause| key(&clause.place.file, clause.place.line, clause.place.column));
    notices.sort_by_key(|notice| key(&notice.place.file, notice.place.line, notice.place.column));
    notices.dedup();
    constructs.sort_by_key(|construct| key(&construct.place.file, construct.place.line, construct.place.column));
    constructs.dedup();
    Parsed { datasets, flows, not_applied, notices, constructs, faults, lowered }
}

/// What each construct is on other platforms, in the order of the reference page.
pub fn portability_rules() -> &'static [&'static PortabilityRule] {
    portability::rules::ALL
}

/// What is said of the feeds of a bundle, and of its pipelines.
pub fn portability_of_bundles() -> [&'static PortabilityRule; 2] {
    [&portability::rules::OUR_FEED, &portability::rules::BUNDLE]
}
