//! `tributary help CODE`: the runbook pages, in the program.

use clap::ArgMatches;

use crate::failure::{Error, Outcome};
use crate::{command, start};

/// Code and page, in the order of the codes.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Prints the page of a code, the help of a command, or what there is.
pub fn print(matches: &ArgMatches) -> Outcome {
    let Some(topic) = matches.get_one::<String>("topic") else { return start::print(&command::umbrella().render_long_help().to_string()) };
    if let Some((_, page)) = PAGES.iter().find(|(code, _)| code.eq_ignore_ascii_case(topic)) {
        return start::print(page);
    }
    if topic.eq_ignore_ascii_case("codes") {
        return start::print(&codes());
    }
    let mut umbrella = command::umbrella();
    // gives each command its full name
    umbrella.build();
    if let Some(command) = umbrella.find_subcommand_mut(topic) {
        return start::print(&command.render_long_help().to_string());
    }
    let commands: Vec<String> = umbrella.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let known = PAGES.iter().map(|(code, _)| *code).chain(commands.iter().map(String::as_str));
    let nearest = tributary_config::nearest(topic, known).map(str::to_owned);
    Err(Error::NoPage { topic: topic.clone(), nearest }.into())
}

/// Each code with the first line of its page.
fn codes() -> String {
    PAGES
        .iter()
        .map(|(code, page)| {
            let title = page.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("{code}  {}\n", title.trim_start_matches('#').trim().trim_start_matches(code).trim_start_matches([':', ' ', '–', '-']))
        })
        .collect()
}
