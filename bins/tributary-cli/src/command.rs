//! The command lines: what `--help` says.

use clap::{Arg, ArgAction, ArgGroup, Command, value_parser};
use tributary_config::{Program, arguments};

use crate::gym::GymOptions;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The umbrella with all its commands.
pub fn umbrella() -> Command {
    Command::new("tributary")
        .version(VERSION)
        .about("Keeps medallion Delta tables current from change data, exactly once")
        .long_about(
            "Keeps medallion Delta tables current from change data, exactly once.\n\n\
             Bronze tables hold every change as it came, silver tables the current rows or their history, gold tables views. \
             A run takes what is new and exits; every run is safe to repeat, to overlap with itself and to kill.",
        )
        .after_help(
            "Examples:\n  \
             tributary demo                                     recorded changes of real databases, compared with their final state\n  \
             tributary run -p pipeline.yml -w data/lake         bring every table up to date\n  \
             tributary sql \"select * from silver.orders limit 5\"\n\n\
             Settings also come from the environment, .env and tributary.toml: see `tributary run --help`.\n\
             Exit codes: 0 done, 1 a retry may help, 2 a person must change something, 3 an expectation stopped it,\n\
             4 part of the work is left, 70 a bug of ours, 75 another run is active.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands([
            run(),
            job(),
            plan(),
            graph(),
            explain(),
            setup(),
            ddl(),
            validate(),
            init(),
            test(),
            doctor(),
            show(),
            quarantine(),
            schema(),
            sql(),
            maintain("maintain"),
            diff(),
            demo(),
            sample(),
            completions(),
            help(),
        ])
}

/// Maintenance's own binary.
pub fn maintenance() -> Command {
    maintain("tributary-maintain").version(VERSION)
}

/// A layer's own binary: the same settings, one layer.
pub fn layer(program: Program) -> Command {
    let (name, about) = match program {
        Program::Bronze => ("tributary-bronze", "Sources to bronze: append-only change tables and quarantine"),
        Program::Silver => ("tributary-silver", "Bronze to silver: current rows and history"),
        _ => ("tributary-gold", "Silver to gold: views kept equal to their queries"),
    };
    Command::new(name)
        .version(VERSION)
        .about(about)
        .after_help(format!(
            "Examples:\n  \
             {name} -p pipeline.yml -w data/lake\n  \
             {name} --stream --processing-time 30\n  \
             {name} --print-config"
        ))
        .args([variable(), conf(), accept_unprotected()])
        .args(arguments(program))
}

fn run() -> Command {
    Command::new("run")
        .about("Bring bronze, silver and gold up to date, layer by layer")
        .long_about(
            "Bring bronze, silver and gold up to date, layer by layer, with what is there now, and exit.\n\n\
             With --stream go on: each dataset is run as soon as what it reads has moved. SIGTERM and SIGINT end the run within 10 \
             seconds: what is read is committed. A second one ends it at once, which is as safe as a kill.",
        )
        .after_help(
            "Examples:\n  \
             tributary run -p pipeline.yml -w data/lake\n  \
             tributary run --layer silver --only silver.orders\n  \
             tributary run --stream --processing-time '30 seconds'\n  \
             tributary run --stream --metrics-listen 127.0.0.1:9464\n  \
             tributary run --exit-code-if-nothing-new 99 --report report.json\n  \
             tributary run --print-config\n  \
             tributary run --target dev --pipeline retail       a pipeline of the bundle of this folder or of one around it\n  \
             tributary run --pipeline dlt_pipelines/retail --conf day=2026-11-30     a folder of SQL files",
        )
        .args([variable(), conf(), accept_unprotected()])
        .arg(
            Arg::new("plan")
                .long("plan")
                .value_name("FILE")
                .value_parser(value_parser!(std::path::PathBuf))
                .help("Do exactly what this plan of `tributary plan --out` says, or refuse once it no longer holds"),
        )
        .args(arguments(Program::Run))
}

fn job() -> Command {
    let run = Command::new("run")
        .about("Run a job of the bundle: its tasks in order, with retries, timeouts and parameters")
        .long_about(
            "Run a job of the bundle of this folder or of one around it to its end: its tasks in the order that they depend on each \
             other, with run_if, retries, timeouts and parameters as the bundle says.\n\n\
             Beyond max_concurrent_runs a run waits where the job has a queue, and is skipped otherwise (exit 75). Pipelines are \
             drained, also those that go on without end by themselves. Every run is kept in system.lakeflow.job_run_timeline. \
             E-mails are lines of the log; webhooks whose id is an address are called.",
        )
        .after_help(
            "Examples:\n  \
             tributary job run retail_hourly --target prod\n  \
             tributary job run retail_hourly --tasks refresh_gold\n  \
             tributary job run NAME --param day=2026-11-30\n  \
             tributary sql \"select job_name, result_state from system.lakeflow.job_run_timeline\"",
        )
        .arg(Arg::new("name").value_name("NAME").required(true).help("The job's key, or its name"))
        .arg(pair("param", "Value of a parameter of the job; may be repeated").visible_alias("params"))
        .arg(
            Arg::new("tasks")
                .long("tasks")
                .visible_alias("only")
                .value_name("TASK")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .help("Only these tasks, which then wait for each other only. May be repeated or separated by commas"),
        )
        .args([variable(), conf(), accept_unprotected()])
        .args(arguments(Program::Job));
    Command::new("job").about("Run jobs of the bundle").subcommand_required(true).arg_required_else_help(true).subcommand(run)
}

fn accept_unprotected() -> Arg {
    Arg::new("accept-unprotected")
        .long("accept-unprotected")
        .action(ArgAction::SetTrue)
        .help("Run a pipeline with masks or row filters, which this release does not enforce; every report says what was not protected")
}

/// A value for a variable of the bundle.
fn variable() -> Arg {
    pair("var", "Value of a variable of the bundle; may be repeated")
}

/// A value for a name in SQL.
fn conf() -> Arg {
    pair("conf", "What ${NAME} stands for in the pipeline's SQL, over its own configuration; may be repeated")
}

fn pair(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("NAME=VALUE")
        .action(ArgAction::Append)
        .value_parser(|text: &str| match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err("expected NAME=VALUE"),
        })
        .help(help)
}

fn plan() -> Command {
    Command::new("plan")
        .about("Say what a run would create, alter, rewrite, lose and refresh in full; writes nothing")
        .long_about(
            "Say what a run would create, alter, rewrite, lose and refresh in full, and what is new in what each dataset reads.\n\n\
             Writes nothing, and asks nothing but the lake's own store and the folders of file feeds: brokers and record sources are \
             asked by the run alone. With --out the plan is kept in a file, and `tributary run --plan FILE` does exactly that, or \
             refuses (exit 2) once tables, files or definitions have moved. Exits 2 where a dataset would stop.",
        )
        .after_help(
            "Examples:\n  \
             tributary plan -p pipeline.yml -w data/lake\n  \
             tributary plan --pipeline retail --target prod --out plan.json && tributary run --pipeline retail --target prod --plan plan.json\n  \
             tributary plan --only silver.orders --output json",
        )
        .args([variable(), conf(), out("Keep the plan, a JSON document, in this file")])
        .args(arguments(Program::Plan))
}

fn explain() -> Command {
    Command::new("explain")
        .about("Say how a view would be refreshed, what would be read, and why in full where it would be; writes nothing")
        .long_about(
            "Say how a view would be refreshed with its inputs as they are: by what changed in them, or in full and for which single \
             reason; and of each input how much of its change feed would be read, beside the whole table. Reads logs alone.\n\n\
             With --audit N, N groups of the view, chosen at random, are computed again from its inputs at the versions that it \
             records, and compared: a difference is an error (GA0020, exit 70). Writes nothing either.",
        )
        .after_help(
            "Examples:\n  \
             tributary explain gold.daily_revenue -p pipeline.yml\n  \
             tributary explain gold.daily_revenue --pipeline retail --output json\n  \
             tributary explain gold.daily_revenue --audit 100",
        )
        .arg(Arg::new("table").value_name("TABLE").required(true).help("schema.table of the view"))
        .arg(
            Arg::new("audit")
                .long("audit")
                .value_name("N")
                .value_parser(value_parser!(usize))
                .help("Compute so many groups again and compare them with the view's rows"),
        )
        .args([variable(), conf()])
        .args(arguments(Program::Explain))
}

fn graph() -> Command {
    Command::new("graph")
        .about("Draw the pipeline: datasets, flows, and which columns come from which, with the rows of the last run")
        .long_about(
            "Draw the pipeline: datasets, flows, and which columns come from which, with the rows of the last run.\n\n\
             The HTML page stands alone: it opens from a disk and asks nobody for anything. Without --format the ending of --out decides.",
        )
        .after_help(
            "Examples:\n  \
             tributary graph -p pipeline.yml\n  \
             tributary graph --pipeline retail --out graph.html\n  \
             tributary graph --format dot | dot -Tsvg > graph.svg",
        )
        .args([variable(), conf(), out("Write it to this file")])
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(crate::graph::FORMATS)
                .help("text, dot for Graphviz, mermaid for Markdown, or an HTML page [default: by the ending of --out, else text]"),
        )
        .args(arguments(Program::Graph))
}

fn out(help: &'static str) -> Arg {
    Arg::new("out").long("out").value_name("FILE").value_parser(value_parser!(std::path::PathBuf)).help(help)
}

fn setup() -> Command {
    Command::new("setup")
        .about("Create the tables of a pipeline; of those that exist, list each difference by column")
        .long_about(
            "Create the tables of a pipeline; of those that exist, list each difference by column (exit 2).\n\n\
             Nothing is changed or dropped. A table whose columns only its first rows can tell is left to its first run.",
        )
        .after_help("Examples:\n  tributary setup -p pipeline.yml -w data/lake\n  tributary setup --layer silver --output json")
        .args([variable(), conf()])
        .args(arguments(Program::Setup))
}

fn ddl() -> Command {
    Command::new("ddl")
        .about("Print a table's CREATE TABLE statement, every name back-quoted")
        .after_help("Examples:\n  tributary ddl silver.orders\n  tributary ddl bronze.orders -w data/lake > orders.sql")
        .arg(Arg::new("table").value_name("TABLE").required(true).help("schema.table"))
        .args([variable(), conf()])
        .args(arguments(Program::Ddl))
}

fn validate() -> Command {
    Command::new("validate")
        .about("Check a pipeline and say what it would do; touches nothing")
        .long_about(
            "Check a pipeline and say what it would do; touches nothing.\n\n\
             Queries, rules and conditions are planned over the columns that the feeds declare, and every mistake is printed with its \
             file and line (exit 2). What reads a feed without declared columns, or a column that messages may bring undeclared, is \
             planned by its first run: a note says so.\n\n\
             Of a bundle every file, reference, job and pipeline is checked, offline; the last line says how much was checked and how \
             many errors there are.",
        )
        .after_help(
            "Examples:\n  \
             tributary validate                                 the bundle of this folder or of one around it\n  \
             tributary validate --target prod --output json\n  \
             tributary validate dlt_pipelines/retail            SQL files alone\n  \
             tributary validate --portability                   what Databricks or Spark would not take, or take otherwise\n  \
             tributary validate -p pipeline.yml",
        )
        .arg(paths("A bundle's folder, or SQL files and folders of them; default: the bundle found from here upward"))
        .args([variable(), conf()])
        .arg(
            Arg::new("portability")
                .long("portability")
                .action(ArgAction::SetTrue)
                .help("Also list each construct that does not exist, or means something else, on Databricks or in Spark 4.3's pipelines"),
        )
        .args(arguments(Program::Validate))
}

fn paths(help: &'static str) -> Arg {
    Arg::new("path").value_name("PATH").num_args(0..).value_parser(value_parser!(std::path::PathBuf)).help(help)
}

fn init() -> Command {
    Command::new("init")
        .about("Write a bundle to begin with: a template, or what the first records of a file or topic propose")
        .long_about(
            "Write a bundle to begin with: a template, or what the first records of a file or topic propose.\n\n\
             From records, feeds get the types that hold what is there, and comments say what these cannot tell; each feed gets a silver \
             table. No file is written over another: those in the way are named, and nothing is written.",
        )
        .after_help(
            "Examples:\n  \
             tributary init shop --template retail\n  \
             tributary init shop --from-file drops/orders.csv\n  \
             tributary init shop --from-topic shop.public.orders --kafka-bootstrap localhost:9092",
        )
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .required(true)
                .value_parser(value_parser!(std::path::PathBuf))
                .help("Where the bundle is written; made where it is not there"),
        )
        .arg(
            Arg::new("template")
                .long("template")
                .value_name("NAME")
                .value_parser(crate::init::NAMES)
                .conflicts_with_all(["from_file", "from_topic"])
                .help("What it begins with [default: empty]"),
        )
        .args(samples())
        .args(arguments(Program::Init))
}

fn test() -> Command {
    Command::new("test")
        .about("Run the tests of datasets: rows that sources have, and rows that a dataset then has")
        .long_about(
            "Run the tests of datasets, without a warehouse: each in a lake in memory.\n\n\
             A file of tests ends in .yml, lies in a folder called `tests` beside the SQL, and is about one silver or gold table:\n\n  \
             dataset: silver.orders\n  \
             tests:\n    \
             - name: the latest change wins\n      \
             given:\n        \
             bronze.orders:\n          \
             - {order_id: 1, status: new}\n          \
             - {order_id: 1, status: paid}\n      \
             expect:\n        \
             - {order_id: 1, status: paid}\n\n\
             Columns that no expected row names are not looked at. Rows may be in a CSV or JSON lines file that is named instead; `then` is \
             a list of further runs; `fails` is the code of the error that a run ends with. Exits 0 when every test passes, 1 when one \
             does not, 2 when a test is wrong or there is none.",
        )
        .after_help(
            "Examples:\n  \
             tributary test                                     every test of the bundle of this folder or of one around it\n  \
             tributary test dlt_pipelines/retail\n  \
             tributary test dlt_pipelines/retail/tests/silver_orders.yml --output json",
        )
        .arg(paths("Files of tests, and folders in which they are looked for; default: the bundle found from here upward"))
        .args([variable(), conf()])
        .args(arguments(Program::Test))
}

fn doctor() -> Command {
    Command::new("doctor")
        .about("Look at everything a run needs before the first one, a line each with the next command")
        .long_about(
            "Look at everything a run needs, a line each: settings and where they come from, the pipeline, whether the warehouse \
             lets objects be created, read, listed and deleted and refuses a second creation, the catalogue, the clock, room for \
             what spills, and of every feed whether its source is there and can be read.\n\n\
             Exits 0 when all is well and 2 when anything failed. It writes one object into the warehouse and deletes it.",
        )
        .after_help("Examples:\n  tributary doctor -p pipeline.yml -w data/lake\n  tributary doctor --output json")
        .args([variable(), conf()])
        .args(arguments(Program::Doctor))
}

fn limit(default: &'static str) -> Arg {
    Arg::new("limit")
        .long("limit")
        .short('n')
        .value_name("N")
        .default_value(default)
        .value_parser(value_parser!(u64))
        .help("Most rows that are printed")
}

fn show() -> Command {
    let table = || Arg::new("table").value_name("TABLE").required(true).help("schema.table");
    Command::new("show")
        .about("Show tables, their history and rows, and past runs")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("tables")
                .about("Every table: rows, files, bytes, version, and how far it is behind its source in the source's own time")
                .after_help("Examples:\n  tributary show tables\n  tributary show tables --output csv > tables.csv")
                .args(arguments(Program::Show)),
        )
        .subcommand(
            Command::new("history")
                .about("The commits of a table, newest first")
                .after_help("Examples:\n  tributary show history silver.orders\n  tributary show history silver.orders -n 3 -o json")
                .arg(table())
                .arg(limit("20"))
                .args(arguments(Program::Show)),
        )
        .subcommand(
            Command::new("sample")
                .about("Some rows of a table, of its latest version or an earlier one")
                .after_help(
                    "Examples:\n  tributary show sample silver.orders\n  tributary show sample silver.orders --version 3\n  \
                     tributary show sample silver.orders --timestamp '2024-05-01 12:00:00'",
                )
                .arg(table())
                .arg(limit("10"))
                .arg(Arg::new("version").long("version").value_name("N").value_parser(value_parser!(u64)).help("Its rows in this version"))
                .arg(
                    Arg::new("timestamp")
                        .long("timestamp")
                        .value_name("INSTANT")
                        .conflicts_with("version")
                        .help("Its rows at this instant; without a zone in UTC"),
                )
                .args(arguments(Program::Show)),
        )
        .subcommand(
            Command::new("lineage")
                .about("Where the rows of tables come from, as the last runs kept it; of one table column by column")
                .after_help("Examples:\n  tributary show lineage\n  tributary show lineage gold.revenue -o json")
                .arg(Arg::new("table").value_name("TABLE").help("schema.table"))
                .args(arguments(Program::Show)),
        )
        .subcommand(
            Command::new("runs")
                .about("Past runs, newest first: a row a dataset that committed, failed or was skipped")
                .after_help("Examples:\n  tributary show runs\n  tributary show runs -n 100 -o json")
                .arg(limit("20"))
                .args(arguments(Program::Show)),
        )
}

fn quarantine() -> Command {
    Command::new("quarantine")
        .about("Show what could not become rows, and why; make rows of what can by now")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("Records in quarantine by table and reason")
                .after_help("Examples:\n  tributary quarantine list\n  tributary quarantine list -o json")
                .args(arguments(Program::Quarantine)),
        )
        .subcommand(
            Command::new("show")
                .about("Records of one quarantine table")
                .after_help(
                    "Examples:\n  tributary quarantine show shop_orders\n  tributary quarantine show shop_orders --reason broken_json -n 3",
                )
                .arg(Arg::new("name").value_name("NAME").required(true).help("The feed or table whose quarantine it is"))
                .arg(Arg::new("reason").long("reason").value_name("REASON").help("Only records with this reason"))
                .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Also records that have become rows since"))
                .arg(limit("20"))
                .args(arguments(Program::Quarantine)),
        )
        .subcommand(requeue())
}

fn requeue() -> Command {
    Command::new("requeue")
        .about("Decode a feed's records in quarantine again, as the feed is declared now, and make rows of those that decode")
        .long_about(
            "Decode a feed's records in quarantine again, as the feed is declared now.\n\n\
             Those that decode become rows of its table at the positions and offsets they came with, each once, and are marked in \
             quarantine; the others stay. Where the declaration has wider types than the table and the feed's schema_policy is \
             widen, the table is rewritten first. Silver takes the rows in at its next run.",
        )
        .after_help(
            "Examples:\n  tributary quarantine requeue shop_orders --dry-run\n  \
             tributary quarantine requeue shop_orders --reason wrong_type",
        )
        .arg(Arg::new("feed").value_name("FEED").required(true).help("The feed, or its table"))
        .arg(Arg::new("reason").long("reason").value_name("REASON").help("Only records with this reason"))
        .arg(Arg::new("dry_run").long("dry-run").action(ArgAction::SetTrue).help("Say what would become rows and write nothing"))
        .args([variable(), conf(), accept_unprotected()])
        .args(arguments(Program::Requeue))
}

/// Where first records come from, and how many are looked at.
fn samples() -> [Arg; 4] {
    [
        Arg::new("from_file")
            .long("from-file")
            .value_name("FILE")
            .value_parser(value_parser!(std::path::PathBuf))
            .conflicts_with("from_topic")
            .help("A file of records, gzipped or not"),
        Arg::new("format")
            .long("format")
            .value_name("FORMAT")
            .value_parser(["csv", "jsonl", "kafka_jsonl"])
            .conflicts_with("from_topic")
            .help("How the file is cut into records [default: by its name and first line]"),
        Arg::new("from_topic").long("from-topic").value_name("TOPIC").help("A topic of the cluster at --kafka-bootstrap"),
        Arg::new("records")
            .long("records")
            .short('n')
            .value_name("COUNT")
            .default_value("1000")
            .value_parser(value_parser!(u32).range(1..))
            .help("How many records are looked at"),
    ]
}

fn schema() -> Command {
    Command::new("schema")
        .about("Propose how a source's records are declared")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("infer")
                .about("Propose a feed from the first records of a file or topic, as an item of a pipeline's `feeds:`")
                .long_about(
                    "Propose a feed from the first records of a file or topic, as an item of a pipeline's `feeds:`.\n\n\
                     Messages that bring or name their schema tell their columns. Of bare JSON each column is proposed in the type that holds \
                     the values as they came, and a comment says what these cannot tell: the scale of a decimal, the unit of a time, \
                     whether text is bytes, whether a number is unsigned. Nothing is guessed and nothing written.",
                )
                .after_help(
                    "Examples:\n  tributary schema infer --from-file drops/orders.csv\n  \
                     tributary schema infer --from-file capture.jsonl.gz >> pipeline.yml\n  \
                     tributary schema infer --from-topic shop.public.orders --kafka-bootstrap localhost:9092",
                )
                .args(samples())
                .group(ArgGroup::new("samples").args(["from_file", "from_topic"]).required(true))
                .args(arguments(Program::Infer)),
        )
}

fn sql() -> Command {
    let several = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value).action(ArgAction::Append);
    Command::new("sql")
        .about("Run SQL over the lake: queries, CREATE, INSERT, MERGE, GRANT, SHOW, DESCRIBE, pipelines; a prompt without any")
        .long_about(
            "Run SQL over the lake, in the Databricks dialect: one text, files, the standard input, or a prompt with a history.\n\n\
             Tables are schema.table or catalogue.schema.table, in any case. Earlier versions: FROM t VERSION AS OF 3, \
             FROM t TIMESTAMP AS OF '2024-05-01'. Changes: FROM table_changes('silver.orders', 1, 3). What would mean something \
             else here than in the dialect is refused by name.\n\n\
             CREATE CATALOG, SCHEMA, TABLE and FUNCTION, INSERT, UPDATE, DELETE, MERGE INTO, GRANT, REVOKE, SHOW, DESCRIBE, USE and \
             information_schema are there; docs/reference/statements.md has all. Streaming tables, materialized views and flows that \
             follow each other run as one pipeline. All statements are read before the first is executed; the first that fails ends it.",
        )
        .after_help(
            "Examples:\n  \
             tributary sql \"select status, count(*) from silver.orders group by status\"\n  \
             tributary sql \"select * from silver.orders version as of 1\" -o csv\n  \
             tributary sql \"select * from table_changes('silver.orders', 0)\"\n  \
             tributary sql -f setup.sql -f grants.sql\n  \
             tributary sql \"GRANT SELECT ON TABLE gold.revenue TO \\`analysts\\`\"\n  \
             tributary sql --destroy bronze.scratch \"DROP TABLE bronze.scratch\"\n  \
             echo \"select 1\" | tributary sql -",
        )
        .arg(Arg::new("text").value_name("SQL").help("Statements; - reads the standard input; nothing opens a prompt"))
        .arg(
            several("file", "FILE")
                .short('f')
                .value_parser(value_parser!(std::path::PathBuf))
                .help("A file of statements; may be repeated, executed in order before SQL"),
        )
        .arg(several("destroy", "TABLE").help("A table that DROP TABLE may take away with its history; may be repeated"))
        .arg(
            accept_unprotected()
                .help("Record masks and row filters, which this release does not enforce, and run pipelines that have them"),
        )
        .arg(
            Arg::new("user")
                .long("user")
                .value_name("NAME")
                .help("Who types: current_user(), and who granted and created [default: the login]"),
        )
        .arg(several("group", "NAME").help("A group they are of, for is_account_group_member; may be repeated"))
        .args(arguments(Program::Sql))
}

fn diff() -> Command {
    let point = |name: &'static str, value: &'static str| {
        Arg::new(name).value_name(value).required(true).help("A version, such as 12, or an instant, such as '2024-05-01 12:00:00' (UTC)")
    };
    Command::new("diff")
        .about("Compare two versions of a table: rows added, removed, changed by key")
        .long_about(
            "Compare two versions of a table: rows added, removed and changed by key, how many and some of them.\n\n\
             Keys are those that the table was made with, or --key; without any whole rows are compared. Only files that are not in both \
             versions are read.",
        )
        .after_help(
            "Examples:\n  tributary diff silver.orders 3 5\n  tributary diff silver.orders '2024-05-01' '2024-05-02' --key order_id -n 3\n  \
             tributary diff gold.revenue v1 v2 -o json",
        )
        .arg(Arg::new("table").value_name("TABLE").required(true).help("schema.table"))
        .args([point("from", "FROM"), point("to", "TO")])
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("COLUMN")
                .action(ArgAction::Append)
                .value_delimiter(',')
                .help("A column that tells rows apart; may be repeated"),
        )
        .arg(limit("10"))
        .args(arguments(Program::Show))
}

/// Maintenance of tables, called so.
fn maintain(name: &'static str) -> Command {
    let command = if name == "maintain" { "tributary maintain" } else { name };
    let tables =
        || Arg::new("tables").value_name("TABLE").num_args(0..).help("schema.table, in any case; all of the lake where none is named");
    let dry_run = || {
        Arg::new("dry_run")
            .long("dry-run")
            .action(ArgAction::SetTrue)
            .help("Say what would be done, with files and bytes, and write nothing")
    };
    let verb = |name: &'static str, about: &'static str, example: &'static str| {
        Command::new(name)
            .about(about)
            .after_help(format!("Examples:\n  {command} {example}"))
            .args([tables(), dry_run()])
            .args(arguments(Program::Maintain))
    };
    let by = Arg::new("by").long("by").value_name("COLUMN").required(true).action(ArgAction::Append).value_delimiter(',');
    Command::new(name)
        .about("Write files of tables anew, so that reading stays cheap, without changing a row")
        .long_about(
            "Write files of tables anew, so that reading stays cheap, without changing a row.\n\n\
             With --auto each table's own state decides: small files become few, rows marked as deleted go, what is new in a clustered table is \
             sorted along its clustering columns, a log without a checkpoint gets one. Files and bytes are said before and after. It \
             is safe beside running writers, to repeat and to kill: a group of files is lost at most. A second time there is nothing \
             to do. Exits 4 when part of the work is left, because somebody is changing rows or the time is over.",
        )
        .after_help(format!(
            "Examples:\n  \
             {command} --auto --dry-run\n  \
             {command} --auto --time-limit '30 minutes' --report maintenance.json\n  \
             {command} optimize silver.orders\n  \
             {command} zorder gold.daily_revenue --by day,customer_id"
        ))
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .arg(
            Arg::new("auto")
                .long("auto")
                .action(ArgAction::SetTrue)
                .required(true)
                .help("Do what the tables' own state asks for"),
        )
        .args([tables(), dry_run()])
        .args(arguments(Program::Maintain))
        .subcommands([
            verb("optimize", "Make few files of small ones, without the rows that are marked as deleted", "optimize silver.orders --dry-run"),
            verb("cluster", "Sort files of clustered tables that are not yet sorted by their clustering columns", "cluster silver.orders"),
            verb("zorder", "Sort files along a Z-order curve through some columns", "zorder gold.daily_revenue --by day,customer_id")
                .arg(by.help("A column; may be repeated or separated by commas")),
            verb("reorg", "Write every file anew that has rows marked as deleted, or columns that the table no longer has", "reorg silver.orders"),
            verb("checkpoint", "Write a checkpoint of the log where there is none of the latest version", "checkpoint bronze.orders"),
        ])
        .subcommands(crate::upkeep::verbs(command))
}

fn demo() -> Command {
    let path = |name: &'static str, value: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(std::path::PathBuf))
    };
    Command::new("demo")
        .about("Run recorded changes of real databases through a fresh lake and compare silver with their true final state")
        .after_help(
            "Examples:\n  tributary demo\n  \
             tributary demo --events capture.jsonl --expected capture.expected.json\n  \
             tributary demo --gym --users 200                   sample files of the gym pipeline, every table compared\n\n\
             Exits 0 only when every table equals its source, else 1 with key, column and both values.",
        )
        .arg(path("events", "FILE").help("A capture (JSON lines, gzipped or not) instead of the retail one").requires("expected"))
        .arg(path("expected", "FILE").help("The final state that belongs to the capture").requires("events"))
        .arg(
            path("feeds", "FILE")
                .action(ArgAction::Append)
                .help("Pipeline file for the capture instead of the derived one")
                .requires("events"),
        )
        .arg(
            Arg::new("known_losses")
                .long("known-loss")
                .value_name("TABLE.COLUMN")
                .action(ArgAction::Append)
                .help("A column that the source's own settings lose: counted, not held against the lake; the table as the source or as silver calls it, the column `(row)` for rows that only the lake has"),
        )
        .arg(path("folder", "FOLDER").help("Where the demo's folder is made [default: data]"))
        .arg(
            Arg::new("gym")
                .long("gym")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["events", "expected", "feeds", "known_losses"])
                .help("Sample files of the gym pipeline instead of recorded changes, every table compared with what they tell"),
        )
        .args(size_of_sample().map(|arg| arg.requires("gym")))
}

fn sample() -> Command {
    let gym = Command::new("gym")
        .about("Write input files of the gym pipeline: registrations, visits, profiles, workouts, heart rates, days")
        .long_about(
            "Write input files of the gym pipeline: registrations, visits, profiles, workouts, heart rates, days.\n\n\
             The same options give the same bytes. No file is written over another.",
        )
        .after_help(
            "Examples:\n  tributary sample gym\n  \
             tributary sample gym drops --users 1000 --days 30 --heart-rate-seconds 1800 --files 5",
        )
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .value_parser(value_parser!(std::path::PathBuf))
                .help("Where the files are written; made where it is not there [default: data/raw]"),
        )
        .args(size_of_sample());
    Command::new("sample")
        .about("Write sample input files for a template, of any size, from a seed")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(gym)
}

/// How many of everything sample files have.
fn size_of_sample() -> [Arg; 6] {
    let usual = GymOptions::default();
    let number = |name: &'static str, long: &'static str, least: i64, help: String| {
        Arg::new(name).long(long).value_name("N").value_parser(value_parser!(u32).range(least..)).help(help)
    };
    let seconds = usual.heart_rate_seconds;
    [
        Arg::new("seed")
            .long("seed")
            .value_name("N")
            .value_parser(value_parser!(u64))
            .help(format!("Another seed [default: {}]", usual.seed)),
        number("users", "users", 1, format!("People registered [default: {}]", usual.users)),
        number("days", "days", 1, format!("Days on which they exercise [default: {}]", usual.days)),
        number("heart_rate_seconds", "heart-rate-seconds", 0, format!("Seconds of heart rates a workout [default: {seconds}]")),
        number("files", "files", 1, format!("Files of each kind [default: {}]", usual.files)),
        Arg::new("first_day")
            .long("first-day")
            .value_name("DAY")
            .value_parser(value_parser!(chrono::NaiveDate))
            .help(format!("The first day [default: {}]", usual.first_day)),
    ]
}

fn completions() -> Command {
    Command::new("completions")
        .about("Print a completion script for a shell")
        .after_help("Examples:\n  tributary completions bash > /etc/bash_completion.d/tributary\n  source <(tributary completions zsh)")
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(clap_complete::Shell)).help("The shell"))
}

fn help() -> Command {
    Command::new("help")
        .about("Print the page of an error code, or the help of a command")
        .after_help("Examples:\n  tributary help LK0003\n  tributary help run\n  tributary help codes")
        .arg(Arg::new("topic").value_name("CODE|COMMAND").help("An error code such as LK0003, `codes` for all of them, or a command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_line_is_sound() {
        umbrella().debug_assert();
        maintenance().debug_assert();
        for program in [Program::Bronze, Program::Silver, Program::Gold] {
            layer(program).debug_assert();
        }
    }

    #[test]
    fn every_command_shows_examples() {
        let mut commands = vec![umbrella(), maintenance()];
        while let Some(command) = commands.pop() {
            let subcommands: Vec<Command> = command.get_subcommands().cloned().collect();
            if subcommands.is_empty() {
                let help = command.clone().render_long_help().to_string();
                assert!(help.contains("Examples:"), "{} shows none", command.get_name());
            }
            commands.extend(subcommands);
        }
    }
}
