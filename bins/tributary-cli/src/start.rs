//! From the process' inputs to an exit code.

use std::io::Write as _;

use clap::{ArgMatches, Command};
use tributary::ExitCode;
use tributary_config::{Inputs, Loaded, Program, Refusal, load, load_beside_bundle, normalise};

use crate::bundle::Given;
use crate::failure::{Error, Failure, Outcome};
use crate::logging::{self, Voice};
use crate::{
    command, completions, ddl, demo, diff, doctor, explain, graph, infer, init, job, maintain, next, page, plan, quarantine, run, sample,
    setup, show, sql, test, upkeep, validate,
};

/// Runs the umbrella and tells what the shell shall see.
pub fn umbrella(inputs: &Inputs) -> u8 {
    with_matches(command::umbrella(), inputs, |matches| match matches.subcommand() {
        Some(("completions", matches)) => completions::print(matches),
        Some(("help", matches)) => page::print(matches),
        Some(("demo", matches)) => demonstrate(matches),
        Some(("sample", matches)) => nested(matches, |_, matches| sample::sample(matches)),
        Some(("run", matches)) => beside_bundle(Program::Run, matches, inputs, |loaded, given| run::run(loaded, matches, given)),
        Some(("plan", matches)) => looking(Program::Plan, matches, inputs, |loaded, given| plan::plan(loaded, matches, given)),
        Some(("graph", matches)) => looking(Program::Graph, matches, inputs, |loaded, given| graph::graph(loaded, matches, given)),
        Some(("explain", matches)) => looking(Program::Explain, matches, inputs, |loaded, given| explain::explain(loaded, matches, given)),
        Some(("job", matches)) => {
            nested(matches, |_, matches| beside_bundle(Program::Job, matches, inputs, |loaded, given| job::run(loaded, matches, given)))
        }
        Some(("setup", matches)) => looking(Program::Setup, matches, inputs, setup::setup),
        Some(("ddl", matches)) => looking(Program::Ddl, matches, inputs, |loaded, given| ddl::ddl(loaded, matches, given)),
        Some(("init", matches)) => with_settings(Program::Init, matches, inputs, |loaded| init::init(loaded, matches)),
        Some(("test", matches)) => beside_bundle(Program::Test, matches, inputs, test::test),
        Some(("doctor", matches)) => looking(Program::Doctor, matches, inputs, |loaded, given| doctor::doctor(loaded, matches, given)),
        Some(("validate", matches)) => beside_bundle(Program::Validate, matches, inputs, validate::validate),
        Some(("show", matches)) => {
            nested(matches, |name, matches| with_settings(Program::Show, matches, inputs, |loaded| show::show(name, loaded, matches)))
        }
        Some(("quarantine", matches)) => nested(matches, |name, matches| match name {
            "requeue" => beside_bundle(Program::Requeue, matches, inputs, |loaded, given| quarantine::requeue(loaded, matches, given)),
            _ => with_settings(Program::Quarantine, matches, inputs, |loaded| quarantine::quarantine(name, loaded, matches)),
        }),
        Some(("schema", matches)) => {
            nested(matches, |_, matches| with_settings(Program::Infer, matches, inputs, |loaded| infer::infer(loaded, matches)))
        }
        Some(("maintain", matches)) => maintained(matches, inputs),
        Some(("diff", matches)) => with_settings(Program::Show, matches, inputs, |loaded| diff::diff(loaded, matches)),
        Some(("sql", matches)) => with_settings(Program::Sql, matches, inputs, |loaded| sql::sql(loaded, matches, inputs)),
        _ => Ok(ExitCode::BadInput.code()),
    })
}

/// Runs the binary of one layer.
pub fn layer(program: Program, inputs: &Inputs) -> u8 {
    with_matches(command::layer(program), inputs, |matches| {
        beside_bundle(program, matches, inputs, |loaded, given| run::run(loaded, matches, given))
    })
}

/// Runs the binary of maintenance.
pub fn maintenance(inputs: &Inputs) -> u8 {
    with_matches(command::maintenance(), inputs, |matches| maintained(matches, inputs))
}

fn maintained(matches: &ArgMatches, inputs: &Inputs) -> Outcome {
    let (verb, matches) = matches.subcommand().unwrap_or(("auto", matches));
    with_settings(Program::Maintain, matches, inputs, |loaded| match upkeep::is_verb(verb) {
        true => upkeep::upkeep(verb, loaded, matches),
        false => maintain::maintain(verb, loaded, matches),
    })
}

fn with_matches(command: Command, inputs: &Inputs, act: impl FnOnce(&ArgMatches) -> Outcome) -> u8 {
    match command.try_get_matches_from(normalise(&inputs.arguments)) {
        Ok(matches) => act(&matches).unwrap_or_else(|failure| {
            eprint!("{}", failure.text());
            failure.exit_code.code()
        }),
        Err(error) => {
            // help and version go to the standard output and are no failure
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(ExitCode::BadInput.code())
        }
    }
}

fn nested(matches: &ArgMatches, act: impl FnOnce(&str, &ArgMatches) -> Outcome) -> Outcome {
    match matches.subcommand() {
        Some((name, matches)) => act(name, matches),
        None => Ok(ExitCode::BadInput.code()),
    }
}

/// As [`with_settings`] for a command that knows bundles: a target may be the bundle's.
fn beside_bundle(program: Program, matches: &ArgMatches, inputs: &Inputs, act: impl FnOnce(&Loaded, &Given) -> Outcome) -> Outcome {
    let given = Given::of(matches, inputs);
    let load = if given.is_of_bundle(program) { load_beside_bundle } else { load };
    with_loaded(program, matches, load(program, matches, inputs), |loaded| act(loaded, &given))
}

/// As [`beside_bundle`] for a command that shows no rows: masks and row filters that are not enforced are no reason to stop it.
fn looking(program: Program, matches: &ArgMatches, inputs: &Inputs, act: impl FnOnce(&Loaded, &Given) -> Outcome) -> Outcome {
    beside_bundle(program, matches, inputs, |loaded, given| act(loaded, &given.showing_no_rows()))
}

/// Resolves the settings, says their warnings, and acts unless only the settings were asked for.
fn with_settings(program: Program, matches: &ArgMatches, inputs: &Inputs, act: impl FnOnce(&Loaded) -> Outcome) -> Outcome {
    with_loaded(program, matches, load(program, matches, inputs), act)
}

fn with_loaded(program: Program, matches: &ArgMatches, loaded: Result<Loaded, Refusal>, act: impl FnOnce(&Loaded) -> Outcome) -> Outcome {
    let loaded = loaded.map_err(|refusal| refused(&refusal))?;
    let voice = Voice::of(&loaded.settings);
    for warning in &loaded.warnings {
        match voice {
            Voice::Json => eprintln!("{}", serde_json::json!({ "event": "warning", "message": warning.to_string() })),
            Voice::Bars | Voice::Text => eprintln!("warning: {warning}"),
        }
    }
    if loaded.settings.print_config {
        return print(&loaded.print_config());
    }
    logging::install(&loaded.settings)?;
    let placed = |next: &str| next::at_the_same_places(next, &next::Places::of(matches));
    let outcome = act(&loaded).map_err(|failure| Failure { next: failure.next.as_deref().map(placed), ..failure });
    match outcome {
        Err(failure) if voice == Voice::Json && program.moves_data() => {
            eprintln!("{}", failure.json());
            Ok(failure.exit_code.code())
        }
        outcome => outcome,
    }
}

/// All problems of the settings as one failure, a line each with its code.
fn refused(refusal: &Refusal) -> Failure {
    Failure::of_all(refusal.errors().iter().map(|error| {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Failure {
            exit_code: ExitCode::BadInput,
            code: tributary::Fault::code(error).to_string(),
            message: format!("{error}{cause}"),
            next: tributary::Fault::next_command(error),
        }
    }))
}

/// Prints on the standard output.
pub fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        // whoever read the output has seen enough
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::Done.code()),
        Err(source) => Err(Error::Io { action: "writing to the standard output".to_owned(), source }.into()),
        Ok(()) => Ok(ExitCode::Done.code()),
    }
}

/// Bytes of stack of each thread, as the first one has: queries are planned in any of them. Only what is used is taken.
const STACK: usize = 8 << 20;

/// Runs `work` on a runtime of its own.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build();
    let runtime = runtime.map_err(|source| Error::Io { action: "starting threads".to_owned(), source })?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

fn demonstrate(matches: &ArgMatches) -> Outcome {
    let path = |name: &str| matches.get_one::<std::path::PathBuf>(name).cloned();
    let args = demo::DemoArgs {
        events: path("events"),
        expected: path("expected"),
        feeds: matches.get_many("feeds").into_iter().flatten().cloned().collect(),
        known_losses: matches.get_many("known_losses").into_iter().flatten().cloned().collect(),
        folder: path("folder"),
    };
    block_on(async {
        let done = match matches.get_flag("gym") {
            true => demo::demo_gym(sample::options(matches), args.folder.as_deref(), &mut std::io::stdout()).await,
            false => demo::demo(&args, &mut std::io::stdout()).await,
        };
        done.map(ExitCode::code).map_err(|reason| Error::Demo { reason }.into())
    })
}
