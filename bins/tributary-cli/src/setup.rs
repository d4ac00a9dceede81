//! `tributary setup`: the tables of a pipeline, made or compared.

use tributary::arrow::array::RecordBatch;
use tributary::{Difference, ExitCode, Layer, SetupOutcome, TableSetup};
use tributary_config::Loaded;

use crate::bundle::{Given, Opened};
use crate::failure::{Failure, Outcome};
use crate::output::{batch, text};
use crate::{bundle, opened, output, run, start, typed};

/// Makes what is missing and lists what differs; exit 2 when anything does.
pub fn setup(loaded: &Loaded, given: &Given) -> Outcome {
    let Opened { settings, pipeline, .. } = bundle::open(loaded, given)?;
    let settings = &settings;
    let layers: Vec<Layer> = run::layers(loaded.program, settings.layer);
    let only = run::only(&typed::tables(&settings.only, settings.catalogue.as_str())?, &pipeline)?;
    let lake = opened::lake(settings)?;
    let setups = start::block_on(async { Ok(lake.setup(&pipeline, &layers, &only).await?) })?;
    output::rows(settings.output, &rows(&setups)?)?;
    let differs = setups.iter().any(|setup| match &setup.outcome {
        SetupOutcome::Differs(_) => true,
        SetupOutcome::Changed { left, .. } => !left.is_empty(),
        SetupOutcome::Created | SetupOutcome::AsDeclared | SetupOutcome::LeftToFirstRun => false,
    });
    Ok(if differs { ExitCode::BadInput.code() } else { ExitCode::Done.code() })
}

/// A row a table, or a row a difference where it has any.
fn rows(setups: &[TableSetup]) -> Result<RecordBatch, Failure> {
    let mut rows: Vec<[Option<String>; 5]> = Vec::new();
    for TableSetup { table, layer: _, outcome } in setups {
        let word = |word: &str| [Some(table.to_string()), Some(word.to_owned()), None, None, None];
        let row = |outcome: &str, difference: &Difference| {
            let absent = |side: &Option<String>| Some(side.clone().unwrap_or_else(|| "absent".to_owned()));
            let [table, outcome, ..] = word(outcome);
            [table, outcome, Some(difference.what.clone()), absent(&difference.declared), absent(&difference.found)]
        };
        match outcome {
            SetupOutcome::Created => rows.push(word("created")),
            SetupOutcome::AsDeclared => rows.push(word("as declared")),
            SetupOutcome::LeftToFirstRun => rows.push(word("left to its first run")),
            SetupOutcome::Differs(differences) => rows.extend(differences.iter().map(|difference| row("differs", difference))),
            SetupOutcome::Changed { changed, left } => {
                rows.extend(changed.iter().map(|difference| row("changed", difference)));
                rows.extend(left.iter().map(|difference| row("differs", difference)));
            }
        }
    }
    let column = |index: usize| text(rows.iter().map(|row| row[index].clone()));
    batch(vec![("table", column(0)), ("outcome", column(1)), ("what", column(2)), ("declared", column(3)), ("found", column(4))])
}
