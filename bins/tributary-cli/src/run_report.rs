//! How a run ended: exit code and report file.

use std::io::Write as _;
use std::path::Path;

use tributary::{ExitCode, RunReport};

use crate::failure::{Error, Failure};

/// A run that left a report, or one that failed before any dataset had its turn.
pub enum RunOutcome {
    Ran(Box<RunReport>),
    Failed(Failure),
}

impl RunOutcome {
    /// What the shell sees; `nothing_new` stands for 0 where no dataset had anything new.
    pub fn exit_code(&self, nothing_new: Option<u8>) -> u8 {
        match self {
            Self::Failed(failure) => failure.exit_code.code(),
            Self::Ran(report) => match (report.exit_code(), nothing_new) {
                (ExitCode::Done, Some(code)) if report.nothing_new() => code,
                (code, _) => code.code(),
            },
        }
    }

    /// Writes the report, whole or not at all.
    pub fn write(&self, file: &Path, exit_code: u8) -> Result<(), Failure> {
        let document = self.document(exit_code);
        let failed = |source| Error::Io { action: format!("writing the report {}", file.display()), source };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut beside = file.as_os_str().to_owned();
        beside.push(".part");
        let mut out = std::fs::File::create(&beside).map_err(failed)?;
        out.write_all(format!("{document:#}\n").as_bytes()).and_then(|()| out.sync_all()).map_err(failed)?;
        std::fs::rename(&beside, file).map_err(failed)?;
        Ok(())
    }

    fn document(&self, exit_code: u8) -> serde_json::Value {
        match self {
            Self::Ran(report) => {
                let mut document = serde_json::to_value(report).unwrap_or_default();
                document["exit_code"] = exit_code.into();
                document["nothing_new"] = report.nothing_new().into();
                document
            }
            Self::Failed(failure) => {
                serde_json::json!({ "exit_code": exit_code, "error": { "code": failure.code, "message": failure.message }, "datasets": [] })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tributary::{DatasetReport, Status};

    use super::*;

    fn ran(status: Status) -> RunOutcome {
        RunOutcome::Ran(Box::new(RunReport { datasets: vec![DatasetReport { status, ..Default::default() }], ..Default::default() }))
    }

    #[test]
    fn nothing_new_is_said_with_the_code_that_was_asked_for() {
        assert_eq!(ran(Status::NothingNew).exit_code(Some(99)), 99);
        assert_eq!(ran(Status::NothingNew).exit_code(None), 0);
        assert_eq!(ran(Status::Committed).exit_code(Some(99)), 0);
    }

    #[test]
    fn the_report_is_written_whole_beside_and_then_moved() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reports/run.json");
        ran(Status::Committed).write(&file, 0).unwrap();
        let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(document["exit_code"], 0);
        assert_eq!(document["nothing_new"], false);
        assert_eq!(document["datasets"][0]["status"], "committed");
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_that_never_began_reports_its_error() {
        let failure = Failure { exit_code: ExitCode::BadInput, code: "SP0011".into(), message: "no".into(), next: None };
        assert_eq!(RunOutcome::Failed(failure).document(2)["error"]["code"], "SP0011");
    }
}
