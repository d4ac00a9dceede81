//! `tributary graph`.

use std::path::PathBuf;

use clap::ArgMatches;
use tributary_config::Loaded;

use crate::bundle::{self, Given, Opened};
use crate::failure::{Error, Outcome};
use crate::{files, opened, start};

/// The forms a graph is printed in.
pub const FORMATS: [&str; 4] = ["text", "dot", "mermaid", "html"];

/// Prints the pipeline as a graph, or writes it where `--out` says.
pub fn graph(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let Opened { settings, pipeline } = bundle::open(loaded, given)?;
    let lake = opened::existing_lake_or_empty(&settings)?;
    let graph = start::block_on(async { Ok(lake.graph(&pipeline).await?) })?;
    let out = matches.get_one::<PathBuf>("out");
    let by_name = out.and_then(|file| file.extension()).and_then(|ending| ending.to_str()).map(|ending| match ending {
        "html" | "htm" => "html",
        "dot" | "gv" => "dot",
        "mmd" | "mermaid" => "mermaid",
        _ => "text",
    });
    let format = matches.get_one::<String>("format").map(String::as_str).or(by_name).unwrap_or("text");
    let text = match format {
        "dot" => graph.to_dot(),
        "mermaid" => graph.to_mermaid(),
        "html" => graph.to_html(),
        _ => graph.to_text(),
    };
    let Some(file) = out else { return start::print(&text) };
    files::write(file, &text).map_err(|source| Error::Io { action: format!("writing the graph {}", file.display()), source })?;
    start::print(&format!("{}\n", file.display()))
}
