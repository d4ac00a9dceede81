//! `tributary graph`.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use tributary_config::Loaded;

use crate::bundle::{self, Given, Opened};
use crate::failure::{Error, Outcome};
use crate::{files, opened, start};

/// The forms a graph is printed in.
pub const FORMATS: [&str; 4] = ["text", "dot", "mermaid", "html"];

/// Prints the pipeline as a graph, or writes it where `--out` says.
pub fn graph(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let out = matches.get_one::<PathBuf>("out");
    let format = match matches.get_one::<String>("format") {
        Some(format) => format.as_str(),
        None => out.map_or(Ok("text"), |file| by_name(file))?,
    };
    let Opened { settings, pipeline, .. } = bundle::open(loaded, given)?;
    let lake = opened::existing_lake_or_empty(&settings)?;
    let graph = start::block_on(async { Ok(lake.graph(&pipeline).await?) })?;
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

/// The form that the ending of a file's name stands for.
fn by_name(file: &Path) -> Result<&'static str, Error> {
    let Some(ending) = file.extension() else { return Ok("text") };
    Ok(match ending.to_string_lossy().to_ascii_lowercase().as_str() {
        "html" | "htm" => "html",
        "dot" | "gv" => "dot",
        "mmd" | "mermaid" => "mermaid",
        "txt" | "text" => "text",
        _ => return Err(Error::GraphForm { file: file.to_owned() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_told_by_the_ending_and_an_ending_of_no_form_is_refused() {
        for (file, form) in [
            ("g", "text"),
            ("g.txt", "text"),
            ("a.b/g.DOT", "dot"),
            ("g.gv", "dot"),
            ("g.mmd", "mermaid"),
            ("g.htm", "html"),
            ("g.html", "html"),
        ] {
            assert_eq!(by_name(Path::new(file)).unwrap(), form);
        }
        for file in ["g.png", "g.svg", "g.html.gz"] {
            assert!(matches!(by_name(Path::new(file)), Err(Error::GraphForm { .. })), "{file}");
        }
    }
}
