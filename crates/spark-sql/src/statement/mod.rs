//! Statements besides queries: what is created, described, granted and changed. Reading them is all that happens here; whoever has a
//! lake executes them.

mod alter;
mod change;
mod create;
mod cursor;
mod data_type;
mod function;
mod govern;
mod maintain;
mod show;
mod table;
mod vacuum;

use self::cursor::Cursor;
use crate::script::Piece;
use crate::text::Text;
use crate::{Change, Error, Point};

pub use self::alter::{Alteration, Mask};
pub use self::function::{CreateFunction, Parameter};
pub use self::govern::{Grant, Privilege, Securable};
pub use self::show::{Described, Shown};
pub use self::table::{CreateTable, Key};

/// A name as it is written, one to three parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The parts, quotes taken off.
    pub parts: Vec<String>,
    /// Line and column where it stands.
    pub span: Option<(u64, u64)>,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.parts.join("."))
    }
}

/// What can be created, dropped, described and granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `CATALOG`.
    Catalogue,
    /// `SCHEMA`, `DATABASE`.
    Schema,
    /// `TABLE`, and what is kept like one.
    Table,
    /// `FUNCTION`.
    Function,
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// A query, or an `EXPLAIN` of one.
    Query(Box<Text>),
    /// A definition of a pipeline: streaming tables, materialized views, flows, and what `SET` says to them.
    Pipeline,
    /// `INSERT`, `UPDATE`, `DELETE`, `MERGE`.
    Change(Change),
    /// `CREATE CATALOG | SCHEMA`.
    CreateSpace {
        /// Which of the two.
        kind: Kind,
        /// Its name.
        name: Name,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// `COMMENT`.
        comment: Option<String>,
    },
    /// `CREATE TABLE`.
    CreateTable(Box<CreateTable>),
    /// `CREATE FUNCTION`.
    CreateFunction(CreateFunction),
    /// `DROP …`.
    Drop {
        /// What.
        kind: Kind,
        /// Its name.
        name: Name,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `ALTER TABLE …`.
    Alter {
        /// The table.
        table: Name,
        /// What becomes of it.
        alteration: Alteration,
    },
    /// `COMMENT ON kind name IS text`.
    Comment {
        /// Of what.
        kind: Kind,
        /// Its name.
        name: Name,
        /// The text; none takes it away.
        text: Option<String>,
    },
    /// `GRANT`.
    Grant(Grant),
    /// `REVOKE`.
    Revoke(Grant),
    /// `SHOW GRANTS`.
    ShowGrants {
        /// Whose; none = everybody's.
        principal: Option<String>,
        /// On what; none = on everything.
        on: Option<Securable>,
    },
    /// `DESCRIBE …`.
    Describe(Described),
    /// `SHOW …`.
    Show(Shown),
    /// `OPTIMIZE`.
    Optimize {
        /// The table.
        table: Name,
        /// `ZORDER BY`; empty without.
        zorder_by: Vec<String>,
    },
    /// `REORG TABLE t APPLY (PURGE)`.
    Reorg(Name),
    /// `VACUUM`.
    Vacuum {
        /// The table.
        table: Name,
        /// `LITE`: files are looked for in the log alone.
        lite: bool,
        /// `RETAIN n HOURS`; none = as the table says.
        retain_hours: Option<u64>,
        /// `DRY RUN`.
        dry_run: bool,
    },
    /// `RESTORE`.
    Restore {
        /// The table.
        table: Name,
        /// To where it goes back.
        to: Point,
    },
    /// `USE CATALOG c`.
    UseCatalogue(Name),
    /// `USE [SCHEMA] s`, `USE c.s`.
    UseSchema(Name),
}

impl Statement {
    /// Reads one statement.
    ///
    /// # Errors
    /// [`Error::Syntax`] with line and column, [`Error::Refused`] for a statement or clause that is not executed.
    ///
    /// ```
    /// use tributary_spark_sql::{Statement, pieces};
    ///
    /// let pieces = pieces("CREATE SCHEMA IF NOT EXISTS prod.bronze; SELECT 1; CREATE OR REFRESH STREAMING TABLE t;")?;
    /// let read = pieces.iter().map(Statement::parse).collect::<Result<Vec<_>, _>>()?;
    /// assert!(matches!(read[..], [Statement::CreateSpace { .. }, Statement::Query(_), Statement::Pipeline]));
    /// # Ok::<(), tributary_spark_sql::Error>(())
    /// ```
    pub fn parse(piece: &Piece) -> Result<Self, Error> {
        let mut cursor = Cursor::new(piece);
        let statement = match cursor.word(0).as_deref() {
            Some("CREATE") => create::create(&mut cursor)?,
            Some("APPLY") if cursor.sees(&["APPLY", "CHANGES"]) => return Ok(Self::Pipeline),
            Some("AUTO") if cursor.sees(&["AUTO", "CDC"]) => return Ok(Self::Pipeline),
            Some("SET") => return Ok(Self::Pipeline),
            Some("DROP") => alter::drop(&mut cursor)?,
            Some("ALTER") => alter::alter(&mut cursor)?,
            Some("COMMENT") => alter::comment(&mut cursor)?,
            Some("GRANT") => govern::grant(&mut cursor)?,
            Some("REVOKE") => govern::revoke(&mut cursor)?,
            Some("DESCRIBE" | "DESC") => show::describe(&mut cursor)?,
            Some("SHOW") => show::show(&mut cursor)?,
            Some("USE") => show::use_of(&mut cursor)?,
            Some("OPTIMIZE") => maintain::optimize(&mut cursor)?,
            Some("REORG") => maintain::reorg(&mut cursor)?,
            Some("VACUUM") => vacuum::vacuum(&mut cursor)?,
            Some("RESTORE") => vacuum::restore(&mut cursor)?,
            Some("INSERT" | "UPDATE" | "DELETE" | "MERGE") => Self::Change(change::change(&mut cursor)?),
            Some(word) if !QUERIES.contains(&word) => return Err(unknown(&cursor, word)),
            _ => return Text::of(crate::parse::one(piece.tokens.clone())?).map(Box::new).map(Self::Query),
        };
        cursor.end()?;
        Ok(statement)
    }

    /// Whether it only reads.
    pub fn only_reads(&self) -> bool {
        use Statement as S;
        matches!(self, S::Query(_) | S::ShowGrants { .. } | S::Describe(_) | S::Show(_) | S::UseCatalogue(_) | S::UseSchema(_))
    }
}

/// Words with which a query begins.
const QUERIES: &[&str] = &["SELECT", "WITH", "VALUES", "FROM", "TABLE", "EXPLAIN"];

/// Words with which a statement begins.
const STATEMENTS: &[&str] = &[
    "ALTER", "APPLY", "AUTO", "COMMENT", "CREATE", "DELETE", "DESCRIBE", "DROP", "EXPLAIN", "GRANT", "INSERT", "MERGE", "OPTIMIZE",
    "REORG", "RESTORE", "REVOKE", "SELECT", "SHOW", "UPDATE", "USE", "VACUUM", "VALUES", "WITH",
];

fn unknown(cursor: &Cursor<'_>, word: &str) -> Error {
    let hint = match word {
        "ANALYZE" | "FSCK" | "MSCK" => "an engine that writes Delta can do it, and this program reads what it leaves".to_owned(),
        "CLONE" => "say CREATE TABLE … AS SELECT".to_owned(),
        "CACHE" | "UNCACHE" | "CLEAR" => "nothing is cached between statements: leave it out".to_owned(),
        "REFRESH" => "a run refreshes: `tributary run`, or the definition itself in this text".to_owned(),
        "TRUNCATE" => "say DELETE FROM without WHERE".to_owned(),
        "DENY" => "what is not granted is denied: say REVOKE".to_owned(),
        "COPY" | "LOAD" => "a feed reads files: STREAM read_files(…)".to_owned(),
        "EXEC" | "EXECUTE" | "CALL" | "BEGIN" | "DECLARE" => "there are no procedures".to_owned(),
        _ => match tributary_fault::nearest(word, STATEMENTS.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => "a statement begins with SELECT, CREATE, INSERT, MERGE, GRANT, SHOW, DESCRIBE or another of the page of statements"
                .to_owned(),
        },
    };
    cursor.refused(format!("the statement {word}"), hint)
}

/// One statement of a text that has only one.
///
/// # Errors
/// As [`Statement::parse`]; [`Error::Refused`] for a second statement.
pub fn only_statement(text: &str) -> Result<Statement, Error> {
    let pieces = crate::pieces(text)?;
    match pieces.as_slice() {
        [] => Err(Error::Syntax { reason: "it is empty".to_owned() }),
        [one] => Statement::parse(one),
        [_, second, ..] => Err(Error::Refused { what: "a second statement".to_owned(), hint: None, span: Some(second.place()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Statement, Error> {
        only_statement(text)
    }

    #[test]
    fn every_word_with_which_a_statement_begins_is_on_the_page_of_statements() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/statements.md");
        let page = std::fs::read_to_string(path).unwrap();
        for word in STATEMENTS {
            assert!(page.contains(&format!("`{word} ")) || page.contains(&format!("[{word} ")), "{word}");
        }
    }

    #[test]
    fn statements_are_told_apart() {
        for (text, start) in [
            ("select 1", "Query"),
            ("(select 1)", "Query"),
            ("values (1)", "Query"),
            ("explain select 1", "Query"),
            ("create streaming table t", "Pipeline"),
            ("create or refresh private materialized view v as select 1", "Pipeline"),
            ("create temporary view v as select 1", "Pipeline"),
            ("create flow f as insert into t by name select 1", "Pipeline"),
            ("auto cdc into t from stream(s) keys (k) sequence by q", "Pipeline"),
            ("create database if not exists d", "CreateSpace"),
            ("create table t (a int)", "CreateTable"),
            ("create or replace function f() return 1", "CreateFunction"),
            ("drop table if exists t", "Drop"),
            ("comment on schema s is 'x'", "Comment"),
            ("grant select on t to p", "Grant"),
            ("grant select, modify on materialized view v to p", "Grant"),
            ("revoke all privileges on catalog c from `a b`", "Revoke"),
            ("show grants on table t", "ShowGrants"),
            ("show grants `me`", "ShowGrants"),
            ("describe t", "Describe"),
            ("desc extended t", "Describe"),
            ("describe select 1", "Describe"),
            ("show databases like 'x*'", "Show"),
            ("use c.s", "UseSchema"),
            ("optimize s.t", "Optimize"),
            ("optimize table t zorder by (a, `b c`)", "Optimize"),
            ("reorg table t apply (purge)", "Reorg"),
            ("vacuum s.t", "Vacuum"),
            ("vacuum t lite retain 168 hours dry run", "Vacuum"),
            ("vacuum t dry run retain 0 hours", "Vacuum"),
            ("restore table t to version as of 3", "Restore"),
            ("restore s.t timestamp as of '2024-05-01'", "Restore"),
            ("restore t to for system_version as of 3", "Restore"),
            ("insert into t select 1", "Change"),
            ("insert into t (select 1)", "Change"),
            ("insert overwrite table t (a) values (1)", "Change"),
            ("update t as x set x.a = 1 where x.b", "Change"),
            ("delete from t x where x.a = 1", "Change"),
            ("merge into t using s on t.a = s.a when matched then delete", "Change"),
        ] {
            let statement = parsed(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(format!("{statement:?}").starts_with(start), "{text}");
        }
    }

    #[test]
    fn what_is_not_executed_is_refused_with_its_place() {
        for (text, says) in [
            (
                "optimize t where a = 1",
                "OPTIMIZE … WHERE is not executed by this release (line 1, column 12): every partition is looked at",
            ),
            ("optimize t full", "OPTIMIZE … FULL"),
            ("optimize t zorder by a", "Expected: `(`"),
            ("reorg table t apply (upgrade)", "REORG TABLE … APPLY of something else than PURGE"),
            ("vacuum t retain 7 days", "Expected: HOURS"),
            ("vacuum t retain -1 hours", "a whole number of hours"),
            ("vacuum t full lite", "Expected: LITE, FULL"),
            ("restore t to version as of x", "a whole number"),
            ("restore t to 3", "TIMESTAMP AS OF"),
            ("create or replace table t (a int)", "CREATE OR REPLACE TABLE"),
            ("create external table t (a int)", "CREATE EXTERNAL TABLE"),
            ("create table t (a int) using csv", "another format than DELTA"),
            ("create table t (a int) location 's3://x'", "LOCATION"),
            ("create table t (a int generated always as identity)", "IDENTITY"),
            ("create table t (a int) partitioned by (days(a))", "PARTITIONED BY an expression"),
            ("create table t (a varchar(10))", "say STRING"),
            ("create table t (a int) as select 1", "columns beside AS"),
            ("create table t", "Expected: columns in brackets"),
            ("create function f(a int default 1) return a", "DEFAULT of a parameter"),
            ("create function f(a int) returns table (b int) return select 1", "a function that returns a table"),
            ("create function f(a int) returns int language python as 'x'", "another language than SQL"),
            ("drop schema s cascade", "CASCADE"),
            ("alter table t rename to u", "ALTER TABLE … RENAME TO"),
            ("grant select on t to p with grant option", "WITH GRANT OPTION"),
            ("insert into t partition (a = 1) select 1", "PARTITION in INSERT"),
            ("insert into t replace where a = 1 select 1", "INSERT … REPLACE"),
            ("insert with schema evolution into t select 1", "WITH SCHEMA EVOLUTION"),
            ("update t set a = 1 from u", "UPDATE … FROM"),
            ("merge into t using s on true", "Expected: WHEN MATCHED"),
            ("merge into t using s on true when matched then delete when matched then update set a = 1", "a clause after WHEN MATCHED"),
            ("merge into t using s on true when not matched then insert (a, b) values (1)", "INSERT of 1 values into 2 columns"),
            ("select 1 select 2", "Expected"),
            ("use catalog", "Expected: a name"),
        ] {
            let error = parsed(text).map(|_| ()).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(create|table|merge|into|using|on|when|matched|then|update|set|grant|select|function|returns|return|\\(|\\)|,|;|=|a|`|'|1| |\\*|\\.){0,30}") {
            if let Ok(pieces) = crate::pieces(&text) {
                for piece in &pieces {
                    let _ = Statement::parse(piece);
                }
            }
        }
    }
}
