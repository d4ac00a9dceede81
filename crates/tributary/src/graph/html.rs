//! The graph as one HTML page: drawn here, with its own style and script, so that it opens from a disk and asks nobody for anything.

use std::fmt::Write as _;

use super::layout::{Layout, NODE_HEIGHT, NODE_WIDTH, layout};
use super::text::{escaped, is_dataset, subtitle};
use super::{Graph, GraphNode, NodeKind};
use crate::amounts::count;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Characters that fit into a node.
const TITLE_MAX: usize = 25;
const SUBTITLE_MAX: usize = 34;

impl Graph {
    /// The graph as a page: a click on a dataset shows its columns, flows and last run, and lights up what it comes from and goes into;
    /// a click on a column follows the column.
    ///
    /// ```no_run
    /// # fn f(graph: tributary::Graph) -> std::io::Result<()> {
    /// std::fs::write("graph.html", graph.to_html())
    /// # }
    /// ```
    pub fn to_html(&self) -> String {
        let edges = self.edges();
        let layout = layout(self.nodes.len(), &edges);
        let datasets = self.nodes.iter().filter(|node| is_dataset(node)).count() as u64;
        let summary = format!("{} · {}", count(datasets, "dataset"), count(self.column_edges() as u64, "column edge"));
        // no text of the data can end the script that holds it
        let data = serde_json::to_string(self).unwrap_or_default().replace('<', "\\u003c");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header>\n<h1>{name}</h1>\n<p>catalogue {catalogue} · {summary}</p>\n\
             <ul class=\"legend\"><li class=\"outside\">source</li><li class=\"bronze\">bronze</li><li class=\"silver\">silver</li><li class=\"gold\">gold</li></ul>\n\
             <input type=\"search\" id=\"search\" placeholder=\"Find a table or column\" aria-label=\"Find a table or column\">\n</header>\n\
             <main>\n{svg}<aside id=\"panel\" hidden></aside>\n</main>\n\
             <script type=\"application/json\" id=\"graph\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            name = escaped(&self.pipeline),
            catalogue = escaped(&self.catalogue),
            svg = self.svg(&edges, &layout),
        )
    }

    fn svg(&self, edges: &[(usize, usize)], layout: &Layout) -> String {
        let mut svg = format!(
            "<svg id=\"canvas\" viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"Datasets and what they read\">\n",
            layout.width, layout.height
        );
        svg.push_str(
            "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
             <path d=\"M0 0.5 L7.5 4 L0 7.5 z\"/></marker></defs>\n<g id=\"view\">\n",
        );
        for ((from, to), points) in edges.iter().zip(&layout.edges) {
            let _ = writeln!(
                svg,
                "<path class=\"edge\" data-from=\"{from}\" data-to=\"{to}\" d=\"{}\" marker-end=\"url(#arrow)\"/>",
                curve(points)
            );
        }
        for (at, (node, place)) in self.nodes.iter().zip(&layout.nodes).enumerate() {
            svg.push_str(&drawn(at, node, *place));
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }
}

/// A smooth way through the points, level at each.
fn curve(points: &[(f64, f64)]) -> String {
    let mut way = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        match at.checked_sub(1).and_then(|before| points.get(before)) {
            None => _ = write!(way, "M{x:.1} {y:.1}"),
            Some((_, from_y)) if (from_y - y).abs() < 0.05 => _ = write!(way, " L{x:.1} {y:.1}"),
            Some((from_x, from_y)) => {
                let middle = (from_x + x) / 2.0;
                let _ = write!(way, " C{middle:.1} {from_y:.1} {middle:.1} {y:.1} {x:.1} {y:.1}");
            }
        }
    }
    way
}

fn drawn(at: usize, node: &GraphNode, (x, y): (f64, f64)) -> String {
    let class = match node.kind {
        NodeKind::Files | NodeKind::Stream | NodeKind::External => "outside",
        NodeKind::Bronze => "bronze",
        NodeKind::Silver => "silver",
        NodeKind::Gold => "gold",
    };
    let failed = if node.last_run.as_ref().is_some_and(|run| run.status != "committed") { " failed" } else { "" };
    let name = escaped(&node.name);
    format!(
        "<g class=\"node {class}{failed}\" data-node=\"{at}\" transform=\"translate({x:.1} {y:.1})\" tabindex=\"0\" role=\"button\" \
         aria-label=\"{name}\"><title>{name}</title><rect class=\"box\" width=\"{NODE_WIDTH}\" height=\"{NODE_HEIGHT}\" rx=\"8\"/>\
         <path class=\"stripe\" d=\"M8 0 h-0 a8 8 0 0 0 -8 8 v{straight} a8 8 0 0 0 8 8 z\"/>\
         <text class=\"title\" x=\"20\" y=\"25\">{title}</text><text class=\"subtitle\" x=\"20\" y=\"43\">{under}</text></g>\n",
        straight = NODE_HEIGHT - 16.0,
        title = escaped(&shortened(&node.name, TITLE_MAX)),
        under = escaped(&shortened(&subtitle(node), SUBTITLE_MAX)),
    )
}

/// A text that is too long keeps its end where it is a path, its beginning where it is not.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    match text.contains('/') {
        true => format!("…{}", text.chars().skip(length - most + 1).collect::<String>()),
        false => format!("{}…", text.chars().take(most - 1).collect::<String>()),
    }
}
