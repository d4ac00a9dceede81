//! `tributary sql`: one query, its rows printed.

use std::io::Read as _;
use std::sync::Arc;

use clap::ArgMatches;
use futures::StreamExt as _;
use tributary::datafusion::error::DataFusionError;
use tributary_config::{Loaded, Output};

use crate::failure::{Error, Failure, Outcome};
use crate::{opened, output, start};

/// Runs the text of the command line, or of the standard input.
pub fn sql(loaded: &Loaded, matches: &ArgMatches) -> Outcome {
    let mut text = matches.get_one::<String>("text").cloned().unwrap_or_default();
    if text == "-" {
        text.clear();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|source| Error::Io { action: "reading the standard input".to_owned(), source })?;
    }
    let lake = opened::existing_lake(&loaded.settings)?;
    start::block_on(query(&lake, &text, loaded.settings.output))
}

/// Runs a query and prints its rows.
pub async fn query(lake: &tributary::Lake, text: &str, output: Output) -> Outcome {
    let frame = tributary::sql::query(lake, text).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let rows = frame.execute_stream().await.map_err(failed)?;
    output::stream(output, schema, rows.map(|batch| batch.map_err(failed))).await
}

/// A query that was planned and failed while it ran.
fn failed(error: DataFusionError) -> Failure {
    Failure::from(tributary::sql::Error::run(error))
}
