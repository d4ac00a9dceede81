//! What `--help` says of the verbs that delete, bring back and look.

use clap::{Arg, ArgAction, Command, value_parser};
use tributary_config::{Program, arguments};

/// `vacuum`, `clean-log`, `restore`, `fsck`, `readers` of the command that is called so.
pub fn verbs(command: &str) -> Vec<Command> {
    let verb = |name: &'static str, about: &'static str, long: &'static str, examples: &[&str]| {
        let examples: Vec<String> = examples.iter().map(|example| format!("  {command} {name} {example}")).collect();
        Command::new(name)
            .about(about)
            .long_about(format!("{about}.\n\n{long}"))
            .after_help(format!("Examples:\n{}", examples.join("\n")))
            .args(arguments(Program::Maintain))
    };
    vec![
        verb(
            "vacuum",
            "Delete files that no version within the retention, no reader and no writer needs",
            "Files of versions within the retention stay (delta.deletedFileRetentionDuration, else seven days), those that the slowest \
             reader needs, and files in no commit for as long as a write may take. Readers are the tables of the lake, by the \
             positions in their own commits, those that a table's properties declare (tributary.reader.NAME), and --reader.",
            &["--dry-run", "silver.orders", "silver.orders --lite --retain-hours 720"],
        )
        .args([tables(), dry_run(), flag("lite", "Look for files in the log alone: no listing, and no files that no commit names")])
        .args(kept()),
        verb(
            "clean-log",
            "Delete commits and checkpoints that no version within the retention, no reader and no writer needs",
            "Versions within the retention can be opened afterwards (delta.logRetentionDuration, else thirty days); an earlier one is \
             not available. What goes lies before a checkpoint, so that the table opens whatever happens.",
            &["--dry-run", "silver.orders"],
        )
        .args([tables(), dry_run()])
        .args(kept()),
        verb(
            "restore",
            "Bring a table back to an earlier version, by one commit",
            "Rows, schema and properties come back, and the positions that the table's commits hold with them: the next run takes up \
             again what came since. With --positions keep it does not. Nothing happens where files of the version are gone, or where what \
             came since cannot be read again.",
            &["silver.orders --version 12 --dry-run", "silver.orders --timestamp '2024-05-01 12:00:00'"],
        )
        .args([
            table(),
            dry_run(),
            Arg::new("version").long("version").value_name("N").value_parser(value_parser!(u64)).help("To this version"),
            Arg::new("timestamp")
                .long("timestamp")
                .value_name("INSTANT")
                .conflicts_with("version")
                .required_unless_present("version")
                .help("To what it was at this instant; without a zone in UTC"),
            Arg::new("positions")
                .long("positions")
                .value_name("WHAT")
                .value_parser(["back", "keep"])
                .default_value("back")
                .help("What becomes of what the table has consumed since"),
        ]),
        verb(
            "fsck",
            "Look for every file that the log names: missing files, missing deletion vectors, other sizes",
            "Nothing is changed without --repair. A repair takes files whose rows cannot be told any more out of the log: these rows are \
             lost, so it asks for the number of files to be said. Exits 2 when something is wrong.",
            &["", "silver.orders --repair --accept-lost-files 1"],
        )
        .args([
            tables(),
            flag("repair", "Take files whose rows cannot be told any more out of the log"),
            Arg::new("accept_lost_files")
                .long("accept-lost-files")
                .value_name("N")
                .value_parser(value_parser!(u64))
                .requires("repair")
                .help("Lose the rows of exactly so many files"),
        ]),
        verb("readers", "Who reads a table, and up to where", "Vacuum and clean-log keep what the slowest one needs.", &["bronze.orders"])
            .arg(table()),
    ]
}

fn tables() -> Arg {
    Arg::new("tables").value_name("TABLE").num_args(0..).help("schema.table, in any case; all of the lake where none is named")
}

fn table() -> Arg {
    Arg::new("table").value_name("TABLE").required(true).help("schema.table, in any case")
}

fn dry_run() -> Arg {
    flag("dry-run", "Say what would be done, with files and bytes, and change nothing")
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// What stays at any rate.
fn kept() -> [Arg; 5] {
    let hours =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("HOURS").value_parser(value_parser!(u64)).help(help);
    [
        hours("retain-hours", "Keep what versions so recent need, instead of what the table says"),
        hours("longest-write-hours", "How long a write may take: what one may need is kept so long [default: 24]"),
        flag("accept-unsafe-retention", "Let the retention be shorter than the table's own: who reads or writes by an older version fails")
            .visible_alias("force"),
        Arg::new("reader")
            .long("reader")
            .value_name("NAME=NEEDS")
            .action(ArgAction::Append)
            .help("A reader that is no table of the lake, and the version or the time (7 days) that it needs; may be repeated"),
        Arg::new("ignore-reader")
            .long("ignore-reader")
            .value_name("NAME")
            .action(ArgAction::Append)
            .help("Do not wait for this reader, which will have to begin anew; may be repeated"),
    ]
}
