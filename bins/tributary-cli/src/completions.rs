//! `tributary completions SHELL`.

use clap::ArgMatches;

use crate::command;
use crate::failure::Outcome;
use crate::start;

/// Prints the script of a shell.
pub fn print(matches: &ArgMatches) -> Outcome {
    let Some(shell) = matches.get_one::<clap_complete::Shell>("shell") else { return Ok(2) };
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut command::umbrella(), "tributary", &mut script);
    start::print(&String::from_utf8_lossy(&script))
}
