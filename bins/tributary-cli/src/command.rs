//! The command lines: what `--help` says.

use clap::{Arg, ArgAction, Command, value_parser};
use tributary_config::{Program, arguments};

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
        .subcommands([run(), setup(), ddl(), validate(), doctor(), show(), quarantine(), schema(), sql(), demo(), completions(), help()])
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
             tributary run --target dev --pipeline retail       a pipeline of the bundle of this folder or of one around it",
        )
        .arg(variable())
        .arg(
            Arg::new("accept-unprotected")
                .long("accept-unprotected")
                .action(ArgAction::SetTrue)
                .help("Run a pipeline with masks or row filters, which this release does not enforce"),
        )
        .args(arguments(Program::Run))
}

/// A value for a variable of the bundle.
fn variable() -> Arg {
    Arg::new("var")
        .long("var")
        .value_name("NAME=VALUE")
        .action(ArgAction::Append)
        .value_parser(|text: &str| match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err("expected NAME=VALUE"),
        })
        .help("Value of a variable of the bundle; may be repeated")
}

fn setup() -> Command {
    Command::new("setup")
        .about("Create the tables of a pipeline; of those that exist, list each difference by column")
        .long_about(
            "Create the tables of a pipeline; of those that exist, list each difference by column (exit 2).\n\n\
             Nothing is changed or dropped. A table whose columns only its first rows can tell is left to its first run.",
        )
        .after_help("Examples:\n  tributary setup -p pipeline.yml -w data/lake\n  tributary setup --layer silver --output json")
        .args(arguments(Program::Setup))
}

fn ddl() -> Command {
    Command::new("ddl")
        .about("Print a table's CREATE TABLE statement, every name back-quoted")
        .after_help("Examples:\n  tributary ddl silver.orders\n  tributary ddl bronze.orders -w data/lake > orders.sql")
        .arg(Arg::new("table").value_name("TABLE").required(true).help("schema.table"))
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
             tributary validate -p pipeline.yml",
        )
        .arg(
            Arg::new("path")
                .value_name("PATH")
                .num_args(0..)
                .value_parser(value_parser!(std::path::PathBuf))
                .help("A bundle's folder, or SQL files and folders of them; default: the bundle found from here upward"),
        )
        .arg(variable())
        .args(arguments(Program::Validate))
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
        .args(arguments(Program::Doctor))
}

fn show() -> Command {
    let table = || Arg::new("table").value_name("TABLE").required(true).help("schema.table");
    let limit = |default: &'static str| {
        Arg::new("limit")
            .long("limit")
            .short('n')
            .value_name("N")
            .default_value(default)
            .value_parser(value_parser!(u64))
            .help("Most rows that are printed")
    };
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
                .arg(
                    Arg::new("limit")
                        .long("limit")
                        .short('n')
                        .value_name("N")
                        .default_value("20")
                        .value_parser(value_parser!(u64))
                        .help("Most rows that are printed"),
                )
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
        .args(arguments(Program::Requeue))
}

fn schema() -> Command {
    let formats = ["csv", "jsonl", "kafka_jsonl"];
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
                .arg(
                    Arg::new("from_file")
                        .long("from-file")
                        .value_name("FILE")
                        .value_parser(value_parser!(std::path::PathBuf))
                        .required_unless_present("from_topic")
                        .conflicts_with("from_topic")
                        .help("A file of records, gzipped or not"),
                )
                .arg(
                    Arg::new("format")
                        .long("format")
                        .value_name("FORMAT")
                        .value_parser(formats)
                        .conflicts_with("from_topic")
                        .help("How the file is cut into records [default: by its name and first line]"),
                )
                .arg(Arg::new("from_topic").long("from-topic").value_name("TOPIC").help("A topic of the cluster at --kafka-bootstrap"))
                .arg(
                    Arg::new("records")
                        .long("records")
                        .short('n')
                        .value_name("COUNT")
                        .default_value("1000")
                        .value_parser(value_parser!(u32).range(1..))
                        .help("How many records are looked at"),
                )
                .args(arguments(Program::Infer)),
        )
}

fn sql() -> Command {
    Command::new("sql")
        .about("Run one SQL query over the lake")
        .long_about(
            "Run one SQL query over the lake, in the Databricks dialect.\n\n\
             Tables are schema.table or catalogue.schema.table, in any case. Earlier versions: FROM t VERSION AS OF 3, \
             FROM t TIMESTAMP AS OF '2024-05-01'. Changes: FROM table_changes('silver.orders', 1, 3). What would mean something \
             else here than in the dialect is refused by name.",
        )
        .after_help(
            "Examples:\n  \
             tributary sql \"select status, count(*) from silver.orders group by status\"\n  \
             tributary sql \"select * from silver.orders version as of 1\" -o csv\n  \
             tributary sql \"select * from table_changes('silver.orders', 0)\"\n  \
             echo \"select 1\" | tributary sql -",
        )
        .arg(Arg::new("text").value_name("SQL").required(true).help("The query; - reads it from the standard input"))
        .args(arguments(Program::Sql))
}

fn demo() -> Command {
    let path = |name: &'static str, value: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(std::path::PathBuf))
    };
    Command::new("demo")
        .about("Run recorded changes of real databases through a fresh lake and compare silver with their true final state")
        .after_help(
            "Examples:\n  tributary demo\n  \
             tributary demo --events capture.jsonl --expected capture.expected.json\n\n\
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
        for program in [Program::Bronze, Program::Silver, Program::Gold] {
            layer(program).debug_assert();
        }
    }

    #[test]
    fn every_command_shows_examples() {
        let mut commands = vec![umbrella()];
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
