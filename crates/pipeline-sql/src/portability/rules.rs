//! What each construct is elsewhere. What Spark refuses is what its 4.3.0 release refuses.

use super::Elsewhere::{Differs, Missing, Same};
use super::PortabilityRule as Rule;

macro_rules! rules {
    ($($constant:ident = $name:literal, $construct:literal, $databricks:expr, $spark:expr;)*) => {
        $(pub(crate) static $constant: Rule = Rule { name: $name, construct: $construct, databricks: $databricks, spark: $spark };)*
        /// Every rule, in the order of the reference page.
        pub(crate) static ALL: &[&Rule] = &[$(&$constant),*];
    };
}

rules! {
    OR_REFRESH = "or_refresh", "CREATE OR REFRESH", Same, Missing("write CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW or CREATE TEMPORARY VIEW");
    OR_REPLACE = "or_replace", "CREATE OR REPLACE MATERIALIZED VIEW", Same, Missing("write CREATE MATERIALIZED VIEW");
    LIVE = "live", "LIVE and INCREMENTAL in CREATE", Same, Missing("write CREATE STREAMING TABLE, CREATE MATERIALIZED VIEW or CREATE TEMPORARY VIEW");
    LIVE_NAME = "live_name", "LIVE. before a name", Same, Missing("LIVE is the name of a schema there; leave it out");
    PRIVATE = "private", "PRIVATE and TEMPORARY tables",
        Differs("only the pipeline sees the table there; here whoever reads the lake does"), Missing("leave the word out; everybody sees the table");
    IF_NOT_EXISTS = "if_not_exists", "IF NOT EXISTS",
        Differs("a definition that is already there is kept; here the file's holds"), Differs("a definition that is already there is kept; here the file's holds");
    VIEW = "view", "CREATE VIEW with a schema",
        Differs("others can read the view there; here it is put into the queries that read it"),
        Differs("others can read the view there; here it is put into the queries that read it");
    UNTYPED_COLUMN = "untyped_column", "a column without a type", Same, Missing("give the column its type");
    NOT_NULL = "not_null", "a column declared NOT NULL", Same, Missing("leave NOT NULL out: a query's column may be NULL there, and declared types must be the query's");
    EXPECT = "expect", "CONSTRAINT … EXPECT", Same, Missing("pipelines have no rules there; filter in the query");
    EXPECT_ON_VIEW = "expect_on_view", "CONSTRAINT … EXPECT on a view",
        Differs("its rows are counted there; here what it drops is left out and nothing counted"), Missing("pipelines have no rules there; filter in the query");
    KEY = "key", "PRIMARY KEY and FOREIGN KEY", Same, Missing("datasets of pipelines have no constraints there; leave it out");
    MASK = "mask", "MASK", Differs("it is enforced there and not here"), Missing("leave it out and give nobody the column");
    ROW_FILTER = "row_filter", "ROW FILTER", Differs("it is enforced there and not here"), Missing("leave it out and filter in the query");
    TEXT_LENGTH = "text_length", "VARCHAR(n) and CHAR(n)",
        Differs("longer texts are refused there; here texts have any length"), Differs("longer texts are refused there; here texts have any length");
    CLUSTER_BY_AUTO = "cluster_by_auto", "CLUSTER BY AUTO", Differs("columns are chosen there; here none are"), Missing("name the columns");
    CLUSTER_BY_NONE = "cluster_by_none", "CLUSTER BY NONE", Same, Missing("leave the clause out");
    SCHEDULE = "schedule", "SCHEDULE and TRIGGER ON UPDATE",
        Differs("it starts updates there; here a job, cron or --stream does"), Missing("leave the clause out");
    LOCATION = "location", "LOCATION", Missing("tables of Unity Catalog have none; leave the clause out"), Missing("leave the clause out; the pipeline has a setting storage");
    UNQUOTED_PROPERTY = "unquoted_property", "a property's value without quotes", Same, Missing("put the value in quotes");
    OUR_PROPERTY = "our_property", "properties called tributary.…",
        Differs("it is kept as text and does nothing"), Differs("it is kept as text and does nothing");
    PLATFORM_PROPERTY = "platform_property", "properties called pipelines.… that are obeyed", Same, Differs("it is kept as text and does nothing");
    PROPERTY_AS_TEXT = "property_as_text", "other properties called pipelines.…", Differs("it is obeyed there; here it is kept as text"), Same;
    FLOW_ONCE = "flow_once", "a flow that runs ONCE", Same, Missing("fill the table by a pipeline of its own");
    FLOW_IN_TABLE = "flow_in_table", "FLOW AUTO CDC in a table's definition", Differs("only in the preview channel; CREATE FLOW is in every one"), Same;
    INSERT_IN_TABLE = "insert_in_table", "FLOW INSERT BY NAME in a table's definition", Same, Missing("write AS and the query");
    APPLY_CHANGES = "apply_changes", "APPLY CHANGES INTO", Same, Missing("write CREATE FLOW name AS AUTO CDC INTO");
    BARE_AUTO_CDC = "bare_auto_cdc", "AUTO CDC INTO without CREATE FLOW",
        Missing("write CREATE FLOW name AS AUTO CDC INTO"), Missing("write CREATE FLOW name AS AUTO CDC INTO");
    IMPLICIT_DELETES = "implicit_deletes", "AUTO CDC over a change feed without APPLY AS DELETE WHEN",
        Differs("every change is an upsert there; here the feed's deletes are applied: write APPLY AS DELETE WHEN, or set tributary.cdc.implicitDeletes to false"),
        Differs("every change is an upsert there; here the feed's deletes are applied: write APPLY AS DELETE WHEN, or set tributary.cdc.implicitDeletes to false");
    EQUAL_SEQUENCES = "equal_sequences", "AUTO CDC",
        Differs("which of several changes with one key and sequence wins is not defined there; here it is: delete over upsert, then the greater content"),
        Differs("which of several changes with one key and sequence wins depends on arrival there");
    DECLARED_COLUMNS = "declared_columns", "columns declared of a table with AUTO CDC", Same, Missing("leave the list out; the table has the column __spark_autocdc_metadata besides");
    ROW_COLUMNS = "row_columns", "AUTO CDC that keeps one row of a key",
        Differs("the table has neither __position nor __sequence there: name the columns that you read"),
        Differs("the table has __spark_autocdc_metadata there, and neither __position nor __sequence: name the columns that you read");
    IGNORE_NULL_UPDATES = "ignore_null_updates", "IGNORE NULL UPDATES", Same, Missing("write coalesce over the row before in the source, or leave it out");
    TRUNCATE_WHEN = "truncate_when", "APPLY AS TRUNCATE WHEN", Same, Missing("leave it out; truncates are not applied there");
    CLAUSE_ORDER = "clause_order", "clauses of AUTO CDC in another order",
        Missing("write KEYS, IGNORE NULL UPDATES, APPLY AS DELETE WHEN, APPLY AS TRUNCATE WHEN, SEQUENCE BY, COLUMNS, STORED AS, TRACK HISTORY ON"), Same;
    KEYS_NOT_FIRST = "keys_not_first", "AUTO CDC whose first clause is not KEYS", Same, Missing("write KEYS first");
    BARE_COLUMNS = "bare_columns", "columns without brackets in COLUMNS and TRACK HISTORY ON", Same, Missing("put the columns in brackets");
    ALL_COLUMNS = "all_columns", "COLUMNS * and TRACK HISTORY ON * without EXCEPT", Missing("leave the clause out"), Missing("leave the clause out");
    FEED_COLUMNS = "feed_columns", "a table filled by read_files, read_kafka or cloud_files",
        Differs("columns that tell where a row is from (_file, _line, _ingested_at, … and _op, _position of change events) are not in the table there: ask for them with _metadata"), Same;
    READ_FILES = "read_files", "read_files", Same, Missing("read the files in Python: spark.readStream");
    TABLE_CHANGES = "table_changes", "table_changes",
        Differs("AUTO CDC upserts deletes and rows before updates there: say APPLY AS DELETE WHEN _change_type = 'delete', and leave update_preimage out"),
        Missing("write STREAM table CHANGES FROM VERSION n");
    READ_KAFKA = "read_kafka", "read_kafka", Same, Missing("read the topic in Python: spark.readStream");
    CLOUD_FILES = "cloud_files", "cloud_files", Same, Missing("read the files in Python: spark.readStream");
    OUR_OPTION = "our_option", "options and formats of ours in read_files and read_kafka",
        Missing("leave it out, and what it does to the queries that read the table"), Missing("leave it out, and what it does to the queries that read the table");
    OPTION_NOT_APPLIED = "option_not_applied", "options of read_files and read_kafka that are not applied", Differs("it is obeyed there and not here"), Same;
    STREAM_OPTIONS = "stream_options", "WITH (…) behind a stream", Differs("options that are not applied here are obeyed there"), Differs("options that are not applied here are obeyed there");
    WATERMARK = "watermark", "WATERMARK",
        Differs("rows that come too late may be left out there; here they are applied, or left out by the property tributary.late"),
        Differs("rows that come too late may be left out there; here they are applied, or left out by the property tributary.late");
    REMEMBERED = "remembered", "a streaming table whose query groups its stream, or joins two",
        Differs("its rows stay as they were written there, and a change of a source's rows stops it; here the table stays equal to its query, rows that change or go are followed, and a window is there from its first row on"),
        Differs("its rows stay as they were written there, and a change of a source's rows stops it; here the table stays equal to its query, rows that change or go are followed, and a window is there from its first row on");
    NAMED_PARAMETER = "named_parameter", "parameters written :name", Same, Missing("nothing gives them a value there; write ${name} and the setting configuration");
    SET_VALUE = "set_value", "a value that SET gives and ${name} asks for", Same, Missing("nothing is put in there: give the value by the setting configuration");
    USE_CATALOG = "use_catalog", "USE CATALOG", Same, Missing("write SET CATALOG");
    NOTEBOOK_CELL = "notebook_cell", "a statement that ends with its notebook cell", Same, Missing("end it with a semicolon");
    NOTEBOOK_MAGIC = "notebook_magic", "%sql", Same, Missing("leave the line's mark out");
    INVISIBLE_SIGN = "invisible_sign", "invisible signs, as web pages have them", Missing("delete them"), Missing("delete them");
    CREATE_SINK = "create_sink", "CREATE SINK", Missing("sinks are made in Python"), Missing("sinks are made in Python");
    OTHER_STATEMENT = "other_statement", "statements that define no dataset", Same, Missing("pipelines only define datasets there; run it elsewhere");
    OUR_FEED = "our_feed", "feeds in a bundle",
        Missing("the key feeds is ours; let a pipeline or connector make the table"), Missing("the key feeds is ours; make the table in Python");
    BUNDLE = "bundle", "a bundle's pipeline", Same, Missing("write spark-pipeline.yml with name, storage, catalog, database and libraries");
}
