//! A prompt with a history.
//!
//! A statement goes on until its semicolon. Definitions of a pipeline are kept until another statement comes, or an empty line, and
//! are then run as one pipeline: the pieces of a pasted pipeline belong together.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use dialoguer::theme::Theme;
use dialoguer::{History, Input};
use tributary::ExitCode;
use tributary::sql::{Session, steps};
use tributary_config::{Inputs, Output};

use crate::failure::{Error, Failure, Outcome};
use crate::start;

/// Lines of the history that are kept from one prompt to the next.
const LINES_KEPT: usize = 1000;

/// Reads and executes statements until `quit`.
pub(super) fn prompt(session: &mut Session, output: Output, inputs: &Inputs) -> Outcome {
    let file = history_file(inputs);
    let mut lines = file.as_deref().map(Lines::read_from).unwrap_or_default();
    eprintln!("Statements end with a semicolon; quit leaves.");
    let mut typed = Typed::default();
    loop {
        let (catalogue, schema) = session.current();
        let place = schema.map_or_else(|| catalogue.to_owned(), |schema| format!("{catalogue}.{schema}"));
        let mark = if typed.is_empty() { place } else { format!("{:>width$}", "-", width = place.len()) };
        let input = Input::<String>::with_theme(&Plain).with_prompt(mark).allow_empty(true).history_with(&mut lines);
        let line = input.interact_text().map_err(|error| {
            let dialoguer::Error::IO(source) = error;
            Error::Io { action: "reading the terminal".to_owned(), source }
        })?;
        let leave = matches!(line.trim().trim_end_matches(';'), "quit" | "exit");
        let due = if leave { std::mem::take(&mut typed).rest() } else { typed.take(&line) };
        if let Some(text) = due {
            execute(session, &text, output);
        }
        if leave {
            break;
        }
    }
    if let Some(file) = &file
        && let Err(error) = lines.write_to(file)
    {
        eprintln!("warning: the history was not kept in {}: {error}", file.display());
    }
    Ok(ExitCode::Done.code())
}

/// The place and an angle before what is typed.
struct Plain;

impl Theme for Plain {
    fn format_input_prompt(&self, f: &mut dyn std::fmt::Write, prompt: &str, _: Option<&str>) -> std::fmt::Result {
        write!(f, "{prompt}> ")
    }

    fn format_input_prompt_selection(&self, f: &mut dyn std::fmt::Write, prompt: &str, typed: &str) -> std::fmt::Result {
        write!(f, "{prompt}> {typed}")
    }
}

/// What was typed at this prompt and former ones, oldest first.
#[derive(Default)]
struct Lines(VecDeque<String>);

impl Lines {
    /// None before the first time.
    fn read_from(file: &Path) -> Self {
        Self(std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect())
    }

    fn write_to(&self, file: &Path) -> std::io::Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let text: String = self.0.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        std::fs::write(file, text)
    }
}

impl History<String> for Lines {
    fn read(&self, back: usize) -> Option<String> {
        self.0.iter().rev().nth(back).cloned()
    }

    fn write(&mut self, line: &String) {
        if self.0.back() != Some(line) && !line.trim().is_empty() {
            self.0.push_back(line.clone());
        }
        if self.0.len() > LINES_KEPT {
            self.0.pop_front();
        }
    }
}

/// A person at a prompt reads what is wrong and goes on.
fn execute(session: &mut Session, text: &str, output: Output) {
    let done = steps("prompt", text).map_err(Failure::from).and_then(|steps| {
        start::block_on(async {
            for step in steps {
                super::answer(session, step, output).await?;
            }
            Ok(())
        })
    });
    if let Err(failure) = done {
        eprint!("{}", failure.text());
    }
}

/// What has been typed and not been executed.
#[derive(Debug, Default)]
struct Typed {
    text: String,
}

impl Typed {
    fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Takes a line; gives what is to be executed now, if anything.
    fn take(&mut self, line: &str) -> Option<String> {
        let blank = line.trim().is_empty();
        self.text.push_str(line);
        self.text.push('\n');
        // An open quote or comment goes on with the next line.
        let Ok(pieces) = tributary::sql::ends(&self.text) else { return None };
        let whole = pieces.ended && (!pieces.pipeline || blank);
        (whole && !self.is_empty()).then(|| std::mem::take(&mut self.text))
    }

    /// What is left at the end of the input.
    fn rest(self) -> Option<String> {
        (!self.is_empty()).then_some(self.text)
    }
}

/// Where the history is kept: in the person's folder of state.
fn history_file(inputs: &Inputs) -> Option<PathBuf> {
    let of = |name: &str| inputs.variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local").join("state")))?;
    Some(state.join("tributary").join("sql_history"))
}

#[cfg(test)]
mod tests {
    use super::Typed;

    fn executed(lines: &[&str]) -> Vec<String> {
        let mut typed = Typed::default();
        let mut due: Vec<String> = lines.iter().filter_map(|line| typed.take(line)).collect();
        due.extend(typed.rest());
        due
    }

    #[test]
    fn a_statement_goes_on_until_its_semicolon() {
        assert_eq!(executed(&["select 1", "+ 1;", "select ';", "';"]), ["select 1\n+ 1;\n", "select ';\n';\n"]);
        assert_eq!(executed(&["", "-- nothing", "select 1"]).len(), 1);
    }

    #[test]
    fn definitions_of_a_pipeline_wait_for_an_empty_line_or_another_statement() {
        let lines =
            ["CREATE OR REFRESH STREAMING TABLE silver.t;", "APPLY CHANGES INTO silver.t FROM STREAM(b.t) KEYS (id) SEQUENCE BY at;"];
        assert_eq!(executed(&[lines[0], lines[1], ""]).len(), 1);
        assert_eq!(executed(&[lines[0], lines[1], "select 1;"]).len(), 1);
        assert_eq!(executed(&[lines[0], "", lines[1], ""]).len(), 2);
    }
}
