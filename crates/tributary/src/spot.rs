//! Which part of a dataset an error is about, and where that stands in the files that the pipeline was read from.

use tributary_gold_agg::Error as Gold;
use tributary_pipeline_sql::Spot;
use tributary_silver_merge::Error as Silver;
use tributary_spark_sql::Error as Text;
use tributary_specs::{DatasetRef, GoldSpec, Layer, Mismatch, Path, Place, SilverSpec, Step, TableName};

use crate::{Error, Pipeline};

/// What of a dataset is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// From the dataset on.
    pub steps: Vec<Step>,
    /// Line and column of the text there.
    pub position: Option<(u64, u64)>,
    /// A name that stands in it.
    pub name: Option<String>,
}

impl Part {
    fn of(fields: &[&str]) -> Self {
        Self { steps: fields.iter().map(|field| Step::Field((*field).to_owned())).collect(), ..Self::default() }
    }

    fn with_text(self, error: &Text) -> Self {
        Self { position: error.span(), name: error.name().map(last), ..self }
    }

    fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// The field of the dataset that it is, or is in.
    pub(crate) fn field(&self) -> Option<&str> {
        match self.steps.first() {
            Some(Step::Field(field)) => Some(field),
            _ => None,
        }
    }

    /// The way to it.
    pub(crate) fn path(&self, dataset: &Path) -> Path {
        dataset.steps().iter().chain(&self.steps).cloned().collect()
    }
}

/// What is wrong with a text of a dataset, where an error is about one.
pub(crate) fn text_of(error: &Error) -> Option<&Text> {
    match error {
        Error::Silver(Silver::Text { source, .. }) | Error::Gold(Gold::Sql { source, .. }) => Some(source),
        _ => None,
    }
}

/// The function that a text calls and that is not executed.
pub(crate) fn function_of(text: &Text) -> Option<&str> {
    match text {
        Text::Refused { what, .. } => what.strip_prefix("the function `")?.strip_suffix('`'),
        _ => None,
    }
}

/// The last part of a name.
fn last(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).to_owned()
}

/// The part of a dataset that an error is about; all of it where nothing tells.
pub(crate) fn part(error: &Error, expectations: &[&str]) -> Part {
    let rule = |name: &str| {
        let at = expectations.iter().position(|rule| *rule == name).unwrap_or_default();
        let steps = [Step::Field("expectations".to_owned()), Step::Index(at), Step::Field("expression".to_owned())];
        Part { steps: steps.to_vec(), ..Part::default() }
    };
    let clause = |clause: &str| match clause.strip_prefix("expectation `").and_then(|name| name.strip_suffix('`')) {
        Some(name) => rule(name),
        None => of_clause(clause),
    };
    match error {
        Error::Silver(Silver::Text { clause: of, source, .. }) => clause(of).with_text(source),
        Error::Silver(Silver::Sql { clause: of, .. }) => clause(of),
        Error::Silver(Silver::NoColumn { clause: of, column, .. }) => of_clause(of).named(column),
        Error::Silver(Silver::DeclaredSchema { differences, .. }) | Error::Gold(Gold::DeclaredSchema { differences, .. }) => {
            declared(differences)
        }
        Error::Gold(Gold::Sql { source, .. }) => Part::of(&["query"]).with_text(source),
        Error::Gold(Gold::Rule { expectation, span, .. }) => Part { position: *span, ..rule(expectation) },
        Error::Gold(Gold::Volatile { function, .. }) => Part::of(&["query"]).named(function),
        Error::Gold(Gold::Query { .. } | Gold::Planned { .. } | Gold::Column { .. }) => Part::of(&["query"]),
        _ => Part::default(),
    }
}

fn of_clause(clause: &str) -> Part {
    match clause {
        "select"
        | "sequence_by"
        | "insert_when"
        | "delete_when"
        | "keys"
        | "columns"
        | "track_history"
        | "ignore_null_updates"
        | "partition_by"
        | "cluster_by"
        | "zorder_by"
        | "policy" => Part::of(&[clause]),
        "apply_as_delete_when" => Part::of(&["deletes", "apply_as_delete_when"]),
        "apply_as_truncate_when" => Part::of(&["deletes", "apply_as_truncate_when"]),
        _ => Part::default(),
    }
}

/// The declared column that differs; what only the query has is the query's.
fn declared(differences: &[Mismatch]) -> Part {
    match differences.first() {
        Some(Mismatch::NotDeclared { .. }) | None => Part::of(&["schema"]),
        Some(other) => Part::of(&["schema"]).named(other.column()),
    }
}

/// The chain of messages; `placed` = where it stands is said otherwise, so that lines and columns of the text alone are left out.
pub(crate) fn words(error: &Error, placed: bool) -> String {
    let told = tributary_fault::chain(error);
    match (error, text_of(error)) {
        _ if !placed => told,
        (_, Some(text)) => told.replacen(&text.to_string(), &text.without_place(), 1),
        (Error::Gold(Gold::Rule { span: Some((line, column)), .. }), _) => {
            told.replacen(&format!(" (line {line}, column {column})"), "", 1)
        }
        _ => told,
    }
}

impl Pipeline {
    /// Names of the rules of a dataset, in their order.
    pub(crate) fn rules_of(&self, dataset: &DatasetRef) -> Vec<&str> {
        let rules = match dataset.layer {
            Layer::Bronze => return Vec::new(),
            Layer::Silver => &self.spec().silver[dataset.index].expectations,
            Layer::Gold => &self.spec().gold[dataset.index].expectations,
        };
        rules.iter().map(|rule| rule.name.as_str()).collect()
    }

    /// Whether a feed was read from the pipeline's SQL files.
    pub(crate) fn defines_feed(&self, table: &TableName) -> bool {
        let found = self.spec().datasets().into_iter().find(|dataset| dataset.layer == Layer::Bronze && dataset.table == *table);
        found.is_some_and(|feed| self.place(&feed.path(), &Part::default()).is_some())
    }

    /// Where a part of a dataset stands in the SQL files of the pipeline; none where it was not read from any.
    pub(crate) fn place(&self, dataset: &Path, part: &Part) -> Option<Place> {
        let path = part.path(dataset);
        let text = self.text_at(&path);
        self.origins()?.place(&path, &Spot { text, position: part.position, name: part.name.as_deref() })
    }

    /// What an error of a dataset says, with file, line and column before it where they are known.
    pub(crate) fn told(&self, table: &TableName, error: &Error) -> String {
        let dataset = self.spec().datasets().into_iter().find(|dataset| dataset.table == *table);
        let place = dataset.and_then(|dataset| {
            let part = part(error, &self.rules_of(&dataset));
            // what is of no part of the declaration is of the lake
            self.place(&dataset.path(), &part).filter(|_| !part.steps.is_empty())
        });
        match place {
            Some(place) => format!("{place}: {}", words(error, true)),
            None => words(error, false),
        }
    }

    /// The text of a part of the specs.
    fn text_at(&self, path: &Path) -> Option<&str> {
        let [Step::Field(layer), Step::Index(at), rest @ ..] = path.steps() else { return None };
        match layer.as_str() {
            "silver" => text_of_silver(self.spec().silver.get(*at)?, rest),
            "gold" => text_of_gold(self.spec().gold.get(*at)?, rest),
            _ => None,
        }
    }
}

fn text_of_silver<'s>(spec: &'s SilverSpec, steps: &[Step]) -> Option<&'s str> {
    match steps {
        [Step::Field(field)] if field == "select" => spec.select.as_deref(),
        [Step::Field(list), Step::Index(at), Step::Field(field)] if list == "flows" && field == "select" => {
            spec.flows.get(*at)?.select.as_deref()
        }
        [Step::Field(list), Step::Index(at), ..] if list == "expectations" => {
            spec.expectations.get(*at).map(|rule| rule.expression.as_str())
        }
        _ => None,
    }
}

fn text_of_gold<'s>(spec: &'s GoldSpec, steps: &[Step]) -> Option<&'s str> {
    match steps {
        [Step::Field(field)] if field == "query" => Some(&spec.query),
        [Step::Field(list), Step::Index(at), ..] if list == "expectations" => {
            spec.expectations.get(*at).map(|rule| rule.expression.as_str())
        }
        _ => None,
    }
}
