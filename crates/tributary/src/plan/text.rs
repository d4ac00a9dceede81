//! A plan as people read it. Pure.

use std::fmt::Write as _;

use super::{ColumnChange, ColumnChangeKind, DatasetPlan, DefinitionChange, FileAmount, Plan, PlannedInput, PlannedWork};
use crate::amounts::{bytes, count};

/// Lines of a text that are shown of what it was and what it is.
const LINES_MAX: usize = 12;

impl Plan {
    /// The plan as text: a paragraph a dataset that changes, then what does not, then the sums.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tributary::Error> {
    /// let lake = tributary::Lake::open("memory://", Default::default())?;
    /// let plan = lake.plan(&tributary::Pipeline::builder("empty").build()?, &Default::default()).await?;
    /// assert!(plan.to_text().ends_with("nothing would change\n"));
    /// # Ok(()) }
    /// ```
    pub fn to_text(&self) -> String {
        let mut text =
            format!("pipeline {}, catalogue {}, {}\n\n", self.pipeline, self.catalogue, count(self.datasets.len() as u64, "dataset"));
        let changing: Vec<&DatasetPlan> = self.datasets.iter().filter(|dataset| dataset.changes_anything()).collect();
        for dataset in &changing {
            paragraph(&mut text, dataset);
            text.push('\n');
        }
        let same = self.datasets.len() - changing.len();
        if same > 0 && !changing.is_empty() {
            let _ = writeln!(text, "nothing new: {}\n", names(self.datasets.iter().filter(|dataset| !dataset.changes_anything())));
        }
        // such a run is refused whether or not anything is new
        let unchanged = self.datasets.iter().filter(|dataset| !dataset.changes_anything());
        for note in unchanged.flat_map(|dataset| &dataset.notes).filter(|note| note.starts_with(super::NOT_PROTECTED)) {
            let _ = writeln!(text, "{note}\n");
        }
        for clause in &self.not_applied {
            let _ = writeln!(text, "not applied: {clause}\n");
        }
        text.push_str(&self.sums());
        text.push('\n');
        text
    }

    fn sums(&self) -> String {
        let of = |pick: &dyn Fn(&DatasetPlan) -> bool| self.datasets.iter().filter(|dataset| pick(dataset)).count() as u64;
        let mut parts = Vec::new();
        let mut say = |number: u64, what: &str| {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        };
        say(of(&DatasetPlan::is_created), "created");
        say(of(&|one| one.version.is_some() && !one.columns.is_empty()), "altered");
        say(of(&|one| !one.definition.is_empty()), "with a changed definition");
        say(of(&|one| one.work == PlannedWork::Refreshes), "refreshed in full");
        say(of(&|one| matches!(one.work, PlannedWork::TakesUp | PlannedWork::Follows)), "taking up what is new");
        say(of(&|one| one.work == PlannedWork::Asks), "asking their sources");
        say(of(&|one| !one.stops.is_empty()), "stopping");
        let rewritten = self
            .datasets
            .iter()
            .filter_map(|one| one.rewrites)
            .fold(FileAmount::default(), |sum, one| FileAmount { files: sum.files + one.files, bytes: sum.bytes + one.bytes });
        if rewritten.files > 0 {
            parts.push(format!("{} rewritten", amount(rewritten)));
        }
        if parts.is_empty() { "nothing would change".to_owned() } else { parts.join(", ") }
    }
}

fn names<'a>(datasets: impl Iterator<Item = &'a DatasetPlan>) -> String {
    datasets.map(|dataset| dataset.table.to_string()).collect::<Vec<_>>().join(", ")
}

fn amount(amount: FileAmount) -> String {
    format!("{} ({})", count(amount.files, "file"), bytes(amount.bytes))
}

fn paragraph(text: &mut String, plan: &DatasetPlan) {
    let work = match plan.work {
        PlannedWork::Nothing => "no new rows".to_owned(),
        PlannedWork::TakesUp | PlannedWork::Follows => format!("takes up: {}", plan.reason),
        PlannedWork::Refreshes => format!("refreshed in full: {}", plan.reason),
        PlannedWork::Asks => plan.reason.clone(),
    };
    let _ = writeln!(text, "{}  {work}", plan.table);
    let mut line = |sign: &str, what: &str| {
        let _ = writeln!(text, "  {sign} {what}");
    };
    if plan.is_created() {
        match plan.columns_unknown {
            true => line("+", "table, its columns told by its first rows"),
            false => line("+", &format!("table of {}: {}", count(plan.creates.len() as u64, "column"), shortened(&plan.creates))),
        }
    }
    for change in &plan.definition {
        definition(change, &mut line);
    }
    for change in &plan.columns {
        column(change, &mut line);
    }
    if let Some(rewritten) = plan.rewrites {
        line("~", &format!("rewrites {}", amount(rewritten)));
    }
    for input in &plan.inputs {
        line("<", &self::input(input));
    }
    if let Some(rows) = plan.rows_estimated {
        line("=", &format!("about {}", count(rows, "row")));
    }
    plan.loses.iter().for_each(|lost| line("-", &format!("loses {lost}")));
    for differs in &plan.differs {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "none".to_owned());
        line("!", &format!("{} stays {}, though {} is declared", differs.what, side(&differs.found), side(&differs.declared)));
    }
    plan.stops.iter().for_each(|why| line("!", &format!("stops: {why}")));
    plan.notes.iter().for_each(|note| line("!", note));
    if !plan.definition_known {
        line("!", "what it was last run with was not kept: whether its definition changed cannot be told");
    }
}

/// The first of several, and how many more.
fn shortened(items: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN { format!("{shown} and {} more", items.len() - SHOWN) } else { shown }
}

fn column(change: &ColumnChange, line: &mut impl FnMut(&str, &str)) {
    let side = |side: &Option<String>| side.clone().unwrap_or_default();
    let name = &change.column;
    match change.kind {
        ColumnChangeKind::Added => line("+", &format!("column {name} {}", side(&change.to))),
        ColumnChangeKind::Widened => line("~", &format!("column {name} {} becomes {}", side(&change.from), side(&change.to))),
        ColumnChangeKind::NoLongerMade => line("-", &format!("column {name} {} stays and is null in new rows", side(&change.from))),
    }
}

/// Short texts side by side, longer ones line by line, what both have left out.
fn definition(change: &DefinitionChange, line: &mut impl FnMut(&str, &str)) {
    let part = &change.part;
    match (&change.before, &change.after) {
        (Some(before), Some(after)) if before.lines().count() > 1 || after.lines().count() > 1 || before.len() + after.len() > 90 => {
            line("~", &format!("{part}:"));
            for (sign, text) in differing_lines(before, after) {
                line(" ", &format!("{sign} {text}"));
            }
        }
        (Some(before), Some(after)) => line("~", &format!("{part}: {before} -> {after}")),
        (None, Some(after)) => line("+", &format!("{part}: {after}")),
        (Some(before), None) => line("-", &format!("{part}: {before}")),
        (None, None) => {}
    }
}

/// The lines between those that both texts begin and end with.
fn differing_lines(before: &str, after: &str) -> Vec<(char, String)> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same_first = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let left = before.len().min(after.len()) - same_first;
    let same_last = before.iter().rev().zip(after.iter().rev()).take(left).take_while(|(one, other)| one == other).count();
    let mut lines = Vec::new();
    for (sign, all) in [('-', &before), ('+', &after)] {
        let differing = &all[same_first..all.len() - same_last];
        lines.extend(differing.iter().take(LINES_MAX).map(|line| (sign, (*line).to_owned())));
        if differing.len() > LINES_MAX {
            lines.push((sign, format!("… and {} more lines", differing.len() - LINES_MAX)));
        }
    }
    lines
}

fn input(input: &PlannedInput) -> String {
    let mut parts = Vec::new();
    match (input.files, input.bytes) {
        (Some(files), Some(bytes_of)) => parts.push(format!("{} ({})", count(files, "file"), bytes(bytes_of))),
        (None, Some(bytes_of)) => parts.push(format!("changes of {}", bytes(bytes_of))),
        (_, None) => {}
    }
    parts.extend(input.rows.map(|rows| count(rows, "row")));
    match (input.version_from, input.version_to) {
        (Some(from), Some(to)) if from != to => parts.push(format!("version {from} to {to}")),
        (None, Some(to)) => parts.push(format!("up to version {to}")),
        _ => {}
    }
    parts.extend(input.positions.iter().map(|(partition, position)| format!("{partition} from {position}")));
    if parts.is_empty() { input.from.clone() } else { format!("{}: {}", input.from, parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_texts_the_lines_that_differ_are_shown() {
        let lines = differing_lines("select a,\n  b\nfrom t\nwhere x", "select a,\n  c,\n  d\nfrom t\nwhere x");
        let shown: Vec<String> = lines.into_iter().map(|(sign, line)| format!("{sign}{line}")).collect();
        assert_eq!(shown, ["-  b", "+  c,", "+  d"]);
        assert!(differing_lines("a\na", "a\na").is_empty());
    }
}
