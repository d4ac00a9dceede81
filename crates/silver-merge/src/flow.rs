//! Where a flow of a table has got to in its source, kept in the table's commits.
//!
//! - The flow that is called as its table keeps its position as `tributary:source:<source>`.
//! - A flow with a name of its own keeps it as `tributary:flow:<flow>:<source>`, from its first commit on.
//! - A flow that runs once keeps the version it has read as `tributary:once:<flow>`.
//! - A flow with a watermark keeps the greatest event time it has read beside its position, as `tributary:watermark:…`.
//!
//! So a flow's position is known by the flow, wherever it stands in a file and whatever other flows there are. Releases before kept the
//! position of an only flow by its source, whatever it was called: [`take_over`] gives it to the flow it is of, and what says so
//! (`tributary:taken:<source>`) stays, so that a flow which is called as the table and comes later does not take it for its own.
//!
//! A full refresh sets every other flow back to [`NOTHING`], from which it begins anew.

use std::collections::BTreeMap;

use tributary_lake::{LakeOptions, Progress, Table};
use tributary_specs::{SilverSpec, TableName};

use crate::controls;
use crate::error::{Error, Result};

/// How the application ids of whatever is written by us begin.
const OURS: &str = "tributary:";
/// The same of records that feeds bring: of files, topics and record sources.
const FEED_PREFIXES: [&str; 3] = ["tributary:file:", "tributary:kafka:", "tributary:custom:"];
/// How the application id of a consumed source begins.
const SOURCE_PREFIX: &str = "tributary:source:";
/// The same for what tells which table that source is.
const SOURCE_ID_PREFIX: &str = "tributary:source-id:";
const FLOW_PREFIX: &str = "tributary:flow:";
const FLOW_ID_PREFIX: &str = "tributary:flow-id:";
const ONCE_PREFIX: &str = "tributary:once:";
const ONCE_ID_PREFIX: &str = "tributary:once-id:";
/// The position kept by a source's name was given to a flow with a name of its own.
const TAKEN_PREFIX: &str = "tributary:taken:";

/// The position of a flow that is to begin anew.
pub(crate) const NOTHING: i64 = -1;

/// The versions of source tables that a table made from them has taken up, one a flow; a view's too.
///
/// # Errors
/// Store errors.
pub async fn consumed(table: &Table) -> tributary_lake::Result<Vec<(TableName, u64)>> {
    Ok(consumed_by(&Positions::of(Some(table)).await?))
}

fn consumed_by(positions: &Positions) -> Vec<(TableName, u64)> {
    let of = |(app_id, version): (&str, i64)| {
        let by_source = app_id.strip_prefix(SOURCE_PREFIX);
        let by_flow = app_id.strip_prefix(FLOW_PREFIX).and_then(|flow| Some(flow.rsplit_once(':')?.1));
        let source: TableName = by_source.or(by_flow)?.parse().ok()?;
        let is_now = by_source.is_none() || !positions.is_taken(&source);
        is_now.then_some((source, u64::try_from(version).ok()?))
    };
    positions.of_flows().filter_map(of).collect()
}

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
    /// Of a flow over `source`.
    pub fn of(flow: &SilverSpec, source: &TableName, positions: &Positions, options: &LakeOptions) -> Self {
        let name = flow.flow_name();
        let by_source = is_default(flow) && !positions.is_taken(source) || controls::flows_share_one_position(options);
        let (app_id, id_app_id) = if flow.once {
            (format!("{ONCE_PREFIX}{name}"), format!("{ONCE_ID_PREFIX}{name}"))
        } else if by_source {
            (format!("{SOURCE_PREFIX}{source}"), format!("{SOURCE_ID_PREFIX}{source}"))
        } else {
            (named(name, source), named_id(name, source))
        };
        let recorded = positions.get(&app_id);
        Self { app_id, id_app_id, recorded }
    }

    /// The version consumed; none where the flow is to begin at the start.
    pub fn position(&self) -> Option<i64> {
        self.recorded.filter(|recorded| *recorded > NOTHING)
    }

    /// Whether a full refresh has set the flow back, and it has not begun anew yet.
    pub fn is_set_back(&self) -> bool {
        self.recorded == Some(NOTHING)
    }

    /// How rows of `_state` name the flow: its source, where that tells.
    pub fn label(&self) -> &str {
        label(&self.app_id)
    }
}

/// Whether a flow is called as its table.
fn is_default(flow: &SilverSpec) -> bool {
    flow.flow_name().eq_ignore_ascii_case(&flow.table.name)
}

fn named(flow: &str, source: &TableName) -> String {
    format!("{FLOW_PREFIX}{flow}:{source}")
}

fn named_id(flow: &str, source: &TableName) -> String {
    format!("{FLOW_ID_PREFIX}{flow}:{source}")
}

fn label(app_id: &str) -> &str {
    app_id.strip_prefix(SOURCE_PREFIX).or_else(|| app_id.strip_prefix(OURS)).unwrap_or(app_id)
}

/// The positions of all flows that a table has ever had, and what is kept beside them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Positions(BTreeMap<String, i64>);

impl Positions {
    /// As the table has them.
    ///
    /// # Errors
    /// Store errors.
    pub async fn of(table: Option<&Table>) -> tributary_lake::Result<Self> {
        match table {
            Some(table) => table.progress_with_prefix(OURS).await.map(Self),
            None => Ok(Self::default()),
        }
    }

    /// As they are once a commit has said so.
    pub fn after(mut self, progress: &[Progress]) -> Self {
        self.0.extend(progress.iter().map(|Progress { app_id, version, .. }| (app_id.clone(), *version)));
        self
    }

    fn get(&self, app_id: &str) -> Option<i64> {
        self.0.get(app_id).copied()
    }

    /// Those of flows, by application id.
    fn of_flows(&self) -> impl Iterator<Item = (&str, i64)> {
        let is_of_flow = |app_id: &str| [SOURCE_PREFIX, FLOW_PREFIX, ONCE_PREFIX].iter().any(|prefix| app_id.starts_with(prefix));
        self.0.iter().map(|(app_id, position)| (app_id.as_str(), *position)).filter(move |(app_id, _)| is_of_flow(app_id))
    }

    /// Whether a feed has filled the table.
    pub fn are_of_feed(&self) -> bool {
        self.0.keys().any(|app_id| FEED_PREFIXES.iter().any(|prefix| app_id.starts_with(prefix)))
    }

    /// The greatest event time that a flow has read, where it has a watermark, in microseconds.
    pub fn watermark(&self, app_id: &str) -> Option<i64> {
        self.get(app_id)
    }

    fn is_taken(&self, source: &TableName) -> bool {
        self.0.contains_key(&format!("{TAKEN_PREFIX}{source}"))
    }

    /// Whether a flow with a name of its own has read a source.
    fn is_named(&self, source: &TableName) -> bool {
        let ending = format!(":{source}");
        self.of_flows().any(|(app_id, _)| app_id.starts_with(FLOW_PREFIX) && app_id.ends_with(&ending))
    }

    /// The position by the label of a flow.
    pub fn reached(&self) -> BTreeMap<String, i64> {
        self.of_flows().map(|(app_id, position)| (label(app_id).to_owned(), position)).collect()
    }

    /// What sets every flow but one back to its start.
    pub fn set_back(&self, but: &str) -> Vec<Progress> {
        let others = self.of_flows().filter(|(app_id, position)| *app_id != but && *position > NOTHING);
        others.map(|(app_id, position)| Progress { app_id: app_id.to_owned(), expected: Some(position), version: NOTHING }).collect()
    }
}

/// What gives positions that releases before have kept by the source's name to the flows they are of: each to the only flow over its
/// source, where that has a name of its own. Empty where nothing is to be done.
///
/// # Errors
/// [`Error::FlowUnknown`] where several flows have come to such a source, so that nothing tells whose position it is.
pub(crate) fn take_over(flows: &[SilverSpec], positions: &Positions) -> Result<Vec<Progress>> {
    let mut over: BTreeMap<&TableName, Vec<&SilverSpec>> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| !flow.once) {
        if let Some(source) = flow.sources.first() {
            over.entry(source).or_default().push(flow);
        }
    }
    let mut progress = Vec::new();
    for (source, flows) in over {
        let app_id = format!("{SOURCE_PREFIX}{source}");
        let Some(position) = positions.get(&app_id).filter(|position| *position > NOTHING) else { continue };
        if positions.is_taken(source) || positions.is_named(source) || flows.iter().any(|flow| is_default(flow)) {
            continue;
        }
        let [flow] = flows.as_slice() else {
            let names = flows.iter().map(|flow| flow.flow_name().to_owned()).collect();
            return Err(Error::FlowUnknown {
                table: flows[0].table.clone(),
                source_table: Box::new(source.clone()),
                position,
                flows: names,
            });
        };
        let first = |app_id, version| Progress { app_id, expected: None, version };
        progress.push(first(named(flow.flow_name(), source), position));
        progress.push(first(format!("{TAKEN_PREFIX}{source}"), position));
        let identity = positions.get(&format!("{SOURCE_ID_PREFIX}{source}"));
        progress.extend(identity.map(|identity| first(named_id(flow.flow_name(), source), identity)));
        // Who still knows the position by the source's name is fenced.
        progress.push(Progress { app_id, expected: Some(position), version: position });
    }
    Ok(progress)
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
    fn a_position_is_known_by_its_flow_whatever_other_flows_there_are() {
        let there = positions(&[("tributary:source:bronze.a", 7), ("tributary:flow:x:bronze.a", 5)]);
        assert_eq!(whereabouts(&flow("t", "a"), &there), ("tributary:source:bronze.a".to_owned(), Some(7)));
        assert_eq!(whereabouts(&flow("x", "a"), &there), ("tributary:flow:x:bronze.a".to_owned(), Some(5)));
        assert_eq!(whereabouts(&flow("y", "a"), &there), ("tributary:flow:y:bronze.a".to_owned(), None));
        for flows in [vec![flow("x", "a"), flow("t", "a")], vec![flow("y", "a"), flow("x", "a")]] {
            assert_eq!(take_over(&flows, &there).unwrap(), [], "they are known by their names");
        }
    }

    #[test]
    fn a_position_kept_by_its_source_goes_over_to_the_only_flow_there_and_to_no_other() {
        let mut there = positions(&[("tributary:source:bronze.a", 7)]);
        there.0.insert("tributary:source-id:bronze.a".to_owned(), 99);
        let taken = take_over(&[flow("x", "a"), flow("y", "b")], &there).unwrap();
        let there = there.after(&taken);
        assert_eq!(there.get("tributary:flow-id:x:bronze.a"), Some(99));
        assert_eq!(whereabouts(&flow("x", "a"), &there).1, Some(7));
        for name in ["t", "z"] {
            assert_eq!(whereabouts(&flow(name, "a"), &there).1, None, "{name} has read nothing yet");
        }
        assert_eq!(there.reached().get("bronze.a"), Some(&7), "what was remembered by the old name still counts");
        assert_eq!(take_over(&[flow("z", "a"), flow("x", "a")], &there).unwrap(), []);
    }

    #[test]
    fn a_position_that_is_of_one_of_several_flows_is_given_to_none() {
        let there = positions(&[("tributary:source:bronze.a", 7)]);
        let error = take_over(&[flow("x", "a"), flow("y", "a")], &there).unwrap_err();
        assert!(matches!(&error, Error::FlowUnknown { flows, position: 7, .. } if flows == &["x", "y"]), "{error}");
        assert_eq!(take_over(&[flow("x", "a"), flow("t", "a")], &there).unwrap(), [], "it is the one of the flow called as the table");
        let mut fill = flow("y", "a");
        fill.once = true;
        assert_eq!(take_over(&[flow("x", "a"), fill], &there).unwrap().len(), 3, "a flow that runs once is known by its name");
    }

    #[test]
    fn what_is_consumed_is_told_by_source_whoever_reads_it() {
        let mut there = positions(&[
            ("tributary:source:bronze.a", 7),
            ("tributary:flow:x:bronze.a", 9),
            ("tributary:flow:x:y:bronze.b", 3),
            ("tributary:flow:z:bronze.b", NOTHING),
            ("tributary:once:fill", 3),
        ]);
        let (a, b) = (TableName::new("bronze", "a"), TableName::new("bronze", "b"));
        assert_eq!(consumed_by(&there), [(a.clone(), 9), (b.clone(), 3), (a.clone(), 7)]);
        there.0.insert("tributary:taken:bronze.a".to_owned(), 7);
        assert_eq!(consumed_by(&there), [(a, 9), (b, 3)], "another position stands for the one taken over");
    }

    #[test]
    fn a_table_of_a_feed_is_told_whatever_the_feed_reads() {
        for app_id in ["tributary:file:f:ab", "tributary:kafka:f:t:0", "tributary:custom:f:0"] {
            assert!(positions(&[(app_id, 1)]).are_of_feed(), "{app_id}");
        }
        assert!(!positions(&[("tributary:source:bronze.a", 7), ("tributary:state:silver.t", 3)]).are_of_feed());
    }

    #[test]
    fn a_flow_set_back_begins_at_the_start_and_is_set_back_once() {
        let there = positions(&[("tributary:source:bronze.a", 7), ("tributary:once:fill", 3), ("tributary:source:bronze.b", NOTHING)]);
        let back = there.set_back("tributary:source:bronze.a");
        assert_eq!(back, [Progress { app_id: "tributary:once:fill".to_owned(), expected: Some(3), version: NOTHING }]);
        assert_eq!(whereabouts(&flow("t", "b"), &there).1, None);
    }
}
