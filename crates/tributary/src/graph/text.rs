//! The graph as text. Pure.

use std::fmt::Write as _;

use super::{Graph, GraphNode, NodeKind};
use crate::amounts::count;
use crate::lineage::{ColumnLineage, ColumnSource, Manner};

impl Graph {
    /// The graph as text: a paragraph a dataset with its flows and, column by column, what they come from.
    ///
    /// ```no_run
    /// # fn f(graph: tributary::Graph) {
    /// print!("{}", graph.to_text());
    /// # }
    /// ```
    pub fn to_text(&self) -> String {
        let datasets = self.nodes.iter().filter(|node| is_dataset(node));
        let mut text = format!(
            "pipeline {}, catalogue {}: {}, {}, {}\n",
            self.pipeline,
            self.catalogue,
            count(datasets.clone().count() as u64, "dataset"),
            count(self.edges().len() as u64, "table edge"),
            count(self.column_edges() as u64, "column edge"),
        );
        for node in datasets {
            let _ = writeln!(text, "\n{}  {}{}", node.name, node.how, last_run(node));
            for flow in &node.flows {
                let _ = writeln!(text, "  <- {}{}", flow.reads.join(", "), named(node, &flow.name));
            }
            let width = node.lineage.columns.iter().map(|column| column.column.chars().count()).max().unwrap_or_default();
            for column in &node.lineage.columns {
                let _ = writeln!(text, "  {:width$}  {}", column.column, origins(column));
            }
        }
        text
    }
}

pub(super) fn is_dataset(node: &GraphNode) -> bool {
    matches!(node.kind, NodeKind::Bronze | NodeKind::Silver | NodeKind::Gold)
}

/// The flow's name where it says more than the table's.
fn named(node: &GraphNode, flow: &str) -> String {
    if node.name.ends_with(&format!(".{flow}")) { String::new() } else { format!("  (flow {flow})") }
}

fn last_run(node: &GraphNode) -> String {
    match &node.last_run {
        None => String::new(),
        Some(run) if run.status == "committed" => {
            format!(", last run: {} in, {} out", count(run.rows_in.unwrap_or_default(), "row"), run.rows_out.unwrap_or_default())
        }
        Some(run) => format!(", last run: {}", run.status),
    }
}

/// What is said under a node's name.
pub(super) fn subtitle(node: &GraphNode) -> String {
    match &node.last_run {
        Some(run) if run.status == "committed" => format!("{} · {} out", node.how, count(run.rows_out.unwrap_or_default(), "row")),
        Some(run) => format!("{} · {}", node.how, run.status),
        None => node.how.clone(),
    }
}

/// Where a column comes from, in one line.
fn origins(column: &ColumnLineage) -> String {
    let of = |from: &ColumnSource| match from.manner {
        Manner::Identity => format!("{}.{}", from.source, from.column),
        Manner::Transformation => format!("f({}.{})", from.source, from.column),
        Manner::Aggregation => format!("agg({}.{})", from.source, from.column),
    };
    column.from.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// A text as HTML has it, and labels of Mermaid, which are HTML too.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
