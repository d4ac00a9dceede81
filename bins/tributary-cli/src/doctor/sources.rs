//! What feeds read: folders with their files, and whatever the library can look at by itself.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use tributary::{ExitCode, KafkaFinding, Pipeline, RunOptions, Source};
use tributary_config::{Program, Settings};

use super::finding::Finding;
use crate::failure::Failure;
use crate::{opened, run};

/// Looks at the sources of the feeds that would run.
pub async fn check(settings: &Settings, pipeline: &Pipeline, options: &RunOptions, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for feed in &pipeline.spec().feeds {
        if let Source::Files(files) = &feed.source
            && seen.insert(files.path.clone())
        {
            let folder = options.base_data_path.join(&files.path);
            findings.push(Finding::of("files", &format!("{} ({})", folder.display(), feed.name), readable(&folder)));
        }
    }
    if pipeline.spec().feeds.iter().any(|feed| matches!(feed.source, Source::Kafka(_))) {
        match looked_at_kafka(settings, pipeline, options).await {
            Ok(found) => {
                findings.extend(found.into_iter().map(|KafkaFinding { subject, outcome }| Finding::of("kafka", &subject, outcome)));
            }
            Err(failure) => findings.push(Finding::failed("kafka", "", failure)),
        }
    }
}

/// The broker and registry of the settings, where no valid pipeline says what is read from them.
pub async fn broker(program: Program, settings: &Settings) -> Vec<Finding> {
    const ANY: &str = "{name: any, feeds: [{name: any, table: bronze.any, decode: raw, source: {kafka: {topics: ['*']}}}]}";
    let looked = async {
        let pipeline = Pipeline::from_yaml(&[("any.yml", ANY)])?;
        let options = run::options(program, settings, &pipeline)?;
        looked_at_kafka(settings, &pipeline, &options).await
    };
    match looked.await {
        Ok(found) => {
            let kept = found.into_iter().filter(|found| !found.subject.starts_with("feed "));
            kept.map(|KafkaFinding { subject, outcome }| Finding::of("kafka", &subject, outcome)).collect()
        }
        Err(failure) => vec![Finding::failed("kafka", "", failure)],
    }
}

async fn looked_at_kafka(settings: &Settings, pipeline: &Pipeline, options: &RunOptions) -> Result<Vec<KafkaFinding>, Failure> {
    Ok(opened::existing_lake_or_empty(settings)?.check_kafka(pipeline, options).await?)
}

/// Whether a folder, or a single file, can be read, and that of the first file in it.
fn readable(path: &Path) -> Result<String, Failure> {
    let refused = |code: &str, message: String, next: String| Failure {
        exit_code: ExitCode::BadInput,
        code: code.to_owned(),
        message,
        next: Some(next),
    };
    let unreadable = |path: &Path, error: std::io::Error| {
        refused("BR0003", format!("{} cannot be read: {error}", path.display()), format!("ls -l {}", path.display()))
    };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(refused("BR0002", "there is no such folder".to_owned(), format!("mkdir -p {}", path.display())));
        }
        Err(error) => return Err(unreadable(path, error)),
    };
    if metadata.is_file() {
        return begun(path).map(|()| "a file that can be read".to_owned()).map_err(|error| unreadable(path, error));
    }
    let mut files = 0_u64;
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
        let entry = entry.map_err(|error| unreadable(path, error))?.path();
        if entry.is_file() {
            if files == 0 {
                begun(&entry).map_err(|error| unreadable(&entry, error))?;
            }
            files += 1;
        }
    }
    Ok(format!("a folder that can be read, with {files} files"))
}

fn begun(file: &Path) -> std::io::Result<()> {
    File::open(file)?.read(&mut [0]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_its_files_and_what_is_missing_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(readable(folder.path()).unwrap(), "a folder that can be read, with 0 files");
        let file = folder.path().join("1.jsonl");
        fs::write(&file, "{}").unwrap();
        assert_eq!(readable(folder.path()).unwrap(), "a folder that can be read, with 1 files");
        assert_eq!(readable(&file).unwrap(), "a file that can be read");
        assert_eq!(readable(&folder.path().join("none")).unwrap_err().code, "BR0002");
    }
}
