//! Statements of one person, one after the other.

use std::ops::Range;

use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::datafusion::execution::SessionState;
use tributary_lake::datafusion::prelude::{DataFrame, SessionContext};
use tributary_maintenance::Task;
use tributary_spark_sql::{Change, Kind, Statement, Tables, Text, pieces};

use super::open::Catalogues;
use super::{Error, TextError, describe, functions, insert, keeper, rows, vacuum};
use crate::{Lake, RunOptions, RunReport, SqlOptions};

/// Who types, and what they have agreed to.
///
/// ```
/// let options = tributary::sql::SessionOptions { user: Some("ann@example.com".to_owned()), ..Default::default() };
/// assert!(options.destroy.is_empty() && !options.accept_unprotected);
/// ```
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Whom `current_user()` answers with, and who is recorded as having granted and created; none = unknown.
    pub user: Option<String>,
    /// Of which groups they are, for `is_account_group_member`.
    pub groups: Vec<String>,
    /// Whether masks and row filters are recorded though nothing enforces them.
    pub accept_unprotected: bool,
    /// Tables that `DROP TABLE` may take away, as `schema.table` or with their catalogue before.
    pub destroy: Vec<String>,
    /// How the pipelines of a text are run.
    pub run: RunOptions,
}

/// What a statement came to.
#[derive(Debug)]
pub enum Answer {
    /// Rows; collecting or streaming the frame runs the query.
    Rows(Box<DataFrame>),
    /// It is done, in words.
    Done(String),
    /// A pipeline was run.
    Ran(Box<RunReport>),
}

/// Statements of one person over the catalogues of a lake: `USE` holds for what follows.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tributary::sql::{Answer, Session};
///
/// let lake = tributary::Lake::open("memory://", Default::default())?;
/// let mut session = Session::new(&lake, Default::default());
/// session.run("CREATE SCHEMA shop; CREATE TABLE shop.stock (sku STRING, pieces INT); INSERT INTO shop.stock VALUES ('a', 3)").await?;
/// session.run("MERGE INTO shop.stock t USING (SELECT 'a' AS sku, 5 AS pieces) s ON t.sku = s.sku
///              WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *").await?;
/// let answers = session.run("SELECT pieces FROM shop.stock").await?;
/// let Some(Answer::Rows(rows)) = answers.into_iter().next() else { panic!("a query gives rows") };
/// assert_eq!(rows.collect().await?[0].column(0).len(), 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Session {
    pub(super) lake: Lake,
    pub(super) options: SessionOptions,
    pub(super) catalogues: Catalogues,
}

impl Session {
    /// Over a lake; its own catalogue is the current one.
    ///
    /// ```
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// let session = tributary::sql::Session::new(&lake, Default::default());
    /// assert_eq!(session.current(), ("main", None));
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn new(lake: &Lake, options: SessionOptions) -> Self {
        Self { lake: lake.clone(), options, catalogues: Catalogues::new(lake.inner()) }
    }

    /// The current catalogue and schema.
    ///
    /// ```
    /// # let lake = tributary::Lake::open("memory://", Default::default())?;
    /// assert_eq!(tributary::sql::Session::new(&lake, Default::default()).current().0, "main");
    /// # Ok::<(), tributary::Error>(())
    /// ```
    pub fn current(&self) -> (&str, Option<&str>) {
        (&self.catalogues.catalogue, self.catalogues.schema.as_deref())
    }

    /// Executes every statement of a text, in order. Definitions of a pipeline that follow each other are run as one pipeline before
    /// the next other statement, or at the end.
    ///
    /// # Errors
    /// That of the first statement that cannot be read, before any is executed; else that of the first that fails, what stands before
    /// it done.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// let mut session = tributary::sql::Session::new(&lake, Default::default());
    /// assert_eq!(session.run("CREATE SCHEMA shop; USE shop; SHOW TABLES").await?.len(), 3);
    /// # Ok(()) }
    /// ```
    pub async fn run(&mut self, text: &str) -> Result<Vec<Answer>, Error> {
        let mut answers = Vec::new();
        for step in steps("statements", text)? {
            answers.push(self.execute(step).await?);
        }
        Ok(answers)
    }

    /// Executes one step of a text.
    ///
    /// # Errors
    /// [`Error::Text`] for what cannot be planned, with its place; [`Error::Run`] where it fails; see the variants of [`Error`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let lake = tributary::Lake::open("memory://", Default::default())?;
    /// let mut session = tributary::sql::Session::new(&lake, Default::default());
    /// for step in tributary::sql::steps("shop.sql", "CREATE SCHEMA shop; USE SCHEMA shop;")? {
    ///     session.execute(step).await?;
    /// }
    /// assert_eq!(session.current(), ("main", Some("shop")));
    /// # Ok(()) }
    /// ```
    pub async fn execute(&mut self, step: Step) -> Result<Answer, Error> {
        self.catalogues.look_again();
        let statement = match step.what {
            What::Pipeline { name, text } => return Box::pin(self.pipeline(&name, &text)).await,
            What::Statement(statement) => *statement,
        };
        let done = match statement {
            Statement::Query(text) => return Box::pin(self.plan(*text)).await.map(|frame| Answer::Rows(Box::new(frame))),
            Statement::Pipeline => return Err(TextError::Syntax { reason: "a definition of a pipeline stands alone".to_owned() }.into()),
            Statement::Describe(described) => {
                let rows = Box::pin(describe::describe(self, described)).await?;
                return self.listed(rows);
            }
            Statement::Show(shown) => {
                let rows = Box::pin(describe::show(&mut self.catalogues, shown)).await?;
                return self.listed(rows);
            }
            Statement::ShowGrants { principal, on } => {
                let rows = Box::pin(self.show_grants(principal, on)).await?;
                return self.listed(rows);
            }
            Statement::UseCatalogue(name) => {
                let lake = self.catalogues.catalogue_named(&name.to_string()).await?;
                lake.options().catalogue.clone_into(&mut self.catalogues.catalogue);
                self.catalogues.schema = None;
                format!("the catalogue is {}", self.catalogues.catalogue)
            }
            Statement::UseSchema(name) => {
                let (lake, schema) = self.catalogues.schema_named(&name).await?;
                lake.options().catalogue.clone_into(&mut self.catalogues.catalogue);
                let done = format!("the schema is {}.{schema}", self.catalogues.catalogue);
                self.catalogues.schema = Some(schema);
                done
            }
            Statement::Optimize { table, zorder_by } => {
                let task = if zorder_by.is_empty() { Task::Optimize } else { Task::ZOrder(zorder_by) };
                Box::pin(self.maintain(&table, task)).await?
            }
            Statement::Reorg(table) => Box::pin(self.maintain(&table, Task::Reorg)).await?,
            Statement::Vacuum { table, lite, retain_hours, dry_run } => {
                let rows = Box::pin(self.vacuum(&table, vacuum::Asked { lite, retain_hours, dry_run })).await?;
                return self.listed(rows);
            }
            Statement::Restore { table, to } => Box::pin(self.restore(&table, to)).await?,
            Statement::Change(change) => Box::pin(self.change(change)).await?,
            Statement::CreateSpace { kind, name, if_not_exists, comment } => {
                Box::pin(self.create_space(kind, &name, if_not_exists, comment)).await?
            }
            Statement::CreateTable(table) => Box::pin(self.create_table(*table)).await?,
            Statement::CreateFunction(function) => Box::pin(self.create_function(function)).await?,
            Statement::Drop { kind, name, if_exists } => Box::pin(self.drop_named(kind, &name, if_exists)).await?,
            Statement::Alter { table, alteration } => Box::pin(self.alter(&table, alteration)).await?,
            Statement::Comment { kind, name, text } => Box::pin(self.comment(kind, &name, text)).await?,
            Statement::Grant(grant) => Box::pin(self.grant(grant)).await?,
            Statement::Revoke(grant) => Box::pin(self.revoke(grant)).await?,
        };
        Ok(Answer::Done(done))
    }

    fn listed(&self, rows: RecordBatch) -> Result<Answer, Error> {
        let frame = self.lake.inner().session().read_batch(rows).map_err(Error::run)?;
        Ok(Answer::Rows(Box::new(frame)))
    }

    /// What texts of this person are planned in now.
    pub(super) async fn planner(&self) -> Result<Planner, Error> {
        let context = self.lake.inner().session();
        tributary_spark_sql::prepare(&context);
        if let Some(user) = &self.options.user {
            tributary_spark_sql::run_as(&context, user);
        }
        tributary_spark_sql::run_in_groups(&context, &self.options.groups);
        let own = functions::register(&context, &functions::load(self.lake.inner()).await?);
        let mut state = context.state();
        state.execution_props_mut().query_execution_start_time = Some(self.lake.inner().clock().now());
        Ok(Planner { context, state, own })
    }

    pub(super) async fn plan(&mut self, text: Text) -> Result<DataFrame, Error> {
        let tables = self.catalogues.open(text.uses()).await?;
        self.planner().await?.rows(text, &tables).await
    }

    /// Changes rows of a table that nothing else keeps.
    async fn change(&mut self, change: Change) -> Result<String, Error> {
        let table = self.catalogues.table_named(change.target()).await?;
        if let Some(by) = keeper(&table).await? {
            return Err(Error::Kept { table: format!("{}.{}", table.lake().options().catalogue, table.name()), by });
        }
        self.change_of(table, change).await
    }

    /// The same of a table of ours.
    async fn change_of(&mut self, table: tributary_lake::Table, change: Change) -> Result<String, Error> {
        let attempts = self.lake.inner().options().attempts_max.max(1);
        let mut table = table;
        let mut lost = String::new();
        for _ in 0..attempts {
            let tables = self.catalogues.open(change.uses()).await?;
            let planner = self.planner().await?;
            let (done, outcome) = match change.clone() {
                Change::Insert(insert) => {
                    let (rows, outcome) = insert::attempt(&table, *insert, &tables, &planner).await?;
                    (format!("{rows} rows inserted"), outcome)
                }
                Change::Rows(change) => {
                    let (counts, outcome) = rows::attempt(&table, *change, tables, &planner).await?;
                    let rows::Counts { inserted, updated, deleted } = counts;
                    (format!("{updated} rows updated, {deleted} deleted, {inserted} inserted"), outcome)
                }
            };
            lost = match outcome.as_ref().and_then(super::lost) {
                None => return Ok(done),
                Some(why) => why,
            };
            tracing::info!(table = %table.name(), why = %lost, "lost a race, planning again");
            table = table.refresh().await?;
            self.catalogues.look_again();
        }
        Err(Error::Contended { table: table.name().to_string(), attempts, conflict: lost })
    }

    /// Executes a statement of ours on a table of `system`; nothing where the table is not there yet.
    pub(super) async fn on_system(&mut self, text: &str) -> Result<(), Error> {
        let Statement::Change(change) = tributary_spark_sql::only_statement(text)? else { return Ok(()) };
        self.catalogues.look_again();
        match self.catalogues.table_named(change.target()).await {
            Ok(table) => Box::pin(self.change_of(table, change)).await.map(drop),
            Err(Error::Text(TextError::NoTable { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Runs the definitions of a text as one pipeline, in the catalogue that they name or the current one.
    async fn pipeline(&mut self, name: &str, text: &str) -> Result<Answer, Error> {
        let (catalogue, schema) = (self.catalogues.catalogue.clone(), self.catalogues.schema.clone());
        let file = tributary_pipeline_sql::SqlFile { path: name.to_owned(), text: text.to_owned() };
        let names = tributary_pipeline_sql::Options { catalog: Some(catalogue.clone()), schema: schema.clone() };
        let parsed = tributary_pipeline_sql::parse(&[file], &Default::default(), &names);
        let lowered = parsed.to_pipeline("sql").map_err(crate::Error::from)?;
        let catalogue = lowered.catalog.unwrap_or(catalogue);
        let inner = self.catalogues.catalogue_named(&catalogue).await?;
        let options = SqlOptions {
            name: "sql".to_owned(),
            catalogue: Some(catalogue),
            schema,
            accept_unprotected: self.options.accept_unprotected,
            ..SqlOptions::default()
        };
        let mut pipeline = crate::Pipeline::from_sql(&[(name, text)], &options)?;
        if let Some(user) = &self.options.user {
            pipeline = pipeline.run_as(user);
        }
        let accept_unprotected = self.options.accept_unprotected || self.options.run.accept_unprotected;
        let run = crate::RunOptions { accept_unprotected, ..self.options.run.clone() };
        let report = self.lake.in_catalogue(inner).run(&pipeline, run).await?;
        Ok(Answer::Ran(Box::new(report)))
    }
}

/// What texts are planned in: it knows who types, when, and what functions people made.
pub(super) struct Planner {
    pub(super) context: SessionContext,
    pub(super) state: SessionState,
    /// The names of those functions.
    pub(super) own: Vec<String>,
}

impl Planner {
    /// The rows of a query, not read yet.
    pub(super) async fn rows(&self, text: Text, tables: &Tables) -> Result<DataFrame, Error> {
        let plan = text.plan(&self.context, &self.state, tables, &self.own).await?;
        Ok(DataFrame::new(self.state.clone(), plan))
    }
}

/// One thing to do of a text: a statement, or the definitions of a pipeline.
#[derive(Debug)]
pub struct Step {
    what: What,
    place: (u64, u64),
    reads: bool,
}

#[derive(Debug)]
enum What {
    Statement(Box<Statement>),
    /// Under a name for messages; the text has the places of the whole.
    Pipeline {
        name: String,
        text: String,
    },
}

impl Step {
    /// Line and column where it begins, counted from 1.
    ///
    /// ```
    /// let steps = tributary::sql::steps("a.sql", "select 1;\n  select 2")?;
    /// assert_eq!(steps[1].place(), (2, 3));
    /// # Ok::<(), tributary::sql::Error>(())
    /// ```
    pub fn place(&self) -> (u64, u64) {
        self.place
    }

    /// Whether it only reads.
    ///
    /// ```
    /// let steps = tributary::sql::steps("a.sql", "select 1; create schema shop")?;
    /// assert_eq!(steps.iter().map(|step| step.only_reads()).collect::<Vec<_>>(), [true, false]);
    /// # Ok::<(), tributary::sql::Error>(())
    /// ```
    pub fn only_reads(&self) -> bool {
        self.reads
    }

    /// Whether it is the definitions of a pipeline.
    ///
    /// ```
    /// let steps = tributary::sql::steps("a.sql", "CREATE OR REFRESH STREAMING TABLE silver.t; select 1")?;
    /// assert_eq!(steps.iter().map(|step| step.is_pipeline()).collect::<Vec<_>>(), [true, false]);
    /// # Ok::<(), tributary::sql::Error>(())
    /// ```
    pub fn is_pipeline(&self) -> bool {
        matches!(self.what, What::Pipeline { .. })
    }
}

/// Reads a text of several statements; `name` stands in messages about pipelines.
///
/// # Errors
/// That of the first statement that cannot be read, with its line and column.
///
/// ```
/// let steps = tributary::sql::steps("shop.sql", "SHOW TABLES; -- and\nSELECT 1;")?;
/// assert_eq!(steps.len(), 2);
/// assert!(tributary::sql::steps("shop.sql", "SHOW TABLES;\nSELCT 1").unwrap_err().to_string().contains("line 2"));
/// # Ok::<(), tributary::sql::Error>(())
/// ```
pub fn steps(name: &str, text: &str) -> Result<Vec<Step>, Error> {
    let mut steps: Vec<Step> = Vec::new();
    let mut defined: Vec<Range<usize>> = Vec::new();
    let mut first = (1, 1);
    let pieces = pieces(text)?;
    let mut read = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        read.push((piece.place(), piece.range(), Statement::parse(piece)?));
    }
    for (place, range, statement) in read {
        if matches!(statement, Statement::Pipeline) {
            if defined.is_empty() {
                first = place;
            }
            defined.push(range);
            continue;
        }
        steps.extend(pipeline(name, text, &mut defined, first));
        let reads = statement.only_reads();
        steps.push(Step { what: What::Statement(Box::new(statement)), place, reads });
    }
    steps.extend(pipeline(name, text, &mut defined, first));
    Ok(steps)
}

/// How a text that is being typed stands.
///
/// ```
/// assert!(tributary::sql::ends("select 1;")?.ended && !tributary::sql::ends("select 1")?.ended);
/// # Ok::<(), tributary::sql::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    /// Whether it has a statement, and the last one its semicolon.
    pub ended: bool,
    /// Whether its last statement is a definition of a pipeline, which others may belong to.
    pub pipeline: bool,
}

/// Looks at the end of a text that is being typed.
///
/// # Errors
/// [`Error::Text`] where a quote or a comment is open.
///
/// ```
/// assert!(tributary::sql::ends("CREATE OR REFRESH STREAMING TABLE silver.t;")?.pipeline);
/// assert!(tributary::sql::ends("select 'a").is_err());
/// # Ok::<(), tributary::sql::Error>(())
/// ```
pub fn ends(text: &str) -> Result<Ends, Error> {
    let pieces = pieces(text)?;
    let Some(last) = pieces.last() else { return Ok(Ends::default()) };
    Ok(Ends { ended: last.is_ended(), pipeline: matches!(Statement::parse(last), Ok(Statement::Pipeline)) })
}

/// The definitions that have been read, where there are any: everything else of the text blank, so that places stay.
fn pipeline(name: &str, text: &str, defined: &mut Vec<Range<usize>>, place: (u64, u64)) -> Option<Step> {
    let ranges = std::mem::take(defined);
    ranges.last()?;
    let blank = |text: &str| text.chars().map(|sign| if sign == '\n' { sign } else { ' ' }).collect::<String>();
    let (mut kept, mut at) = (String::new(), 0);
    for range in ranges {
        kept.push_str(&blank(&text[at..range.start]));
        kept.push_str(&text[range.clone()]);
        kept.push(';');
        at = range.end + text[range.end..].chars().next().filter(|sign| *sign != '\n').map_or(0, char::len_utf8);
    }
    Some(Step { what: What::Pipeline { name: name.to_owned(), text: kept }, place, reads: false })
}

/// The kinds of things, as messages call them.
pub(super) fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Catalogue => "catalogue",
        Kind::Schema => "schema",
        Kind::Table => "table",
        Kind::Function => "function",
    }
}
