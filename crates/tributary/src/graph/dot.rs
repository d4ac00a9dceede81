//! The graph in the language of Graphviz. Pure.

use std::fmt::Write as _;

use super::text::subtitle;
use super::{Graph, NodeKind};

impl Graph {
    /// The graph in DOT: `dot -Tsvg`.
    ///
    /// ```no_run
    /// # fn f(graph: tributary::Graph) -> std::io::Result<()> {
    /// std::fs::write("graph.dot", graph.to_dot())
    /// # }
    /// ```
    pub fn to_dot(&self) -> String {
        let mut text = format!("digraph {} {{\n  rankdir=LR;\n", quoted(&self.pipeline));
        text.push_str("  node [fontname=\"sans-serif\", fontsize=11, style=filled, color=\"#8a8f98\"];\n  edge [color=\"#8a8f98\"];\n");
        for node in &self.nodes {
            let (shape, fill) = match node.kind {
                NodeKind::Files => ("folder", "#eceff3"),
                NodeKind::Stream => ("cds", "#eceff3"),
                NodeKind::External => ("cylinder", "#eceff3"),
                NodeKind::Bronze => ("box", "#f6e3d0"),
                NodeKind::Silver => ("box", "#e3e8ee"),
                NodeKind::Gold => ("box", "#fbf0c4"),
            };
            let label = format!("{}\n{}", node.name, subtitle(node));
            let _ = writeln!(text, "  {} [shape={shape}, fillcolor=\"{fill}\", label={}];", quoted(&node.name), quoted(&label));
        }
        for (from, to) in self.edges() {
            let _ = writeln!(text, "  {} -> {};", quoted(&self.nodes[from].name), quoted(&self.nodes[to].name));
        }
        text.push_str("}\n");
        text
    }
}

/// A text in quotes, as DOT reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
