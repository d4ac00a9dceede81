//! Where a flow of a table has got to in its source, kept in the table's commits.
//!
//! - A flow alone with its source keeps its position as `tributary:source:<source>`, so that a table with one flow and a table to
//!   which flows over other sources are added look alike, whatever the flows are called.
//! - Flows that share a source keep theirs as `tributary:flow:<flow>:<source>`. When a second flow comes to a source, the first takes
//!   the position there over in a commit of its own, before anything is read ([`share`]); from then on that source's flows are
//!   known by their names.
//! - A flow that runs once keeps the version it has read as `tributary:once:<flow>`.
//!
//! A full refresh sets every other flow back to [`NOTHING`], from which it begins anew. Flows so never share a position.

use std::collections::BTreeMap;

use tributary_lake::{Commit, CommitOutcome, Lake, LakeOptions, Operation, Progress, Reads, Result, Table};
use tributary_specs::{SilverSpec, TableName};

use crate::controls;

/// How the application id of a consumed source begins.
pub(crate) const SOURCE_PREFIX: &str = "tributary:source:";
/// The same for what tells which table that source is.
const SOURCE_ID_PREFIX: &str = "tributary:source-id:";
const FLOW_PREFIX: &str = "tributary:flow:";
const FLOW_ID_PREFIX: &str = "tributary:flow-id:";
const ONCE_PREFIX: &str = "tributary:once:";
const ONCE_ID_PREFIX: &str = "tributary:once-id:";

/// The position of a flow that is to begin anew.
pub(crate) const NOTHING: i64 = -1;

/// Where a flow's position is kept, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whereabouts {
    pub app_id: String,
    /// Where is kept which table the source is.
    pub id_app_id: String,
    /// As the table has it.
    pub recorded: Option<i64>,
}

impl Whereabouts {
    /// Of a flow over `source`, the only one of the table or one of several.
    pub fn of(flow: &SilverSpec, source: &TableName, positions: &Positions, options: &LakeOptions) -> Self {
        let name = flow.flow_name();
        let (app_id, id_app_id) = if flow.once {
            (format!("{ONCE_PREFIX}{name}"), format!("{ONCE_ID_PREFIX}{name}"))
        } else if positions.named(source) && !controls::flows_share_one_position(options) {
            (named(name, source), format!("{FLOW_ID_PREFIX}{name}:{source}"))
        } else {
            (format!("{SOURCE_PREFIX}{source}"), format!("{SOURCE_ID_PREFIX}{source}"))
        };
        let recorded = positions.0.get(&app_id).copied();
        Self { app_id, id_app_id, recorded }
    }

    /// The version consumed; none where the flow is to begin at the start.
    pub fn position(&self) -> Option<i64> {
        self.recorded.filter(|recorded| *recorded > NOTHING)
    }

    /// How rows of `_state` and of quarantine name the flow: its source, where that tells.
    pub fn label(&self) -> &str {
        label(&self.app_id)
    }
}

fn named(flow: &str, source: &TableName) -> String {
    format!("{FLOW_PREFIX}{flow}:{source}")
}

fn label(app_id: &str) -> &str {
    app_id.strip_prefix(SOURCE_PREFIX).or_else(|| app_id.strip_prefix("tributary:")).unwrap_or(app_id)
}

/// The positions of all flows that a table has ever had, by application id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Positions(BTreeMap<String, i64>);

impl Positions {
    /// As the table has them.
    ///
    /// # Errors
    /// Store errors.
    pub async fn of(table: Option<&Table>) -> Result<Self> {
        let mut positions = BTreeMap::new();
        if let Some(table) = table {
            for prefix in [SOURCE_PREFIX, FLOW_PREFIX, ONCE_PREFIX] {
                positions.extend(table.progress_with_prefix(prefix).await?);
            }
        }
        Ok(Self(positions))
    }

    /// Whether flows over a source are known by their names.
    fn named(&self, source: &TableName) -> bool {
        let ending = format!(":{source}");
        self.0.keys().any(|app_id| app_id.starts_with(FLOW_PREFIX) && app_id.ends_with(&ending))
    }

    /// The position by the label of a flow.
    pub fn reached(&self) -> BTreeMap<String, i64> {
        self.0.iter().map(|(app_id, position)| (label(app_id).to_owned(), *position)).collect()
    }

    /// What sets every flow but one back to its start.
    pub fn set_back(&self, but: &str) -> Vec<Progress> {
        let others = self.0.iter().filter(|(app_id, position)| *app_id != but && **position > NOTHING);
        let back = |(app_id, position): (&String, &i64)| Progress { app_id: app_id.clone(), expected: Some(*position), version: NOTHING };
        others.map(back).collect()
    }
}

/// What makes the flows over each shared source known by their names, where they are not yet: the first of them goes on from the
/// position there, the others begin.
fn plan_share(flows: &[SilverSpec], positions: &Positions) -> Vec<Progress> {
    let mut progress = Vec::new();
    let streams = || flows.iter().filter(|flow| !flow.once).filter_map(|flow| Some((flow, flow.sources.first()?)));
    for (at, (flow, source)) in streams().enumerate() {
        let is_first = streams().take(at).all(|(_, other)| other != source);
        let is_shared = streams().filter(|(_, other)| *other == source).count() > 1;
        if !is_first || !is_shared || positions.named(source) {
            continue;
        }
        let app_id = format!("{SOURCE_PREFIX}{source}");
        let there = positions.0.get(&app_id).copied();
        progress.push(Progress { app_id: named(flow.flow_name(), source), expected: None, version: there.unwrap_or(NOTHING) });
        // Who still knows the position under its old name is fenced.
        progress.extend(there.map(|there| Progress { app_id, expected: Some(there), version: there }));
    }
    progress
}

/// Makes flows that share a source known by their names; a table that is not there yet is left alone until it is. None when that is
/// so, or nothing is to be done; else how the commit ended.
///
/// # Errors
/// Store errors.
pub(crate) async fn share(lake: &Lake, spec: &SilverSpec, flows: &[SilverSpec]) -> Result<Option<CommitOutcome>> {
    let Some(table) = lake.table(&spec.table).await? else { return Ok(None) };
    let progress = plan_share(flows, &Positions::of(Some(&table)).await?);
    if progress.is_empty() || controls::flows_share_one_position(lake.options()) {
        return Ok(None);
    }
    let commit = Commit { operation: Operation::Write, progress, reads: Reads::BlindAppend, ..Commit::default() };
    table.commit(commit).await.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, source: &str) -> SilverSpec {
        let mut spec = SilverSpec::new(TableName::new("silver", "t"), [TableName::new("bronze", source)]);
        spec.flow = Some(name.to_owned());
        spec
    }

    fn positions(of: &[(&str, i64)]) -> Positions {
        Positions(of.iter().map(|(app_id, position)| ((*app_id).to_owned(), *position)).collect())
    }

    fn whereabouts(flow: &SilverSpec, positions: &Positions) -> (String, Option<i64>) {
        let found = Whereabouts::of(flow, &flow.sources[0], positions, &LakeOptions::default());
        (found.app_id.clone(), found.position())
    }

    #[test]
    fn a_flow_alone_with_its_source_keeps_its_position_whatever_it_is_called() {
        let there = positions(&[("tributary:source:bronze.a", 7)]);
        for name in ["t", "another"] {
            assert_eq!(whereabouts(&flow(name, "a"), &there), ("tributary:source:bronze.a".to_owned(), Some(7)));
        }
        assert_eq!(whereabouts(&flow("b", "b"), &there).1, None);
        assert!(plan_share(&[flow("a", "a"), flow("b", "b")], &there).is_empty());
    }

    #[test]
    fn the_first_of_two_flows_over_a_source_goes_on_from_its_position_and_the_other_begins() {
        let mut there = positions(&[("tributary:source:bronze.a", 7)]);
        let taken = plan_share(&[flow("one", "a"), flow("two", "a")], &there);
        let of = |progress: &Progress| (progress.app_id.clone(), progress.version);
        assert_eq!(taken.iter().map(of).collect::<Vec<_>>()[0], ("tributary:flow:one:bronze.a".to_owned(), 7));
        there.0.extend(taken.iter().map(of));
        assert!(plan_share(&[flow("new", "a"), flow("one", "a"), flow("two", "a")], &there).is_empty());
        assert_eq!(whereabouts(&flow("one", "a"), &there).1, Some(7));
        for name in ["two", "new"] {
            assert_eq!(whereabouts(&flow(name, "a"), &there).1, None, "{name} has read nothing yet");
        }
    }

    #[test]
    fn a_flow_set_back_begins_at_the_start_and_is_set_back_once() {
        let there = positions(&[("tributary:source:bronze.a", 7), ("tributary:once:fill", 3), ("tributary:source:bronze.b", NOTHING)]);
        let back = there.set_back("tributary:source:bronze.a");
        assert_eq!(back, [Progress { app_id: "tributary:once:fill".to_owned(), expected: Some(3), version: NOTHING }]);
        assert_eq!(whereabouts(&flow("b", "b"), &there).1, None);
    }
}
