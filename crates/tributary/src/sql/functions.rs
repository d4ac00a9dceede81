//! Functions that people made: `system.tributary.functions`, a row each.

use std::sync::Arc;

use tributary_lake::Lake;
use tributary_lake::datafusion::logical_expr::ScalarUDF;
use tributary_lake::datafusion::prelude::SessionContext;
use tributary_spark_sql::{Parameter, SqlFunction, type_name};

use super::Error;
use super::kept::KeptTable;
use super::listing::{Cell, Of};

/// A function and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub function: SqlFunction,
    pub comment: Option<String>,
    pub created_by: Option<String>,
}

/// `tributary.functions` in the catalogue `system`.
pub(super) const TABLE: KeptTable = KeptTable {
    name: "functions",
    comment: "One row for each function made by CREATE FUNCTION",
    columns: &[
        ("catalogue", Of::Text),
        ("schema", Of::Text),
        ("name", Of::Text),
        ("parameters", Of::Text),
        ("returns", Of::Text),
        ("body", Of::Text),
        ("comment", Of::Text),
        ("created_at", Of::Instant),
        ("created_by", Of::Text),
    ],
};

/// Every function, in the order they were made.
pub(crate) async fn load(lake: &Lake) -> tributary_lake::Result<Vec<Kept>> {
    let mut found = Vec::new();
    for row in TABLE.rows(lake).await? {
        let text = |name: &str| row.text(name);
        let parameters: Vec<(String, String)> = text("parameters").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let parameters: Option<Vec<Parameter>> =
            parameters.into_iter().map(|(name, written)| Some(Parameter { name, data_type: written.parse().ok()? })).collect();
        let names = ["catalogue", "schema", "name"].map(|name| text(name).unwrap_or_default());
        let Some(parameters) = parameters else {
            tracing::warn!(function = names.join("."), "the parameters of a function cannot be read");
            continue;
        };
        let returns = text("returns").and_then(|written| written.parse().ok());
        let function = SqlFunction { names, parameters, returns, body: text("body").unwrap_or_default(), body_span: None };
        let made = Kept { function, comment: text("comment"), created_by: text("created_by") };
        found.push((text("created_at").unwrap_or_default(), made));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found.into_iter().map(|(_, made)| made).collect())
}

/// Writes one function's row.
pub(crate) async fn append(lake: &Lake, made: &Kept) -> Result<(), Error> {
    let parameters = made.function.parameters.iter().map(|parameter| (parameter.name.clone(), type_name(&parameter.data_type)));
    let parameters = serde_json::json!(parameters.collect::<Vec<_>>()).to_string();
    let [catalogue, schema, name] = made.function.names.clone().map(Cell::from);
    let row = [
        catalogue,
        schema,
        name,
        parameters.into(),
        made.function.returns.as_ref().map(type_name).into(),
        made.function.body.clone().into(),
        made.comment.clone().into(),
        Cell::Instant(Some(lake.clock().now())),
        made.created_by.clone().into(),
    ];
    TABLE.append(lake, vec![row]).await
}

/// A function as it was declared, but for its name: its parameters, its result and its expression.
pub(crate) fn declaration(function: &SqlFunction) -> String {
    let parameters = function.parameters.iter().map(|parameter| format!("{} {}", parameter.name, type_name(&parameter.data_type)));
    let returns = function.returns.as_ref().map(|returns| format!(" RETURNS {}", type_name(returns))).unwrap_or_default();
    format!("({}){returns} RETURN {}", parameters.collect::<Vec<_>>().join(", "), function.body)
}

/// Makes functions known to a context, those first that others call; tells their names. One that can no longer be planned is left out,
/// with a warning.
pub(crate) fn register(context: &SessionContext, functions: &[Kept]) -> Vec<String> {
    let mut own = Vec::new();
    let mut left: Vec<&SqlFunction> = functions.iter().map(|made| &made.function).collect();
    loop {
        let before = left.len();
        let mut failed = Vec::new();
        for function in left {
            match function.to_udf(&context.state(), &own) {
                Ok(udf) => {
                    context.register_udf(udf);
                    own.push(function.full_name());
                }
                Err(error) => failed.push((function, error)),
            }
        }
        if failed.len() == before || failed.is_empty() {
            for (function, error) in failed {
                tracing::warn!(function = function.full_name(), %error, "a function cannot be planned and is left out");
            }
            return own;
        }
        left = failed.into_iter().map(|(function, _)| function).collect();
    }
}

/// Every function that people made in this lake, in the order they were made, for pipelines and contexts of a program: a text calls
/// them by their full names, or by the last parts where only one is called so. `before` are functions of the program that they may call.
///
/// # Errors
/// [`Error::Lake`] when the table of functions cannot be read.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lake = tributary::Lake::open("memory://", Default::default())?;
/// let mut session = tributary::sql::Session::new(&lake, Default::default());
/// session.run("CREATE SCHEMA tools; CREATE FUNCTION tools.twice(x BIGINT) RETURNS BIGINT RETURN x * 2").await?;
/// let functions = tributary::sql::functions(&lake, &[]).await?;
/// assert_eq!(functions[0].name(), "main.tools.twice");
/// # Ok(()) }
/// ```
pub async fn functions(lake: &crate::Lake, before: &[Arc<ScalarUDF>]) -> Result<Vec<ScalarUDF>, Error> {
    Ok(beside(lake.inner(), before).await?.0)
}

/// The same, as the layers need it, and how they are declared.
pub(crate) async fn beside(lake: &Lake, before: &[Arc<ScalarUDF>]) -> tributary_lake::Result<(Vec<ScalarUDF>, Vec<SqlFunction>)> {
    let functions = load(lake).await?;
    if functions.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let context = lake.session();
    tributary_spark_sql::prepare(&context);
    before.iter().for_each(|function| context.register_udf(function.as_ref().clone()));
    let own = register(&context, &functions);
    let state = context.state();
    let udfs = own.iter().filter_map(|name| state.scalar_functions().get(name).map(|udf| udf.as_ref().clone()));
    Ok((udfs.collect(), functions.into_iter().map(|made| made.function).collect()))
}
