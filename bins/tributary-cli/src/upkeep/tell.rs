//! What people and programs read of a report.

use std::fmt::Write as _;

use tributary::arrow::array::RecordBatch;
use tributary::maintenance::{Amount, CleanLogReport, Defect, FsckReport, Reader, RestoreReport, Status, VacuumReport};

use crate::failure::Failure;
use crate::output::{batch, text, whole};

/// Files that are named one by one at most.
const NAMED_MAX: usize = 1_000;

/// A report of one table.
pub trait Told {
    /// Lines for a person, each with its end.
    fn text(&self) -> String;
    /// Table, status, what it is about in words, files, bytes.
    fn row(&self) -> (String, Status, String, Amount);
}

impl Told for VacuumReport {
    fn text(&self) -> String {
        let mut lines = String::new();
        if self.status == Status::Planned {
            for file in self.files.iter().take(NAMED_MAX) {
                // Writing to a String does not fail.
                let _ = writeln!(lines, "  {} ({} bytes)", file.path, file.bytes);
            }
            if self.files.len() > NAMED_MAX {
                let _ = writeln!(lines, "  and {} more", self.files.len() - NAMED_MAX);
            }
        }
        let (table, _, said, _) = self.row();
        format!("{lines}{table}: {said}\n")
    }

    fn row(&self) -> (String, Status, String, Amount) {
        let mut said = match self.status {
            Status::Planned => format!("{} would be deleted; a dry run deletes nothing", amount(self.deleted)),
            Status::Done => format!("{} deleted", amount(self.deleted)),
            _ => "nothing to delete".to_owned(),
        };
        if let Some(held) = &self.held_by {
            let _ = write!(said, "; {} kept for {}, which has reached version {}", amount(held.kept), held.reader, held.version);
        }
        if self.young.files > 0 {
            let _ = write!(said, "; {} kept because a write may be under way", amount(self.young));
        }
        (self.table.to_string(), self.status, said, self.deleted)
    }
}

impl Told for CleanLogReport {
    fn text(&self) -> String {
        let (table, _, said, _) = self.row();
        format!("{table}: {said}\n")
    }

    fn row(&self) -> (String, Status, String, Amount) {
        let from = self.cut.map_or(String::new(), |cut| format!("; versions from {cut} on can be opened: {}", self.reason));
        let said = match self.status {
            Status::Planned => format!(
                "{} of {} objects of the log would be deleted{from}; a dry run deletes nothing",
                self.deleted.files, self.before.files
            ),
            Status::Done => {
                format!("{} of {} objects of the log deleted, {} bytes{from}", self.deleted.files, self.before.files, self.deleted.bytes)
            }
            _ => format!("nothing to delete of the log: {}", self.reason),
        };
        (self.table.to_string(), self.status, said, self.deleted)
    }
}

impl Told for RestoreReport {
    fn text(&self) -> String {
        let (table, _, said, _) = self.row();
        let mut lines = format!("{table}: {said}\n");
        for moved in &self.positions {
            let _ = writeln!(lines, "  {}: {} → {}", moved.app_id, moved.from, moved.to);
        }
        lines
    }

    fn row(&self) -> (String, Status, String, Amount) {
        let would = if self.status == Status::Planned { "would be" } else { "are" };
        let said = match self.status {
            Status::NothingToDo => format!("it is as it was at version {}", self.to),
            _ => format!(
                "from version {} to what it was at version {}{}: {} {would} live again, {} no longer, {} positions {would} back",
                self.from,
                self.to,
                self.version.map_or(String::new(), |version| format!(", as version {version}")),
                amount(self.restored),
                amount(self.removed),
                self.positions.len()
            ),
        };
        (self.table.to_string(), self.status, said, self.restored)
    }
}

impl Told for FsckReport {
    fn text(&self) -> String {
        let (table, _, said, _) = self.row();
        let mut lines = format!("{table}: {said}\n");
        for finding in self.findings.iter().take(NAMED_MAX) {
            let what = match &finding.defect {
                Defect::Missing => "is not there".to_owned(),
                Defect::VectorMissing { path } => format!("its deletion vector {path} is not there"),
                Defect::VectorCut { path, found, expected } => format!("its deletion vector {path} has {found} bytes, not {expected}"),
                Defect::Size { found, expected } => format!("has {found} bytes, and the log says {expected}"),
            };
            let rows = finding.rows.map_or(String::new(), |rows| format!(" ({rows} rows)"));
            let _ = writeln!(lines, "  {}{rows}: {what}", finding.path);
        }
        lines
    }

    fn row(&self) -> (String, Status, String, Amount) {
        let checked = amount(self.checked);
        let said = match self.status {
            Status::Done => format!(
                "{} files taken out of the log, with {} rows",
                self.lost_files,
                self.lost_rows.map_or("unknown".to_owned(), |rows| rows.to_string())
            ),
            Status::Left => format!("{} of {checked} are not as the log says", self.findings.len()),
            _ => format!("{checked} are as the log says"),
        };
        (self.table.to_string(), self.status, said, self.checked)
    }
}

fn amount(amount: Amount) -> String {
    format!("{} files of {} bytes", amount.files, amount.bytes)
}

/// A row a table.
pub fn rows<R: Told>(reports: &[&R]) -> Result<RecordBatch, Failure> {
    let told: Vec<_> = reports.iter().map(|report| report.row()).collect();
    let status = |status: Status| serde_json::to_value(status).ok().and_then(|status| status.as_str().map(str::to_owned));
    batch(vec![
        ("table", text(told.iter().map(|row| Some(row.0.clone())))),
        ("status", text(told.iter().map(|row| status(row.1)))),
        ("said", text(told.iter().map(|row| Some(row.2.clone())))),
        ("files", whole(told.iter().map(|row| Some(row.3.files)))),
        ("bytes", whole(told.iter().map(|row| Some(row.3.bytes)))),
    ])
}

/// A row a reader.
pub fn readers(readers: &[Reader]) -> Result<RecordBatch, Failure> {
    batch(vec![
        ("reader", text(readers.iter().map(|reader| Some(reader.name.clone())))),
        ("needs", text(readers.iter().map(|reader| Some(reader.needs.to_string())))),
        ("known_by", text(readers.iter().map(|reader| Some(if reader.declared { "declaration" } else { "its own commits" })))),
    ])
}
