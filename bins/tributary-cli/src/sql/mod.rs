//! `tributary sql`: statements of the command line, of files, of the standard input, or of a prompt.

mod prompt;

use std::io::{ErrorKind, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::ArgMatches;
use futures::StreamExt as _;
use tributary::datafusion::error::DataFusionError;
use tributary::datafusion::prelude::DataFrame;
use tributary::sql::{Answer, Session, SessionOptions, Step, steps};
use tributary::{ExitCode, RunOptions};
use tributary_config::{Inputs, Loaded, Output};

use crate::failure::{Error, Failure, Outcome};
use crate::{opened, output, progress, start};

/// What a text that is no file is called where mistakes of a pipeline are placed.
const UNNAMED: &str = "sql";

/// A text and what it is called in messages; none = it is not a file.
struct Source {
    name: Option<String>,
    text: String,
}

/// Executes what the command line, files, the standard input or a person at a prompt say.
pub fn sql(loaded: &Loaded, matches: &ArgMatches, inputs: &Inputs) -> Outcome {
    let sources = sources(matches)?;
    let read: Vec<(Source, Vec<Step>)> = sources
        .into_iter()
        .map(|source| {
            let name = source.name.as_deref().unwrap_or(UNNAMED);
            let steps = steps(name, &source.text).map_err(|error| placed(source.name.as_deref(), None, error.into()))?;
            Ok((source, steps))
        })
        .collect::<Result<_, Failure>>()?;
    // What only reads makes no lake.
    let only_reads = read.iter().flat_map(|(_, steps)| steps).all(Step::only_reads);
    let lake = if only_reads && !read.is_empty() { opened::existing_lake(&loaded.settings)? } else { opened::lake(&loaded.settings)? };
    let mut session = Session::new(&lake, options(loaded, matches, inputs));
    let output = loaded.settings.output;
    if read.is_empty() {
        return prompt::prompt(&mut session, output, inputs);
    }
    start::block_on(async move {
        for (source, steps) in read {
            for step in steps {
                let place = step.place();
                let answered = answer(&mut session, step, output).await;
                let code = answered.map_err(|failure| placed(source.name.as_deref(), Some(place), failure))?;
                if code != ExitCode::Done.code() {
                    return Ok(code);
                }
            }
        }
        Ok(ExitCode::Done.code())
    })
}

/// Executes one step and prints what it came to.
async fn answer(session: &mut Session, step: Step, output: Output) -> Outcome {
    match session.execute(step).await? {
        Answer::Rows(frame) => print(*frame, output).await,
        Answer::Done(done) => {
            // rows are for programs, words for people
            eprintln!("{done}");
            Ok(ExitCode::Done.code())
        }
        Answer::Ran(report) => {
            for dataset in &report.datasets {
                let error = dataset.error.as_ref().map(|error| format!(": error[{}]: {}", error.code, error.message)).unwrap_or_default();
                eprintln!("{} {}, {} rows in, {} out{error}", dataset.table, dataset.status, dataset.rows_in, dataset.rows_out);
            }
            for line in progress::not_done(&report) {
                eprintln!("{line}");
            }
            Ok(report.exit_code().code())
        }
    }
}

async fn print(frame: DataFrame, output: Output) -> Outcome {
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let rows = frame.execute_stream().await.map_err(failed)?;
    output::stream(output, schema, rows.map(|batch| batch.map_err(failed))).await
}

/// Runs one query and prints its rows.
pub async fn query(lake: &tributary::Lake, text: &str, output: Output) -> Outcome {
    print(tributary::sql::query(lake, text).await?, output).await
}

/// A text as a statement has it: quotes doubled, and a backslash is one only where another stands before it.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', "''"))
}

/// A query that was planned and failed while it ran.
fn failed(error: DataFusionError) -> Failure {
    Failure::from(tributary::sql::Error::run(error))
}

/// A failure with the file it is of, and the line where its statement begins; mistakes of a pipeline know their own places.
fn placed(file: Option<&str>, place: Option<(u64, u64)>, failure: Failure) -> Failure {
    let named = file.unwrap_or(UNNAMED);
    if failure.message.starts_with(&format!("{named}:")) {
        let (first, others) =
            failure.message.split_once('\n').map_or((failure.message.as_str(), None), |(first, rest)| (first, Some(rest)));
        let first = first.strip_suffix(&format!(" ({})", failure.code)).unwrap_or(first);
        let message = others.map_or_else(|| first.to_owned(), |others| format!("{first}\n{others}"));
        return Failure { message, ..failure };
    }
    let message = match (file, place) {
        (Some(file), Some((line, column))) => format!("{file}:{line}:{column}: {}", failure.message),
        (Some(file), None) => format!("{file}: {}", failure.message),
        (None, _) => return failure,
    };
    Failure { message, ..failure }
}

fn sources(matches: &ArgMatches) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for file in matches.get_many::<PathBuf>("file").into_iter().flatten() {
        let read = std::fs::read_to_string(file);
        let text = read.map_err(|source| Error::Input { what: file.display().to_string(), source })?;
        sources.push(Source { name: Some(file.display().to_string()), text });
    }
    match matches.get_one::<String>("text").map(String::as_str) {
        Some("-") => sources.push(Source { name: None, text: standard_input()? }),
        Some(text) => sources.push(Source { name: None, text: text.to_owned() }),
        None if sources.is_empty() && !std::io::stdin().is_terminal() => sources.push(Source { name: None, text: standard_input()? }),
        None => {}
    }
    Ok(sources)
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(|source| match source.kind() {
        ErrorKind::InvalidData => Error::Input { what: "the standard input".to_owned(), source },
        _ => Error::Io { action: "reading the standard input".to_owned(), source },
    })?;
    Ok(text)
}

fn options(loaded: &Loaded, matches: &ArgMatches, inputs: &Inputs) -> SessionOptions {
    let given = |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect::<Vec<_>>();
    SessionOptions {
        user: matches.get_one::<String>("user").map(String::as_str).or(inputs.user()).map(str::to_owned),
        groups: given("group"),
        accept_unprotected: matches.get_flag("accept-unprotected"),
        destroy: given("destroy"),
        run: RunOptions { base_data_path: PathBuf::from(loaded.settings.base_data_path.as_str()), ..RunOptions::default() },
    }
}
