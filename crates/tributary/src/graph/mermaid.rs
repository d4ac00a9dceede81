//! The graph in the language of Mermaid, which Markdown pages draw. Pure.

use std::fmt::Write as _;

use super::text::{escaped, subtitle};
use super::{Graph, NodeKind};

impl Graph {
    /// The graph as a Mermaid flow chart.
    ///
    /// ```no_run
    /// # fn f(graph: tributary::Graph) {
    /// println!("```mermaid\n{}```", graph.to_mermaid());
    /// # }
    /// ```
    pub fn to_mermaid(&self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        for (at, node) in self.nodes.iter().enumerate() {
            let label = format!("{}<br/><small>{}</small>", escaped(&node.name), escaped(&subtitle(node)));
            let (open, close, class) = match node.kind {
                NodeKind::Files => ("[/", "/]", "outside"),
                NodeKind::Stream => ("([", "])", "outside"),
                NodeKind::External => ("[(", ")]", "outside"),
                NodeKind::Bronze => ("[", "]", "bronze"),
                NodeKind::Silver => ("[", "]", "silver"),
                NodeKind::Gold => ("[", "]", "gold"),
            };
            let _ = writeln!(text, "  n{at}{open}\"{label}\"{close}:::{class}");
        }
        for (from, to) in self.edges() {
            let _ = writeln!(text, "  n{from} --> n{to}");
        }
        text.push_str(
            "  classDef outside fill:#eceff3,stroke:#8a8f98,color:#1c2026\n  classDef bronze fill:#f6e3d0,stroke:#b5702f,color:#1c2026\n  \
             classDef silver fill:#e3e8ee,stroke:#6b7a8c,color:#1c2026\n  classDef gold fill:#fbf0c4,stroke:#b3901d,color:#1c2026\n",
        );
        text
    }
}
