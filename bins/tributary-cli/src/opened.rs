//! Settings into a lake and a pipeline.

use std::path::PathBuf;

use tributary::{Lake, OpenOptions, Pipeline};
use tributary_config::{Location, Settings};

use crate::failure::{Error, Failure};
use crate::schema::{self, LayersBefore};

/// The lake of these settings; its folder is made where it is missing.
pub fn lake(settings: &Settings) -> Result<Lake, Failure> {
    let options = OpenOptions {
        catalogue: settings.catalogue.as_str().to_owned(),
        memory_limit: usize::try_from(settings.memory_limit.bytes()).unwrap_or(usize::MAX),
        attempts_max: settings.attempts_max.get(),
        spill_path: spill_folder(settings),
        ..OpenOptions::default()
    };
    if let Some(spill) = &options.spill_path {
        // the engine makes the last of missing folders alone
        let io = |source| Error::Io { action: format!("making the folder {} for what queries spill", spill.display()), source };
        std::fs::create_dir_all(spill).map_err(io)?;
    }
    if settings.warehouse.is_url() && folder(&settings.warehouse).is_none() {
        // the text of a URL may hold a secret; its Display does not
        return Err(tributary::Error::Url { url: settings.warehouse.to_string() }.into());
    }
    Ok(Lake::open(settings.warehouse.as_str(), options)?)
}

/// The lake of these settings, to read only: it must be there.
pub fn existing_lake(settings: &Settings) -> Result<Lake, Failure> {
    match folder(&settings.warehouse) {
        Some(folder) if !folder.is_dir() => Err(Error::NoWarehouse { location: settings.warehouse.to_string() }.into()),
        _ => lake(settings),
    }
}

/// The lake of these settings; where its folder is not there, an empty one that nothing is made for.
pub fn existing_lake_or_empty(settings: &Settings) -> Result<Lake, Failure> {
    match folder(&settings.warehouse) {
        Some(folder) if !folder.is_dir() => empty_lake(settings),
        _ => lake(settings),
    }
}

/// A lake that nothing is in, and that is gone when the command has ended.
pub fn empty_lake(settings: &Settings) -> Result<Lake, Failure> {
    Ok(Lake::open("memory://", OpenOptions { catalogue: settings.catalogue.as_str().to_owned(), ..OpenOptions::default() })?)
}

/// Where queries spill; none = where the system keeps what is temporary.
pub fn spill_folder(settings: &Settings) -> Option<PathBuf> {
    settings.base_checkpoint_path.as_ref().and_then(folder).map(|path| path.join("spill"))
}

/// What a pipeline holds, in numbers.
pub fn contents(pipeline: &Pipeline) -> String {
    let spec = pipeline.spec();
    format!("{} feeds, {} silver and {} gold datasets", spec.feeds.len(), spec.silver.len(), spec.gold.len())
}

/// The folder of this machine that a location is.
pub fn folder(location: &Location) -> Option<PathBuf> {
    match location.as_str().split_once("://") {
        None => Some(PathBuf::from(location.as_str())),
        Some(("file", path)) if path.starts_with('/') => Some(PathBuf::from(path)),
        Some(_) if location.is_url() => None,
        Some(_) => Some(PathBuf::from(location.as_str())),
    }
}

/// The pipeline of these settings: all its files read and validated together, as [`in_schema_of`].
pub fn pipeline(settings: &Settings) -> Result<(Pipeline, LayersBefore), Failure> {
    in_schema_of(settings, Pipeline::from_yaml(&texts(&files(settings)?))?)
}

/// The pipeline's files: their names and texts.
pub fn files(settings: &Settings) -> Result<Vec<(String, String)>, Failure> {
    let mut files = Vec::new();
    for file in &settings.pipeline {
        let text = std::fs::read_to_string(file).map_err(|source| Error::PipelineFile { file: file.clone(), source })?;
        files.push((file.display().to_string(), text));
    }
    Ok(files)
}

/// The pipeline that files hold, in one schema where `--db-name` says so.
pub fn pipeline_of(settings: &Settings, files: &[(String, String)]) -> Result<Pipeline, Failure> {
    in_schema_of(settings, Pipeline::from_yaml(&texts(files))?).map(|(pipeline, _)| pipeline)
}

/// The pipeline in one schema where `--db-name` says so, and of which layers its datasets were before.
pub fn in_schema_of(settings: &Settings, pipeline: Pipeline) -> Result<(Pipeline, LayersBefore), Failure> {
    match &settings.db_name {
        None => Ok((pipeline, LayersBefore::new())),
        Some(name) => schema::in_one_schema(&pipeline, name.as_str()),
    }
}

/// Files as the library takes them.
pub fn texts(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
}
