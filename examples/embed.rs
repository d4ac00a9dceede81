//! A service that keeps a lake itself: open it, describe what flows, run, read back.
//!
//! It runs the retail pipeline over the recorded changes that `tributary demo` uses and ends with the same lines.

use std::error::Error;

use futures::TryStreamExt;
use tributary::{Lake, OpenOptions, RunOptions, Status};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (pipeline, recordings) = tributary_cli::demo::retail(folder.path())?;

    let lake = Lake::open("memory://", OpenOptions::default())?;
    let options = RunOptions { base_data_path: folder.path().join("raw"), ..RunOptions::default() };
    let report = lake.run(&pipeline, options.clone()).await?;
    assert!(report.datasets.iter().all(|dataset| dataset.status == Status::Committed), "{report:#?}");
    assert!(lake.run(&pipeline, options).await?.nothing_new(), "the second run has nothing to do");

    let revenue = lake.table("gold.daily_revenue").await?;
    let days: usize = revenue.scan().await?.map_ok(|batch| batch.num_rows()).try_fold(0, |sum, rows| async move { Ok(sum + rows) }).await?;
    eprintln!("gold.daily_revenue has {days} days");

    let mut lines = Vec::new();
    for recording in &recordings {
        lines.extend(recording.compare(&lake).await?);
    }
    for (line, equal) in &lines[lines.len() - 3..] {
        assert!(equal, "{line}");
        println!("{line}");
    }
    Ok(())
}
