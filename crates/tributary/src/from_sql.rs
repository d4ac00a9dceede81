//! Pipelines from the text of SQL files.

use std::collections::BTreeMap;

use tributary_pipeline_sql::{NotApplied, SqlFile, parse};

use crate::{Error, Pipeline};

/// What SQL files are read with.
///
/// ```
/// let options = tributary::SqlOptions { name: "shop".to_owned(), ..Default::default() };
/// assert!(!options.accept_unprotected);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SqlOptions {
    /// The pipeline's name.
    pub name: String,
    /// The catalogue of names of one or two parts; none = the catalogue of the lake.
    pub catalogue: Option<String>,
    /// The schema of names of one part; none = such names are mistakes.
    pub schema: Option<String>,
    /// What `${name}` and `:name` stand for. `SET` in a file goes before them; one that nobody sets is a mistake.
    pub parameters: BTreeMap<String, String>,
    /// Whether masks and row filters, which are not enforced, are no reason to stop.
    pub accept_unprotected: bool,
}

impl Pipeline {
    /// A pipeline from the text of SQL files, given as (file name, text), in the platform's dialect. Definitions may stand in any
    /// order. Every mistake of all files comes in one go, with file, line and column.
    ///
    /// # Errors
    /// [`Error::Sql`] with every mistake; [`Error::Unprotected`] where masks or row filters stand in the files and nobody accepted that
    /// they are not enforced; [`Error::Spec`] with every problem of the specs.
    ///
    /// ```
    /// use tributary::{Pipeline, SqlOptions};
    ///
    /// let orders = "CREATE OR REFRESH STREAMING TABLE silver.orders;
    ///   APPLY CHANGES INTO silver.orders FROM STREAM(bronze.orders) KEYS (order_id) SEQUENCE BY updated_at;";
    /// let options = SqlOptions { name: "shop".to_owned(), ..Default::default() };
    /// let pipeline = Pipeline::from_sql(&[("orders.sql", orders)], &options)?;
    /// assert_eq!(pipeline.spec().silver[0].keys, ["order_id"]);
    ///
    /// let errors = Pipeline::from_sql(&[("orders.sql", "CREATE STREAMING TABEL silver.orders;")], &options).unwrap_err().to_string();
    /// assert!(errors.contains("orders.sql:1:"), "{errors}");
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn from_sql(files: &[(&str, &str)], options: &SqlOptions) -> Result<Self, Error> {
        let files: Vec<SqlFile> = files.iter().map(|(path, text)| SqlFile { path: (*path).to_owned(), text: (*text).to_owned() }).collect();
        let names = tributary_pipeline_sql::Options { catalog: options.catalogue.clone(), schema: options.schema.clone() };
        let parsed = parse(&files, &options.parameters, &names);
        let lowered = parsed.to_pipeline(&options.name)?;
        let unprotected: Vec<String> = parsed.unprotected().map(in_words).collect();
        if !unprotected.is_empty() && !options.accept_unprotected {
            return Err(Error::Unprotected { clauses: unprotected });
        }
        let others = parsed.not_applied.iter().filter(|clause| !clause.protects);
        let not_applied: Vec<String> = others.map(|clause| format!("{}: {}", in_words(clause), clause.reason)).collect();
        Ok(Self::from_spec(lowered.pipeline)?.with_origins(lowered.origins).with_unprotected(unprotected).with_not_applied(not_applied))
    }
}

fn in_words(clause: &NotApplied) -> String {
    let place = &clause.place;
    format!("{clause} ({}:{}:{})", place.file, place.line, place.column)
}
