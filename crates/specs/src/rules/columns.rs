//! Columns: their names, the lists that name them, the layouts over them.

use std::collections::HashMap;

use tributary_fault::nearest;

use super::Findings;
use crate::column::Column;
use crate::data_type::DataType;
use crate::error::Error;
use crate::problem::Path;

/// Columns that readers of a change feed add.
const CHANGE_FEED: [&str; 3] = ["_change_type", "_commit_version", "_commit_timestamp"];
/// How many clustering columns a table has at most.
const CLUSTER_COLUMNS_MAX: usize = 4;

/// What the columns of a table may not be.
#[derive(Clone, Copy, Default)]
pub(super) struct Reserved<'a> {
    /// Whether columns may say how messages write them.
    pub encodings: bool,
    /// Whether `__` may begin a name, as in a view that passes our own columns through.
    pub double_underscore: bool,
    /// Names with `__` that are meant all the same.
    pub except: &'a [&'a str],
    /// Names the table has already.
    pub taken: &'a [&'a str],
}

/// Declared columns of a table.
pub(super) fn check_declared(findings: &mut Findings, path: &Path, columns: &[Column], reserved: Reserved<'_>) {
    check_fields(findings, path, columns);
    for (index, column) in columns.iter().enumerate() {
        let path = path.index(index);
        check_name(findings, &path.field("name"), &column.name, reserved);
        check_values(findings, &path, column, columns);
        if column.encoding.is_some() && !reserved.encodings {
            let reason = "how messages write values is declared in the columns of a feed";
            findings.add(path.field("encoding"), Error::ColumnRefused { column: column.name.clone(), reason });
        }
        check_nested(findings, &path.field("type"), &column.name, &column.data_type);
    }
}

/// A name a column is to have.
pub(super) fn check_name(findings: &mut Findings, path: &Path, name: &str, reserved: Reserved<'_>) {
    let is_one_of = |names: &[&str]| names.iter().any(|taken| taken.eq_ignore_ascii_case(name));
    let reason = if is_one_of(&CHANGE_FEED) {
        "the change feed has a column of this name"
    } else if name.starts_with("__") && !reserved.double_underscore && !reserved.except.contains(&name) {
        "names that begin with __ are ours"
    } else if is_one_of(reserved.taken) {
        "the table has a column of this name"
    } else if name.chars().any(char::is_control) {
        "it has a control character"
    } else {
        return;
    };
    findings.add(path.clone(), Error::NameForbidden { name: name.to_owned(), what: "a column", reason: reason.to_owned() });
}

/// No empty name, none twice.
fn check_fields(findings: &mut Findings, path: &Path, fields: &[Column]) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (index, field) in fields.iter().enumerate() {
        let path = path.index(index).field("name");
        findings.refuse_empty(&path, &field.name, "the name of a column");
        if let Some(first) = seen.insert(field.name.to_lowercase(), &field.name) {
            findings.add(path, Error::NameTwice { name: field.name.clone(), first: first.to_owned(), what: "column" });
        }
    }
}

/// Default and generation expressions.
fn check_values(findings: &mut Findings, path: &Path, column: &Column, columns: &[Column]) {
    let mut refuse = |path: Path, reason| findings.add(path, Error::ColumnRefused { column: column.name.clone(), reason });
    if column.default.is_some() && column.generated.is_some() {
        refuse(path.field("generated"), "a column is either given a default or generated");
    }
    if let Some(expression) = &column.generated {
        let words: Vec<String> = expression.split_whitespace().map(str::to_lowercase).collect();
        if words.iter().take(4).any(|word| word == "identity" || word.starts_with("identity(")) && !has_column(columns, "identity") {
            refuse(path.field("generated"), "identity columns are not supported; number the rows in the query or the source");
        }
        findings.refuse_empty(&path.field("generated"), expression, "the generation expression");
    }
    if let Some(expression) = &column.default {
        findings.refuse_empty(&path.field("default"), expression, "the default expression");
    }
}

fn has_column(columns: &[Column], name: &str) -> bool {
    columns.iter().any(|column| column.name.eq_ignore_ascii_case(name))
}

/// Fields inside a column's type; `path` is the type's, for a type is one text.
fn check_nested(findings: &mut Findings, path: &Path, name: &str, data_type: &DataType) {
    match data_type {
        DataType::Array(element) => check_nested(findings, path, name, element),
        DataType::Map(key, value) => {
            check_nested(findings, path, name, key);
            check_nested(findings, path, name, value);
        }
        DataType::Struct(fields) => {
            let mut seen: HashMap<String, &str> = HashMap::new();
            let refused = |reason| Error::ColumnRefused { column: name.to_owned(), reason };
            if fields.is_empty() {
                findings.add(path.clone(), refused("a struct has at least one field"));
            }
            for field in fields {
                findings.refuse_empty(path, &field.name, "the name of a field");
                if let Some(first) = seen.insert(field.name.to_lowercase(), &field.name) {
                    findings.add(path.clone(), Error::NameTwice { name: field.name.clone(), first: first.to_owned(), what: "field" });
                }
                if field.default.is_some() || field.generated.is_some() {
                    findings.add(path.clone(), refused("fields of a struct have neither defaults nor generation expressions"));
                }
                check_nested(findings, path, &format!("{name}.{}", field.name), &field.data_type);
            }
        }
        _ => {}
    }
}

/// The columns a list may name, and what they are columns of; none where they are not known before the run.
#[derive(Clone, Default)]
pub(super) struct Known<'a> {
    pub of: &'static str,
    pub columns: Option<Vec<&'a str>>,
}

impl<'a> Known<'a> {
    /// The declared columns; none declared means none known.
    pub fn declared(of: &'static str, columns: &'a [Column]) -> Self {
        Self { of, columns: (!columns.is_empty()).then(|| columns.iter().map(|column| column.name.as_str()).collect()) }
    }

    /// With more names, where any are known.
    pub fn and(mut self, more: &[&'a str]) -> Self {
        self.columns.iter_mut().for_each(|columns| columns.extend(more));
        self
    }

    fn lacks(&self, name: &str) -> bool {
        self.columns.as_ref().is_some_and(|columns| !columns.iter().any(|column| column.eq_ignore_ascii_case(name)))
    }
}

/// A list of columns: none empty, none twice, all known.
pub(super) fn check_list(findings: &mut Findings, path: &Path, names: &[String], known: &Known<'_>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        let path = path.index(index);
        findings.refuse_empty(&path, name, "the name of a column");
        if let Some(first) = seen.insert(name.to_lowercase(), name) {
            findings.add(path, Error::NameTwice { name: name.clone(), first: first.to_owned(), what: "column" });
        } else if known.lacks(name) && !name.trim().is_empty() {
            let near = known.columns.iter().flatten().copied();
            let nearest = nearest(name, near).map(str::to_owned);
            findings.add(path, Error::ColumnUnknown { column: name.clone(), of: known.of.to_owned(), nearest });
        }
    }
}

/// Partitioning, clustering and Z-order of a table.
pub(super) struct Layout<'a> {
    pub partition_by: &'a [String],
    pub cluster_by: &'a [String],
    pub zorder_by: &'a [String],
    pub known: Known<'a>,
    /// Declared columns, for their types.
    pub declared: &'a [Column],
}

impl Layout<'_> {
    pub fn check(&self, findings: &mut Findings, path: &Path) {
        for (name, columns) in [("partition_by", self.partition_by), ("cluster_by", self.cluster_by), ("zorder_by", self.zorder_by)] {
            check_list(findings, &path.field(name), columns, &self.known);
        }
        self.check_exclusion(findings, path);
        self.check_types(findings, path);
        if self.cluster_by.len() > CLUSTER_COLUMNS_MAX {
            let column = self.cluster_by[CLUSTER_COLUMNS_MAX].clone();
            let error = Error::LayoutColumn { layout: "cluster_by", column, reason: "a table is clustered by at most 4 columns" };
            findings.add(path.field("cluster_by").index(CLUSTER_COLUMNS_MAX), error);
        }
    }

    fn check_exclusion(&self, findings: &mut Findings, path: &Path) {
        let mut exclude = |first, second: &'static str| findings.add(path.field(second), Error::LayoutTwice { first, second });
        if !self.partition_by.is_empty() && !self.cluster_by.is_empty() {
            exclude("partition_by", "cluster_by");
        }
        if !self.cluster_by.is_empty() && !self.zorder_by.is_empty() {
            exclude("cluster_by", "zorder_by");
        }
        for (index, column) in self.zorder_by.iter().enumerate() {
            if self.partition_by.iter().any(|name| name.eq_ignore_ascii_case(column)) {
                let reason = "it is a partition column, whose files hold one value each";
                findings
                    .add(path.field("zorder_by").index(index), Error::LayoutColumn { layout: "zorder_by", column: column.clone(), reason });
            }
        }
        if !self.declared.is_empty() && self.declared.iter().all(|column| self.partition_by.contains(&column.name)) {
            let column = self.declared[0].name.clone();
            let reason = "a table has at least one column that does not partition it";
            findings.add(path.field("partition_by"), Error::LayoutColumn { layout: "partition_by", column, reason });
        }
    }

    fn check_types(&self, findings: &mut Findings, path: &Path) {
        for (layout, columns) in [("partition_by", self.partition_by), ("cluster_by", self.cluster_by), ("zorder_by", self.zorder_by)] {
            for (index, name) in columns.iter().enumerate() {
                let declared = self.declared.iter().find(|column| column.name.eq_ignore_ascii_case(name));
                if declared.is_some_and(|column| has_no_order(&column.data_type)) {
                    let reason = "its type has no order";
                    findings.add(path.field(layout).index(index), Error::LayoutColumn { layout, column: name.clone(), reason });
                }
            }
        }
    }
}

fn has_no_order(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(_) | DataType::Array(_) | DataType::Map(..) | DataType::Binary)
}
