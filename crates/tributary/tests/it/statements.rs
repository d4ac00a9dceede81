//! Statements besides queries: what each says, and what is there afterwards.

use tributary::arrow::array::RecordBatch;
use tributary::arrow::util::display::{ArrayFormatter, FormatOptions};
use tributary::sql::{Answer, Session, SessionOptions, steps};
use tributary::{Fault, Lake};

/// A session over a lake in memory.
pub struct Sql {
    pub session: Session,
}

impl Sql {
    pub fn new() -> Self {
        Self::with(SessionOptions { user: Some("ann".to_owned()), ..SessionOptions::default() })
    }

    pub fn with(options: SessionOptions) -> Self {
        Self::over(&Lake::open("memory://", Default::default()).expect("a lake"), options)
    }

    pub fn over(lake: &Lake, options: SessionOptions) -> Self {
        Self { session: Session::new(lake, options) }
    }

    /// What each statement of a text comes to, a line each row; the first error ends it.
    pub async fn says(&mut self, text: &str) -> String {
        let mut said = Vec::new();
        let steps = match steps("test.sql", text) {
            Ok(steps) => steps,
            Err(error) => return format!("error[{}]: {error}", error.code()),
        };
        for step in steps {
            match self.session.execute(step).await {
                Ok(Answer::Rows(frame)) => match frame.collect().await {
                    Ok(batches) => said.extend(batches.iter().flat_map(lines)),
                    Err(error) => {
                        let error = tributary::sql::Error::run(error);
                        said.push(format!("error[{}]: {error}", error.code()));
                        break;
                    }
                },
                Ok(Answer::Done(done)) => said.push(done),
                Ok(Answer::Ran(report)) => {
                    said.extend(report.datasets.iter().map(|dataset| {
                        let error = dataset.error.as_ref().map(|error| format!(" {}: {}", error.code, error.message)).unwrap_or_default();
                        format!("{} {}{error}", dataset.table, dataset.status)
                    }));
                }
                Err(error) => {
                    said.push(format!("error[{}]: {error}", error.code()));
                    break;
                }
            }
        }
        said.join("\n")
    }
}

/// Rows as text, columns parted by bars.
pub fn lines(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let columns: Vec<_> = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).expect("a column")).collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

/// Executes statements in order and compares what each says; `…` at an end stands for anything.
async fn script(sql: &mut Sql, cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let said = sql.says(text).await;
        let same = match (expected.strip_prefix('…'), expected.strip_suffix('…')) {
            (Some(_), Some(_)) => said.contains(expected.trim_matches('…')),
            (Some(end), None) => said.ends_with(end),
            (None, Some(start)) => said.starts_with(start),
            (None, None) => said == *expected,
        };
        if !same {
            wrong.push(format!("{text}\n  said: {said}\n  expected: {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn catalogues_and_schemas_are_there_when_they_are_created_and_empty() {
    script(
        &mut Sql::new(),
        &[
            ("SHOW CATALOGS", "main\nsystem"),
            ("CREATE CATALOG IF NOT EXISTS prod COMMENT 'what counts'", "catalogue prod created"),
            ("CREATE CATALOG prod", "error[TR0109]: catalogue `prod` is there already"),
            ("CREATE CATALOG IF NOT EXISTS PROD", "…is there already"),
            ("SHOW CATALOGS LIKE 'p*'", "prod"),
            ("CREATE SCHEMA prod.bronze", "schema prod.bronze created"),
            ("CREATE SCHEMA IF NOT EXISTS prod.bronze", "schema prod.bronze is there already"),
            ("CREATE DATABASE prod.silver COMMENT 'clean'", "schema prod.silver created"),
            ("SHOW SCHEMAS IN prod", "bronze\nsilver\ninformation_schema"),
            ("SHOW SCHEMAS", "information_schema"),
            ("CREATE SCHEMA prot.bronze", "error[TR0110]: catalogue `prot` does not exist (did you mean `prod`?)"),
            ("CREATE SCHEMA `a/b`", "error[TR0119]: `a/b` names no schema: a slash or a control character is in it"),
            ("CREATE SCHEMA system.mine", "error[TR0111]…"),
            ("USE CATALOG prod; USE SCHEMA bronze; SHOW TABLES", "the catalogue is prod\nthe schema is prod.bronze"),
            ("DESCRIBE SCHEMA silver", "Catalog Name|prod\nNamespace Name|silver\nComment|clean\nOwner|ann\n…"),
            (
                "SELECT schema_name, comment FROM information_schema.schemata ORDER BY 1",
                "bronze|null\ninformation_schema|null\nsilver|clean",
            ),
            ("DROP CATALOG prod", "error[TR0118]: catalogue `prod` is not empty: it holds bronze"),
            ("DROP SCHEMA silver; DROP SCHEMA bronze; DROP CATALOG prod; SHOW CATALOGS", "…main\nsystem"),
        ],
    )
    .await;
}

#[tokio::test]
async fn tables_have_what_they_were_created_with() {
    let mut sql = Sql::new();
    script(
        &mut sql,
        &[
            ("CREATE TABLE shop.orders (id INT)", "error[TR0110]: schema `main.shop` does not exist"),
            ("CREATE SCHEMA shop", "schema main.shop created"),
            (
                "CREATE TABLE shop.orders (
                   id BIGINT NOT NULL COMMENT 'the key', day DATE, amount DECIMAL(10,2) DEFAULT 0, note STRING,
                   tags ARRAY<STRUCT<k: STRING, v: MAP<STRING, INT>>>,
                   CONSTRAINT positive CHECK (amount >= 0), CONSTRAINT orders_key PRIMARY KEY (id)
                 ) USING DELTA PARTITIONED BY (day) COMMENT 'orders' TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 30 days')",
                "table main.shop.orders created",
            ),
            ("CREATE TABLE shop.ORDERS (id INT)", "error[TR0109]: table `main.shop.ORDERS` is there already"),
            ("CREATE TABLE IF NOT EXISTS shop.orders (id INT)", "table main.shop.orders is there already"),
            ("CREATE TABLE shop.clustered (a INT, b STRING) CLUSTER BY (b)", "table main.shop.clustered created"),
            ("SHOW TABLES IN shop", "shop|clustered|false\nshop|orders|false"),
            ("SHOW COLUMNS IN shop.orders", "id\nday\namount\nnote\ntags"),
            ("DESCRIBE shop.clustered", "a|int|null\nb|string|null\n# Clustering Information||null\n# col_name|data_type|comment\nb|string|null"),
            ("DESCRIBE TABLE EXTENDED shop.orders", "…Comment|orders|null…"),
            ("DESCRIBE DETAIL shop.orders", "delta|main.shop.orders|orders|memory:///lake/main/shop/orders/…"),
            ("DESCRIBE HISTORY shop.orders", "0|…"),
            ("DESCRIBE QUERY SELECT 1 AS one, 'a' AS letter", "one|int|null\nletter|string|null"),
            ("SHOW TBLPROPERTIES shop.orders ('delta.logRetentionDuration')", "delta.logRetentionDuration|interval 30 days"),
            ("SHOW CREATE TABLE shop.clustered", "CREATE TABLE `main`.`shop`.`clustered` (\n  `a` INT,\n  `b` STRING\n)\nUSING DELTA\nCLUSTER BY (`b`)…"),
            ("INSERT INTO shop.orders (id, day, note) VALUES (1, DATE'2024-05-01', 'a'), (2, DATE'2024-05-02', DEFAULT)", "2 rows inserted"),
            ("SELECT id, day, amount, note FROM shop.orders ORDER BY id", "1|2024-05-01|0.00|a\n2|2024-05-02|0.00|null"),
            ("SHOW PARTITIONS shop.orders", "day=2024-05-01\nday=2024-05-02"),
            ("INSERT INTO shop.orders (id, amount) VALUES (3, -1)", "error[LK…"),
            ("INSERT INTO shop.orders (amount) VALUES (1)", "error[LK…"),
            ("ALTER TABLE shop.orders SET TBLPROPERTIES ('owner' = 'ann')", "properties of main.shop.orders set"),
            ("SHOW TBLPROPERTIES shop.orders (owner)", "owner|ann"),
            ("ALTER TABLE shop.orders ADD COLUMNS (city STRING COMMENT 'where')", "columns of main.shop.orders added"),
            ("SELECT city FROM shop.orders WHERE id = 1", "null"),
            ("CREATE TABLE shop.copy AS SELECT id, amount * 2 AS twice FROM shop.orders", "table main.shop.copy created with 2 rows"),
            ("SELECT * FROM shop.copy ORDER BY id", "1|0.00\n2|0.00"),
            ("DROP TABLE shop.copy", "error[TR0116]: dropping table `main.shop.copy` loses its rows and its history: say --destroy main.shop.copy"),
            ("CREATE OR REPLACE TABLE shop.orders (id INT)", "error[SQ0002]: CREATE OR REPLACE TABLE is not executed by this release (line 1, column 19)…"),
            (
                "SELECT table_name, constraint_name, constraint_type, enforced FROM information_schema.table_constraints ORDER BY 2",
                "orders|orders_key|PRIMARY KEY|NO\norders|positive|CHECK|YES",
            ),
            ("SELECT constraint_name, column_name, ordinal_position FROM information_schema.key_column_usage", "orders_key|id|1"),
            (
                "SELECT column_name, ordinal_position, is_nullable, full_data_type, data_type, partition_index
                 FROM main.information_schema.columns WHERE table_name = 'orders' AND ordinal_position < 4",
                "id|1|NO|bigint|BIGINT|null\nday|2|YES|date|DATE|1\namount|3|YES|decimal(10,2)|DECIMAL|null",
            ),
            (
                "SELECT table_catalog, table_name, is_insertable_into FROM system.information_schema.tables WHERE table_schema = 'shop' ORDER BY 2",
                "main|clustered|YES\nmain|copy|YES\nmain|orders|YES",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_table_is_dropped_only_by_the_name_that_was_agreed_to() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let options = SessionOptions { destroy: vec!["shop.scratch".to_owned()], ..SessionOptions::default() };
    let mut sql = Sql::over(&lake, options);
    script(
        &mut sql,
        &[
            ("CREATE SCHEMA shop; CREATE TABLE shop.scratch AS SELECT 1 AS a; CREATE TABLE shop.kept AS SELECT 1 AS a", "…1 rows"),
            ("DROP TABLE shop.kept", "error[TR0116]…"),
            ("DROP TABLE shop.scratch", "table main.shop.scratch dropped"),
            ("SHOW TABLES IN shop", "shop|kept|false"),
            ("DROP TABLE shop.scratch", "error[SQ0003]…"),
            ("DROP TABLE IF EXISTS shop.scratch", "there is no table shop.scratch"),
            ("DROP SCHEMA shop", "error[TR0118]: schema `main.shop` is not empty: it holds shop.kept"),
            ("DROP SCHEMA shop CASCADE", "error[SQ0002]…"),
        ],
    )
    .await;
}

#[tokio::test]
async fn rows_are_inserted_by_place_by_name_and_by_list() {
    script(
        &mut Sql::new(),
        &[
            ("CREATE SCHEMA s; CREATE TABLE s.t (a INT, b STRING, c DOUBLE DEFAULT 1.5)", "…created"),
            ("INSERT INTO s.t VALUES (1, 'x', 2)", "1 rows inserted"),
            ("INSERT INTO s.t BY NAME SELECT 'y' AS B, 2 AS a", "1 rows inserted"),
            ("INSERT INTO s.t (b) SELECT 'z'", "1 rows inserted"),
            ("SELECT * FROM s.t ORDER BY b", "1|x|2.0\n2|y|1.5\nnull|z|1.5"),
            ("INSERT INTO s.t SELECT 1, 'x'", "error[TR0117]: the rows do not fit the columns of `s.t`: 2 columns are given for 3"),
            ("INSERT INTO s.t (a, d) VALUES (1, 2)", "error[SQ0004]: column `d` does not exist (line 1, column 21)…"),
            ("INSERT INTO s.t (a, A) VALUES (1, 2)", "…column `a` is named twice"),
            ("INSERT INTO s.t BY NAME SELECT 1 AS aa", "…it has no column `aa` (did you mean `a`?)"),
            ("INSERT INTO s.t VALUES (5000000000, 'big', 0)", "error[…"),
            ("INSERT INTO s.t VALUES ('one', 'text', 0)", "error[…"),
            ("INSERT INTO s.none VALUES (1)", "error[SQ0003]: table `s.none` does not exist (line 1, column 13)…"),
            ("INSERT INTO s.t SELECT * FROM s.t", "3 rows inserted"),
            ("SELECT count(*) FROM s.t", "6"),
            ("INSERT OVERWRITE s.t VALUES (9, 'only', 9)", "1 rows inserted"),
            ("SELECT * FROM s.t", "9|only|9.0"),
            ("SELECT _change_type, count(*) FROM table_changes('s.t', 5) GROUP BY 1 ORDER BY 1", "delete|6\ninsert|1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn rows_are_updated_deleted_and_merged() {
    for properties in ["", "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"] {
        let create = format!("CREATE SCHEMA s; CREATE TABLE s.t (id INT NOT NULL, v STRING, n INT CHECK (n < 100)) {properties}");
        script(
            &mut Sql::new(),
            &[
                (&create, "…created"),
                ("INSERT INTO s.t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3); INSERT INTO s.t VALUES (4, 'd', 4)", "3 rows inserted\n1 rows inserted"),
                ("UPDATE s.t SET n = n + 10, v = upper(v) WHERE id >= 3", "2 rows updated, 0 deleted, 0 inserted"),
                ("SELECT * FROM s.t ORDER BY id", "1|a|1\n2|b|2\n3|C|13\n4|D|14"),
                ("SELECT _change_type, id, v, n FROM table_changes('s.t', 3) ORDER BY id, 1", "update_postimage|3|C|13\nupdate_preimage|3|c|3\nupdate_postimage|4|D|14\nupdate_preimage|4|d|4"),
                ("DELETE FROM s.t x WHERE x.id = 1", "0 rows updated, 1 deleted, 0 inserted"),
                ("DELETE FROM s.t WHERE id = 1", "0 rows updated, 0 deleted, 0 inserted"),
                (
                    "MERGE INTO s.t AS t USING (SELECT * FROM VALUES (2, 'two', 20), (5, 'five', 50), (4, 'gone', 0) AS x(id, v, n)) s
                     ON t.id = s.id
                     WHEN MATCHED AND s.v = 'gone' THEN DELETE
                     WHEN MATCHED THEN UPDATE SET *
                     WHEN NOT MATCHED THEN INSERT *
                     WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'alone'",
                    "2 rows updated, 1 deleted, 1 inserted",
                ),
                ("SELECT * FROM s.t ORDER BY id", "2|two|20\n3|alone|13\n5|five|50"),
                ("SELECT _change_type, id FROM table_changes('s.t', 5) ORDER BY id, 1", "update_postimage|2\nupdate_preimage|2\nupdate_postimage|3\nupdate_preimage|3\ndelete|4\ninsert|5"),
                ("UPDATE s.t SET n = 1000 WHERE id = 2", "error[LK…"),
                ("UPDATE s.t SET id = NULL WHERE id = 2", "error[LK…"),
                ("UPDATE s.t SET m = 1", "error[SQ0004]: column `m` does not exist (line 1, column 16)"),
                ("UPDATE s.t SET n = 1, N = 2", "error[SQ0002]: a second value for column `n` is not executed by this release (line 1, column 23)"),
                ("UPDATE s.t SET n = x WHERE id = 1", "error[SQ0004]: column `x` does not exist (line 1, column 20)…"),
                ("DELETE FROM s.t WHERE id = true", "error[SQ0002]: comparing a number with a boolean is not executed by this release (line 1, column 23): cast one side"),
                (
                    "MERGE INTO s.t USING (SELECT 2 AS id UNION ALL SELECT 2) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'x'",
                    "error[TR0113]: several rows of the source match one row of `s.t`",
                ),
                ("MERGE INTO s.t USING (SELECT 2 AS id UNION ALL SELECT 2) s ON t.id = s.id WHEN MATCHED THEN DELETE", "0 rows updated, 1 deleted, 0 inserted"),
                ("MERGE INTO s.t USING (SELECT 7 AS id, 0 AS z) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1 / z WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 70)", "0 rows updated, 0 deleted, 1 inserted"),
                ("MERGE INTO s.t USING s.t u ON t.id = u.id AND u.id = 7 WHEN MATCHED THEN UPDATE SET t.n = u.id", "1 rows updated, 0 deleted, 0 inserted"),
                ("SELECT * FROM s.t ORDER BY id", "3|alone|13\n5|five|50\n7|null|7"),
                ("DELETE FROM s.t; SELECT count(*) FROM s.t", "0 rows updated, 3 deleted, 0 inserted\n0"),
            ],
        )
        .await;
    }
}

#[tokio::test]
async fn functions_are_expressions_with_a_name() {
    script(
        &mut Sql::new(),
        &[
            ("CREATE FUNCTION tools.twice(x BIGINT) RETURNS BIGINT COMMENT 'doubles' RETURN x * 2", "function main.tools.twice created"),
            ("SELECT tools.twice(4), main.tools.twice(id) AS t, TWICE(1) FROM VALUES (5) AS v(id)", "8|10|2"),
            ("CREATE FUNCTION tools.twice(x BIGINT) RETURN x", "error[TR0109]: function `main.tools.twice` is there already"),
            ("CREATE FUNCTION tools.quad(x BIGINT) RETURNS STRING RETURN concat(tools.twice(tools.twice(x)), '!')", "…created"),
            ("SELECT quad(3)", "12!"),
            ("CREATE OR REPLACE FUNCTION tools.twice(x BIGINT) RETURNS BIGINT RETURN x + x + 0", "function main.tools.twice replaced"),
            ("SELECT quad(3)", "12!"),
            (
                "CREATE OR REPLACE FUNCTION tools.twice(x BIGINT) RETURNS STRING RETURN tools.quad(x)",
                "error[SQ0002]: the function `tools.quad`…",
            ),
            (
                "CREATE FUNCTION tools.loop(x INT) RETURNS INT\n  RETURN tools.loop(x)",
                "error[SQ0002]: the function `tools.loop` is not executed by this release (line 2, column 10)…",
            ),
            ("CREATE FUNCTION tools.bad(x INT) RETURN y", "error[SQ0004]: column `y` does not exist (line 1, column 41)…"),
            ("CREATE FUNCTION tools.q(x INT) RETURN (SELECT max(a) FROM t)", "error[SQ…"),
            ("SELECT tools.twice(' 7 '), tools.twice(2.9), twice(NULL), quad('3')", "14|4|null|12!"),
            ("SELECT tools.twice('a')", "error[TR0108]: the query failed: a string cannot be read as bigint…"),
            ("SELECT tools.twice(array(1))", "error[SQ0007]: the query cannot be planned: …"),
            ("SELECT tools.twice(1, 2)", "error[SQ0007]: the query cannot be planned: …"),
            ("SELECT tools.twyce(1)", "…the nearest known name is `main.tools.twice`"),
            ("CREATE SCHEMA other; CREATE FUNCTION other.twice(x INT) RETURN x", "…created"),
            ("SELECT twice(1)", "error[SQ0005]: `twice` is ambiguous…"),
            ("SHOW USER FUNCTIONS", "main.other.twice\nmain.tools.quad\nmain.tools.twice"),
            ("SHOW USER FUNCTIONS IN other", "main.other.twice"),
            (
                "DESCRIBE FUNCTION tools.twice",
                "Function: main.tools.twice\nType: SCALAR\nInput: x BIGINT\nReturns: BIGINT\nOwner: ann\nBody: x + x + 0",
            ),
            (
                "SELECT routine_schema, routine_name, routine_definition FROM information_schema.routines WHERE routine_name = 'quad'",
                "tools|quad|concat(tools.twice(tools.twice(x)), '!')",
            ),
            ("DROP FUNCTION other.twice; SELECT twice(1)", "function main.other.twice dropped\n2"),
            ("DROP FUNCTION other.twice", "error[TR0110]: function `other.twice` does not exist…"),
            ("DROP FUNCTION IF EXISTS other.twice", "there is no function other.twice"),
            ("SELECT is_account_group_member('admins')", "false"),
        ],
    )
    .await;
    let options = SessionOptions { groups: vec!["admins".to_owned()], ..SessionOptions::default() };
    script(&mut Sql::with(options), &[("SELECT is_member('admins'), is_account_group_member('Admins')", "true|false")]).await;
}

#[tokio::test]
async fn privileges_are_kept_inherited_and_taken_back() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let mut sql = Sql::over(&lake, SessionOptions { user: Some("ann".to_owned()), ..SessionOptions::default() });
    script(
        &mut sql,
        &[
            ("SHOW GRANTS", ""),
            ("CREATE CATALOG prod; CREATE SCHEMA prod.bronze; CREATE TABLE prod.bronze.events (id STRING)", "…created"),
            ("GRANT USE CATALOG ON CATALOG prod TO `app-1`", "USE CATALOG granted on catalog prod to app-1"),
            ("GRANT USE SCHEMA ON SCHEMA prod.bronze TO `app-1`; GRANT MODIFY, SELECT ON TABLE prod.bronze.events TO `app-1`", "…MODIFY, SELECT granted on table prod.bronze.events to app-1"),
            ("GRANT SELECT ON prod.bronze.events TO `app-1`", "SELECT granted on table prod.bronze.events to app-1"),
            ("GRANT ALL PRIVILEGES ON CATALOG prod TO admins", "…to admins"),
            ("GRANT SELEC ON TABLE prod.bronze.events TO x", "error[TR0115]: `SELEC` is no privilege on table (line 1, column 7) (did you mean `SELECT`?)"),
            ("GRANT CREATE TABLE ON TABLE prod.bronze.events TO x", "error[TR0115]…"),
            ("GRANT SELECT ON TABLE prod.bronze.evens TO x", "error[SQ0003]…"),
            ("SHOW GRANTS `app-1` ON TABLE prod.bronze.events", "app-1|MODIFY|TABLE|prod.bronze.events\napp-1|SELECT|TABLE|prod.bronze.events\napp-1|USE SCHEMA|SCHEMA|prod.bronze\napp-1|USE CATALOG|CATALOG|prod"),
            ("SHOW GRANTS ON SCHEMA prod.bronze", "app-1|USE SCHEMA|SCHEMA|prod.bronze\nadmins|ALL PRIVILEGES|CATALOG|prod\napp-1|USE CATALOG|CATALOG|prod"),
            ("SELECT privilege, principal, granted_by FROM system.tributary.grants WHERE securable_type = 'SCHEMA'", "USE SCHEMA|app-1|ann"),
            ("SELECT grantee, privilege_type, inherited_from FROM prod.information_schema.table_privileges ORDER BY 1, 2", "admins|ALL PRIVILEGES|CATALOG\napp-1|MODIFY|NONE\napp-1|SELECT|NONE\napp-1|USE CATALOG|CATALOG\napp-1|USE SCHEMA|SCHEMA"),
            ("DELETE FROM system.tributary.grants", "error[TR0111]…"),
        ],
    )
    .await;
    let events = tributary::sql::Securable::Table("prod".to_owned(), "bronze".to_owned(), "events".to_owned());
    let grants = tributary::sql::grants(&lake).await.expect("the grants");
    assert!(tributary::sql::may(&grants, "app-1", &[], "MODIFY", &events));
    assert!(tributary::sql::may(&grants, "bob", &["admins".to_owned()], "SELECT", &events));
    assert!(!tributary::sql::may(&grants, "bob", &["admins".to_owned()], "MANAGE", &events));
    script(
        &mut sql,
        &[
            (
                "REVOKE MODIFY ON TABLE prod.bronze.events FROM `app-1`; SHOW GRANTS `app-1` ON TABLE prod.bronze.events",
                "…app-1|SELECT|TABLE|prod.bronze.events\napp-1|USE SCHEMA|SCHEMA|prod.bronze\napp-1|USE CATALOG|CATALOG|prod",
            ),
            ("REVOKE ALL PRIVILEGES ON CATALOG prod FROM admins; SHOW GRANTS admins", "ALL PRIVILEGES revoked on catalog prod from admins"),
        ],
    )
    .await;
    let grants = tributary::sql::grants(&lake).await.expect("the grants");
    assert!(
        !tributary::sql::may(&grants, "app-1", &[], "MODIFY", &events) && tributary::sql::may(&grants, "app-1", &[], "SELECT", &events)
    );
}

#[tokio::test]
async fn a_mask_is_never_pretended() {
    let lake = Lake::open("memory://", Default::default()).expect("a lake");
    let mut sql = Sql::over(&lake, SessionOptions::default());
    script(
        &mut sql,
        &[
            (
                "CREATE SCHEMA s; CREATE TABLE s.people (email STRING); CREATE FUNCTION s.hide(e STRING) RETURNS STRING RETURN '***'",
                "…created",
            ),
            (
                "ALTER TABLE s.people ALTER COLUMN email SET MASK s.hide",
                "error[TR0112]: MASK main.s.hide of `email` on `main.s.people` would not be enforced: every reader sees the data as it is",
            ),
            ("ALTER TABLE s.people SET ROW FILTER s.hide ON (email)", "error[TR0112]…"),
            ("CREATE TABLE s.other (email STRING MASK s.hide)", "error[TR0112]…"),
            ("ALTER TABLE s.people ALTER COLUMN mail SET MASK s.hide", "error[SQ0004]…"),
        ],
    )
    .await;
    let mut sql = Sql::over(&lake, SessionOptions { accept_unprotected: true, ..SessionOptions::default() });
    script(
        &mut sql,
        &[
            ("ALTER TABLE s.people ALTER COLUMN email SET MASK s.hide", "…recorded, NOT ENFORCED: every reader sees the data as it is"),
            ("DESCRIBE EXTENDED s.people", "…Mask of email|main.s.hide|recorded, not enforced…"),
            ("SELECT column_name, mask_name FROM information_schema.column_masks", "email|main.s.hide"),
            ("ALTER TABLE s.people ALTER COLUMN EMAIL DROP MASK; SELECT count(*) FROM system.tributary.masks", "…0"),
            (
                "CREATE TABLE s.other (email STRING MASK s.hide, kind STRING) WITH ROW FILTER s.hide ON (kind)",
                "table main.s.other created; MASK main.s.hide of `email` recorded, NOT ENFORCED: every reader sees the data as it is; ROW FILTER…",
            ),
            ("SELECT filter_name, target_columns FROM information_schema.row_filters", "main.s.hide|kind"),
            ("CREATE TABLE s.none WITH ROW FILTER s.hide ON (n) AS SELECT CAST(email AS INT) AS n FROM VALUES ('x') AS t(email)", "error[…"),
            ("SELECT table_name FROM information_schema.row_filters ORDER BY 1", "none\nother"),
        ],
    )
    .await;
    let mut sql =
        Sql::over(&lake, SessionOptions { destroy: vec!["s.other".to_owned(), "s.none".to_owned()], ..SessionOptions::default() });
    script(
        &mut sql,
        &[
            ("DROP TABLE s.none", "table main.s.none dropped"),
            ("DROP TABLE s.other; SELECT count(*) FROM system.tributary.masks", "table main.s.other dropped\n0"),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_first_statement_that_cannot_be_read_is_told_before_any_is_executed() {
    script(
        &mut Sql::new(),
        &[
            (
                "CREATE SCHEMA a;\nCREATE SCHEMA b;\nSELCT 1",
                "error[SQ0002]: the statement SELCT is not executed by this release (line 3, column 1): did you mean SELECT?",
            ),
            ("SHOW SCHEMAS", "information_schema"),
            (
                "CREATE SCHEMA a;\n\n  CREATE TABLE a.t (id INTT)",
                "error[SQ0002]: the type INTT is not executed by this release (line 3, column 24)…",
            ),
            ("SELECT 'open", "error[SQ0001]…"),
            ("ANALYZE s.t", "error[SQ0002]: the statement ANALYZE…"),
            ("GRANT SELECT ON t", "error[SQ0001]: the text cannot be read: Expected: TO, found: EOF"),
            ("-- nothing", ""),
        ],
    )
    .await;
}

#[tokio::test]
async fn files_are_written_anew_and_rows_stay_what_they_are() {
    script(
        &mut Sql::new(),
        &[
            ("CREATE SCHEMA s; CREATE TABLE s.t (id INT, x INT)", "…created"),
            ("INSERT INTO s.t VALUES (3, 1)", "1 rows inserted"),
            ("INSERT INTO s.t VALUES (1, NULL)", "1 rows inserted"),
            ("OPTIMIZE s.t", "main.s.t: 2 files of…"),
            ("OPTIMIZE s.t", "nothing to do to main.s.t"),
            ("OPTIMIZE s.t ZORDER BY (x, id)", "main.s.t: 1 files of…"),
            ("OPTIMIZE s.t ZORDER BY (x, id)", "nothing to do to main.s.t"),
            ("OPTIMIZE s.t ZORDER BY (y)", "error[MT0003]: `s.t` cannot be ordered by column `y`: there is no such column"),
            ("REORG TABLE s.t APPLY (PURGE)", "nothing to do to main.s.t"),
            ("SELECT * FROM s.t ORDER BY id", "1|null\n3|1"),
            ("OPTIMIZE s.u", "error[SQ0003]: table `s.u` does not exist…"),
        ],
    )
    .await;
}

#[tokio::test]
async fn quotes_and_backslashes_are_what_they_were_wherever_a_text_goes() {
    script(
        &mut Sql::new(),
        &[
            (r"CREATE SCHEMA s; CREATE TABLE s.t (a STRING COMMENT 'it\'s') COMMENT 'C:\\ it''s'", "…created"),
            ("DESCRIBE s.t", "a|string|it's"),
            ("SHOW CREATE TABLE s.t", r"…COMMENT 'C:\\ it\'s'…"),
            ("INSERT INTO s.t VALUES ('a1b'), ('dd')", "2 rows inserted"),
            (r"SELECT 'it\'s', 'C:\\', regexp_replace(a, '\\d', 'X') FROM s.t ORDER BY a", "it's|C:\\|aXb\nit's|C:\\|dd"),
            (r"CREATE OR REFRESH MATERIALIZED VIEW s.v AS SELECT regexp_replace(a, '\\d', 'it\'s') AS a FROM s.t", "s.v committed"),
            ("SELECT a FROM s.v ORDER BY a", "ait'sb\ndd"),
            ("GRANT SELECT ON s.t TO `o'brien`; GRANT SELECT ON s.t TO `x' OR true OR principal = '`", "…"),
            ("REVOKE SELECT ON s.t FROM `x' OR true OR principal = '`; SHOW GRANTS", "…\no'brien|SELECT|TABLE|main.s.t"),
            ("REVOKE SELECT ON s.t FROM `o'brien`; SHOW GRANTS", "SELECT revoked on table main.s.t from o'brien"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_function_named_by_its_last_part_is_the_only_one_called_so() {
    script(
        &mut Sql::new(),
        &[
            ("CREATE FUNCTION a.f() RETURNS INT RETURN 1; CREATE FUNCTION b.f() RETURNS INT RETURN 2", "…created"),
            ("DROP FUNCTION f", "error[SQ0005]…"),
            ("DROP FUNCTION a.f; DROP FUNCTION f; SHOW USER FUNCTIONS", "function main.a.f dropped\nfunction main.b.f dropped"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_function_that_cannot_be_made_leaves_no_schema() {
    script(
        &mut Sql::new(),
        &[
            ("CREATE FUNCTION system.mine.f() RETURNS INT RETURN 1", "error[TR0111]…"),
            ("CREATE FUNCTION c.f() RETURNS INT RETURN nothing(1)", "error[SQ0002]…"),
            ("SHOW SCHEMAS IN system", "information_schema"),
            ("SHOW SCHEMAS", "information_schema"),
        ],
    )
    .await;
}

#[tokio::test]
async fn files_of_a_table_without_deletion_vectors_are_written_anew_without_the_rows_that_go() {
    script(
        &mut Sql::new(),
        &[
            ("CREATE SCHEMA s; CREATE TABLE s.t (a INT, b STRING) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')", "…created"),
            ("INSERT INTO s.t VALUES (1, 'x'), (2, 'y'), (3, 'z')", "3 rows inserted"),
            ("DELETE FROM s.t WHERE a = 2", "0 rows updated, 1 deleted, 0 inserted"),
            ("UPDATE s.t SET b = 'w' WHERE a = 3", "1 rows updated, 0 deleted, 0 inserted"),
            ("SELECT * FROM s.t ORDER BY a", "1|x\n3|w"),
        ],
    )
    .await;
}
