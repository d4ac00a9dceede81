//! What a pipeline is written as: a YAML file, or a folder of SQL files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use tributary::{Pipeline, SqlOptions};

/// The texts of a pipeline.
#[derive(Debug, Clone)]
pub enum Definition {
    /// One file.
    Yaml(String),
    /// A folder, after which the pipeline is called.
    Sql {
        /// The folder's name.
        name: String,
        /// Names and texts of its files.
        files: Vec<(String, String)>,
    },
}

impl Definition {
    /// What [`Definition::write`] wrote.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return Ok(Self::Yaml(std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?));
        }
        let name = path.file_name().context("the folder has a name")?.to_string_lossy().into_owned();
        Ok(Self::Sql { name, files: sql_of(path)? })
    }

    /// The pipeline that it defines.
    pub fn pipeline(&self) -> Result<Pipeline> {
        Ok(match self {
            Self::Yaml(text) => Pipeline::from_yaml(&[("pipeline.yml", text)])?,
            Self::Sql { name, files } => {
                let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
                Pipeline::from_sql(&files, &SqlOptions { name: name.clone(), ..SqlOptions::default() })?
            }
        })
    }

    /// Writes it into a folder; what `--pipeline` is given then.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        let (path, files) = match self {
            Self::Yaml(text) => {
                let path = folder.join("pipeline.yml");
                (path.clone(), vec![(path, text)])
            }
            Self::Sql { name, files } => {
                let path = folder.join(name);
                (path.clone(), files.iter().map(|(file, text)| (path.join(file), text)).collect())
            }
        };
        for (file, text) in files {
            std::fs::create_dir_all(file.parent().unwrap_or(folder)).context("making the pipeline's folder")?;
            std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(path)
    }

    /// The same with another text wherever `from` stands, which must be somewhere.
    pub fn replaced(mut self, from: &str, to: &str) -> Result<Self> {
        let texts: Vec<&mut String> = match &mut self {
            Self::Yaml(text) => vec![text],
            Self::Sql { files, .. } => files.iter_mut().map(|(_, text)| text).collect(),
        };
        let mut found = false;
        for text in texts.into_iter().filter(|text| text.contains(from)) {
            *text = text.replace(from, to);
            found = true;
        }
        ensure!(found, "the pipeline has no {from:?} any more");
        Ok(self)
    }
}

/// Names and texts of the SQL files of a folder, in the order of their names.
pub fn sql_of(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "sql") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?));
        }
    }
    files.sort();
    Ok(files)
}
