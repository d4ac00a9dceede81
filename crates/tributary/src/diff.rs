//! What is otherwise in one version of a table than in another.
//!
//! Only files that are not in both versions are read: what changed decides the cost, not the table. Rows are compared as bags; with a key
//! a row that went and one that came under the same key are one that changed.

use tributary_lake::arrow::array::{AsArray, RecordBatch};
use tributary_lake::arrow::compute::concat_batches;
use tributary_lake::arrow::datatypes::{DataType, Int64Type};
use tributary_lake::datafusion::error::DataFusionError;
use tributary_lake::datafusion::prelude::SessionContext;

use crate::definition::DOMAIN;
use crate::{Error, Lake, Table};

/// How two versions are compared.
///
/// ```
/// assert_eq!(tributary::DiffOptions::default().samples, 10);
/// ```
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// Columns that tell rows apart; none = the keys that the table was made with, and where it has none whole rows are compared.
    pub keys: Option<Vec<String>>,
    /// Rows of each kind that are shown.
    pub samples: usize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { keys: None, samples: 10 }
    }
}

/// How two versions differ.
///
/// ```no_run
/// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
/// let orders = lake.table("silver.orders").await?;
/// let diff = lake.diff(&orders.at_version(3).await?, &orders, &Default::default()).await?;
/// println!("{} added, {} removed, {} changed", diff.added, diff.removed, diff.changed);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct TableDiff {
    /// The first version.
    pub before: u64,
    /// The second one.
    pub after: u64,
    /// The columns that rows were told apart by; none where whole rows were compared.
    pub keys: Vec<String>,
    /// Rows under keys that only the second version has; without keys, rows that it has more often.
    pub added: u64,
    /// Rows under keys that only the first version has; without keys, rows that it has more often.
    pub removed: u64,
    /// Keys under which the two have other rows.
    pub changed: u64,
    /// Bytes of the files that were compared.
    pub bytes: u64,
    /// Some rows of each kind, in the order of the keys: `_change` (`added`, `removed`, `before`, `after`), `_rows` (how often), then the
    /// columns of both versions.
    pub samples: RecordBatch,
}

impl Lake {
    /// Compares two versions of a table.
    ///
    /// # Errors
    /// [`Error::NoColumn`] for a key that the table does not have; [`Error::Lake`] when files cannot be read.
    ///
    /// ```no_run
    /// # async fn f(lake: tributary::Lake) -> Result<(), tributary::Error> {
    /// let orders = lake.table("silver.orders").await?;
    /// assert_eq!(lake.diff(&orders, &orders, &Default::default()).await?.added, 0);
    /// # Ok(()) }
    /// ```
    pub async fn diff(&self, before: &Table, after: &Table, options: &DiffOptions) -> Result<TableDiff, Error> {
        let (earlier, later) = (before.clone().into_inner(), after.clone().into_inner());
        let apart = later.apart(&earlier).await?;
        let schema = apart.after.schema();
        let keys = match &options.keys {
            Some(keys) => keys.clone(),
            None => keys_of(&later).await?,
        };
        let keys = keys
            .iter()
            .map(|key| {
                let found = schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(key));
                found.map(|field| field.name().clone()).ok_or_else(|| Error::NoColumn {
                    table: later.name().to_string(),
                    clause: "keys".to_owned(),
                    column: key.clone(),
                    nearest: tributary_fault::nearest(key, schema.fields().iter().map(|field| field.name().as_str())).map(str::to_owned),
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let context = self.inner().session();
        context.register_table("before", apart.before).map_err(failed)?;
        context.register_table("after", apart.after).map_err(failed)?;
        let columns: Vec<(String, bool)> =
            schema.fields().iter().map(|field| (field.name().clone(), matches!(field.data_type(), DataType::Map(..)))).collect();
        let compared = Compared { context: &context, columns: &columns, keys: &keys };
        let [added, removed, changed] = compared.counts().await?;
        let samples = compared.samples(options.samples).await?;
        Ok(TableDiff { before: before.version(), after: after.version(), keys, added, removed, changed, bytes: apart.bytes, samples })
    }
}

/// The keys that a table was made with, as its commits keep them; with the begin of each version where it keeps a history.
async fn keys_of(table: &tributary_lake::Table) -> Result<Vec<String>, Error> {
    let Some(text) = table.domain(DOMAIN).await? else { return Ok(Vec::new()) };
    let definition: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let keys = definition["spec"]["keys"].as_array().into_iter().flatten();
    let mut keys: Vec<String> = keys.filter_map(|key| key.as_str().map(str::to_owned)).collect();
    let begins = "__START_AT";
    if !keys.is_empty() && table.columns().iter().any(|column| column.name == begins) {
        keys.push(begins.to_owned());
    }
    let has = |key: &String| table.columns().iter().any(|column| column.name.eq_ignore_ascii_case(key));
    Ok(if keys.iter().all(has) { keys } else { Vec::new() })
}

struct Compared<'a> {
    context: &'a SessionContext,
    /// Names, and whether the column is a map, of which rows cannot be told apart as they are.
    columns: &'a [(String, bool)],
    keys: &'a [String],
}

impl Compared<'_> {
    /// Rows that one side has more often, by how many: above zero the second one.
    fn bag(&self) -> String {
        let told = |(name, is_map): &(String, bool)| {
            let name = quoted(name);
            if *is_map { format!("map_entries({name}) AS {name}") } else { name }
        };
        let columns = self.columns.iter().map(told).collect::<Vec<_>>().join(", ");
        let names = self.names();
        format!(
            "SELECT {names}, sum(__side) AS __n FROM (SELECT {columns}, CAST(-1 AS BIGINT) AS __side FROM before \
             UNION ALL SELECT {columns}, CAST(1 AS BIGINT) AS __side FROM after) GROUP BY {names} HAVING sum(__side) <> 0"
        )
    }

    fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| quoted(name)).collect::<Vec<_>>().join(", ")
    }

    fn keys(&self) -> String {
        self.keys.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(", ")
    }

    /// Rows added, rows removed, keys changed.
    async fn counts(&self) -> Result<[u64; 3], Error> {
        let bag = self.bag();
        let sides = "sum(CASE WHEN __n > 0 THEN __n ELSE 0 END) AS __came, sum(CASE WHEN __n < 0 THEN -__n ELSE 0 END) AS __went";
        let sides = if self.keys.is_empty() {
            format!("SELECT __n, {sides} FROM ({bag}) GROUP BY __n")
        } else {
            format!("SELECT {sides} FROM ({bag}) GROUP BY {}", self.keys())
        };
        let text = format!(
            "SELECT coalesce(sum(CASE WHEN __went = 0 THEN __came ELSE 0 END), 0) AS added, \
             coalesce(sum(CASE WHEN __came = 0 THEN __went ELSE 0 END), 0) AS removed, \
             coalesce(sum(CASE WHEN __came > 0 AND __went > 0 THEN CAST(1 AS BIGINT) ELSE 0 END), 0) AS changed FROM ({sides})"
        );
        let batches = self.rows(&text).await?;
        let count = |at: usize| {
            let counts = batches.first().and_then(|batch| batch.column(at).as_primitive_opt::<Int64Type>());
            counts.filter(|counts| !counts.is_empty()).map_or(0, |counts| u64::try_from(counts.value(0)).unwrap_or_default())
        };
        Ok([count(0), count(1), count(2)])
    }

    async fn samples(&self, most: usize) -> Result<RecordBatch, Error> {
        let (bag, names) = (self.bag(), self.names());
        let within = if self.keys.is_empty() { "__n".to_owned() } else { self.keys() };
        let told = format!(
            "SELECT CASE WHEN min(__n) OVER w > 0 THEN 'added' WHEN max(__n) OVER w < 0 THEN 'removed' \
             WHEN __n < 0 THEN 'before' ELSE 'after' END AS _change, abs(__n) AS _rows, {names}, __n FROM ({bag}) \
             WINDOW w AS (PARTITION BY {within})"
        );
        let order = if self.keys.is_empty() { names.clone() } else { self.keys() };
        let mut batches = Vec::new();
        for (kinds, rows) in [("'added'", most), ("'removed'", most), ("'before', 'after'", most.saturating_mul(2))] {
            let text =
                format!("SELECT _change, _rows, {names} FROM ({told}) WHERE _change IN ({kinds}) ORDER BY {order}, __n LIMIT {rows}");
            batches.extend(self.rows(&text).await?);
        }
        let schema = match batches.first() {
            Some(batch) => batch.schema(),
            None => {
                let frame = self.context.sql(&format!("SELECT _change, _rows, {names} FROM ({told})")).await.map_err(failed)?;
                std::sync::Arc::new(frame.schema().as_arrow().clone())
            }
        };
        concat_batches(&schema, &batches).map_err(DataFusionError::from).map_err(failed)
    }

    async fn rows(&self, text: &str) -> Result<Vec<RecordBatch>, Error> {
        self.context.sql(text).await.map_err(failed)?.collect().await.map_err(failed)
    }
}

fn failed(error: DataFusionError) -> Error {
    Error::Lake(error.into())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
