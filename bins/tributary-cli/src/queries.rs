//! Planning the queries of what was read from SQL files: every mistake is told where it stands.

use tributary::{Fault as _, Pipeline, Place, QueryNote, QueryProblem};
use tributary_bundle::{Fault, Loaded as Read, Note, Severity, ToPlan};

use crate::failure::Failure;
use crate::start;

/// Plans the pipelines that were read, and adds what is wrong with their queries to their faults.
pub fn plan(reads: &mut [Read], user: Option<&str>) -> Result<(), Failure> {
    start::block_on(async {
        for read in reads.iter_mut() {
            for part in std::mem::take(&mut read.to_plan) {
                pipeline(part, read, user).await?;
            }
            read.faults
                .sort_by(|a, b| (&a.file, a.line, a.column, a.severity, a.code).cmp(&(&b.file, b.line, b.column, b.severity, b.code)));
            read.faults.dedup();
            read.notes.sort_by(|a, b| (&a.file, a.line, a.column, &a.message).cmp(&(&b.file, b.line, b.column, &b.message)));
            read.notes.dedup();
        }
        Ok(())
    })
}

async fn pipeline(part: ToPlan, read: &mut Read, user: Option<&str>) -> Result<(), Failure> {
    let ToPlan { spec, origins, run_as } = part;
    // specs that contradict themselves have been told
    let Ok(pipeline) = Pipeline::from_spec(spec) else { return Ok(()) };
    let pipeline = pipeline.with_origins(origins).run_as(run_as.as_deref().or(user).unwrap_or("user"));
    let check = pipeline.check_queries().await?;
    for QueryNote { table, message, place } in check.notes {
        let Some(Place { file, line, column }) = place else { continue };
        read.notes.push(Note { file, line, column, kind: "not_planned".to_owned(), message: format!("{table} is {message}") });
    }
    read.faults.extend(check.problems.iter().map(|problem| fault(problem, &read.files)));
    Ok(())
}

/// A problem as a fault of its file. What no SQL file says is of the first file.
fn fault(problem: &QueryProblem, files: &[String]) -> Fault {
    let first = || (files.first().cloned().unwrap_or_default(), 1, 1);
    let (file, line, column) = problem.place.as_ref().map_or_else(first, |place| (place.file.clone(), place.line, place.column));
    Fault {
        code: problem.error.code().0,
        severity: Severity::Error,
        file,
        line,
        column,
        message: problem.message(),
        next: Some(format!("tributary help {}", problem.error.code())),
    }
}
