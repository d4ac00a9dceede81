//! Where the nodes of a graph stand: in layers from left to right, each behind everything it reads. Pure.
//!
//! An edge over several layers passes through places of its own in those between, so that it goes around their nodes. The order in each
//! layer is that of the middles of what its nodes are tied to, swept back and forth, and the best of the orders is kept.

use std::collections::BTreeMap;

/// Sizes in pixels.
pub(super) const NODE_WIDTH: f64 = 232.0;
pub(super) const NODE_HEIGHT: f64 = 58.0;
const LAYER_GAP: f64 = 96.0;
const NODE_GAP: f64 = 26.0;
/// The height of a place that an edge passes through.
const WAY_HEIGHT: f64 = 10.0;
const MARGIN: f64 = 28.0;
const SWEEPS: usize = 24;

/// Where everything stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// Of each node the upper left corner.
    pub nodes: Vec<(f64, f64)>,
    /// Of each edge, in the order given, the points it passes: from the right side of its first node to the left side of its last.
    pub edges: Vec<Vec<(f64, f64)>>,
    pub width: f64,
    pub height: f64,
}

/// Something that takes a place in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Node(usize),
    /// An edge passes through: its number and the layer.
    Way(usize, usize),
}

/// Lays out `count` nodes with these edges, which have no circles.
pub(super) fn layout(count: usize, edges: &[(usize, usize)]) -> Layout {
    let level = levels(count, edges);
    let depth = level.iter().copied().max().map_or(0, |deepest| deepest + 1);
    let mut layers: Vec<Vec<Item>> = vec![Vec::new(); depth];
    (0..count).for_each(|node| layers[level[node]].push(Item::Node(node)));
    let mut ties: Vec<(Item, Item)> = Vec::new();
    let mut ways: Vec<Vec<Item>> = Vec::new();
    for (number, (from, to)) in edges.iter().enumerate() {
        let mut way = vec![Item::Node(*from)];
        for (between, layer) in layers.iter_mut().enumerate().take(level[*to]).skip(level[*from] + 1) {
            let item = Item::Way(number, between);
            layer.push(item);
            way.push(item);
        }
        way.push(Item::Node(*to));
        ties.extend(way.windows(2).map(|pair| (pair[0], pair[1])));
        ways.push(way);
    }
    let layers = ordered(layers, &ties);
    let middles = placed(&layers, &ties);
    let at = |item: &Item| middles.get(item).copied().unwrap_or_default();
    let top = middles.iter().map(|(item, middle)| middle - height(*item) / 2.0).fold(f64::INFINITY, f64::min);
    let bottom = middles.iter().map(|(item, middle)| middle + height(*item) / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let top = if top.is_finite() { top } else { 0.0 };
    let x = |layer: usize| MARGIN + layer as f64 * (NODE_WIDTH + LAYER_GAP);
    let y = |item: &Item| at(item) - top + MARGIN;
    let nodes = (0..count).map(|node| (x(level[node]), y(&Item::Node(node)) - NODE_HEIGHT / 2.0)).collect();
    let points = ways.iter().zip(edges).map(|(way, (from, to))| {
        let through = way.iter().filter_map(|item| match item {
            Item::Node(_) => None,
            Item::Way(_, layer) => Some([(x(*layer), y(item)), (x(*layer) + NODE_WIDTH, y(item))]),
        });
        let mut points = vec![(x(level[*from]) + NODE_WIDTH, y(&Item::Node(*from)))];
        points.extend(through.flatten());
        points.push((x(level[*to]), y(&Item::Node(*to))));
        points
    });
    Layout {
        nodes,
        edges: points.collect(),
        width: x(depth.max(1) - 1) + NODE_WIDTH + MARGIN,
        height: if bottom.is_finite() { bottom - top + 2.0 * MARGIN } else { 2.0 * MARGIN },
    }
}

/// Each node one layer behind the last that it reads; what is read by nobody else stands next to its first reader.
fn levels(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut level = vec![0; count];
    for _ in 0..count {
        let mut moved = false;
        for (from, to) in edges {
            if level[*to] <= level[*from] {
                level[*to] = (level[*from] + 1).min(count);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for node in 0..count {
        let is_first = !edges.iter().any(|(_, to)| *to == node);
        let nearest = edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| level[*to]).min();
        if let (true, Some(nearest)) = (is_first, nearest) {
            level[node] = nearest.saturating_sub(1);
        }
    }
    level
}

fn height(item: Item) -> f64 {
    match item {
        Item::Node(_) => NODE_HEIGHT,
        Item::Way(..) => WAY_HEIGHT,
    }
}

type Neighbours = BTreeMap<Item, Vec<Item>>;

fn neighbours(ties: &[(Item, Item)]) -> (Neighbours, Neighbours) {
    let (mut before, mut after) = (Neighbours::new(), Neighbours::new());
    for (from, to) in ties {
        before.entry(*to).or_default().push(*from);
        after.entry(*from).or_default().push(*to);
    }
    (before, after)
}

/// The layers in the order with the fewest crossings that sweeping finds.
fn ordered(mut layers: Vec<Vec<Item>>, ties: &[(Item, Item)]) -> Vec<Vec<Item>> {
    let (before, after) = neighbours(ties);
    let mut best = (crossings(&layers, ties), layers.clone());
    for sweep in 0..SWEEPS {
        let forward = sweep % 2 == 0;
        let order: Vec<usize> = if forward { (1..layers.len()).collect() } else { (0..layers.len().saturating_sub(1)).rev().collect() };
        for layer in order {
            let fixed = if forward { &layers[layer - 1] } else { &layers[layer + 1] };
            let place: BTreeMap<Item, usize> = fixed.iter().enumerate().map(|(at, item)| (*item, at)).collect();
            let tied = if forward { &before } else { &after };
            let middle = |at: usize, item: &Item| {
                let places: Vec<usize> = tied.get(item).into_iter().flatten().filter_map(|other| place.get(other)).copied().collect();
                // what is tied to nothing there keeps its place
                if places.is_empty() { at as f64 } else { places.iter().sum::<usize>() as f64 / places.len() as f64 }
            };
            let mut with_middles: Vec<(f64, Item)> = layers[layer].iter().enumerate().map(|(at, item)| (middle(at, item), *item)).collect();
            with_middles.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            layers[layer] = with_middles.into_iter().map(|(_, item)| item).collect();
        }
        let found = crossings(&layers, ties);
        if found < best.0 {
            best = (found, layers.clone());
        }
    }
    best.1
}

/// How many pairs of ties between neighbouring layers cross.
fn crossings(layers: &[Vec<Item>], ties: &[(Item, Item)]) -> usize {
    let place: BTreeMap<Item, (usize, usize)> =
        layers.iter().enumerate().flat_map(|(layer, items)| items.iter().enumerate().map(move |(at, item)| (*item, (layer, at)))).collect();
    let mut by_layer: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (from, to) in ties {
        if let (Some((layer, from)), Some((_, to))) = (place.get(from), place.get(to)) {
            by_layer.entry(*layer).or_default().push((*from, *to));
        }
    }
    let crossing =
        |one: &(usize, usize), other: &(usize, usize)| (one.0 < other.0 && one.1 > other.1) || (one.0 > other.0 && one.1 < other.1);
    let of_layer = |pairs: &Vec<(usize, usize)>| {
        pairs.iter().enumerate().map(|(at, one)| pairs[at + 1..].iter().filter(|other| crossing(one, other)).count()).sum::<usize>()
    };
    by_layer.values().map(of_layer).sum()
}

/// The middle of each item: near those of what it is tied to, in its layer's order, nothing overlapping.
fn placed(layers: &[Vec<Item>], ties: &[(Item, Item)]) -> BTreeMap<Item, f64> {
    let (before, after) = neighbours(ties);
    let mut middles = BTreeMap::new();
    for layer in layers {
        let mut next = 0.0;
        for item in layer {
            middles.insert(*item, next + height(*item) / 2.0);
            next += height(*item) + NODE_GAP;
        }
    }
    for round in 0..SWEEPS {
        let forward = round % 2 == 0;
        let order: Vec<usize> = if forward { (0..layers.len()).collect() } else { (0..layers.len()).rev().collect() };
        for layer in order {
            let tied = if forward { &before } else { &after };
            let wanted: Vec<f64> = layers[layer]
                .iter()
                .map(|item| {
                    let of: Vec<f64> = tied.get(item).into_iter().flatten().filter_map(|other| middles.get(other)).copied().collect();
                    let own = middles.get(item).copied().unwrap_or_default();
                    if of.is_empty() { own } else { of.iter().sum::<f64>() / of.len() as f64 }
                })
                .collect();
            for (item, middle) in layers[layer].iter().zip(apart(&layers[layer], &wanted)) {
                middles.insert(*item, middle);
            }
        }
    }
    middles
}

/// Middles in order and apart, as near to the wanted ones as their neighbours let them be: items that push each other stand together
/// around the middle of what they want.
fn apart(items: &[Item], wanted: &[f64]) -> Vec<f64> {
    struct Block {
        first: usize,
        /// Sum over its items of where each wants the first to be.
        sum: f64,
        count: usize,
    }
    let mut offsets = vec![0.0; items.len()];
    for at in 1..items.len() {
        offsets[at] = offsets[at - 1] + (height(items[at - 1]) + height(items[at])) / 2.0 + NODE_GAP;
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (at, want) in wanted.iter().enumerate() {
        blocks.push(Block { first: at, sum: want - offsets[at], count: 1 });
        while let [.., one, other] = blocks.as_slice() {
            if one.sum / (one.count as f64) <= other.sum / (other.count as f64) {
                break;
            }
            let (sum, count) = (other.sum, other.count);
            blocks.pop();
            if let Some(last) = blocks.last_mut() {
                last.sum += sum;
                last.count += count;
            }
        }
    }
    let mut middles = vec![0.0; items.len()];
    for block in &blocks {
        let start = block.sum / block.count as f64;
        for at in block.first..block.first + block.count {
            middles[at] = start + offsets[at];
        }
    }
    middles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaps(layout: &Layout) -> bool {
        let boxes = &layout.nodes;
        (0..boxes.len()).any(|one| {
            (one + 1..boxes.len())
                .any(|other| (boxes[one].0 - boxes[other].0).abs() < NODE_WIDTH && (boxes[one].1 - boxes[other].1).abs() < NODE_HEIGHT)
        })
    }

    #[test]
    fn every_node_stands_right_of_what_it_reads_and_none_on_another() {
        let edges = [(0, 3), (1, 3), (1, 4), (2, 4), (3, 5), (4, 5), (0, 5), (2, 6), (5, 7), (0, 7)];
        let layout = layout(8, &edges);
        assert!(edges.iter().all(|(from, to)| layout.nodes[*from].0 + NODE_WIDTH < layout.nodes[*to].0), "{layout:?}");
        assert!(!overlaps(&layout), "{layout:?}");
        let inside = |(x, y): &(f64, f64)| *x >= 0.0 && *y >= 0.0 && x + NODE_WIDTH <= layout.width && y + NODE_HEIGHT <= layout.height;
        assert!(layout.nodes.iter().all(inside));
    }

    #[test]
    fn two_lines_that_need_not_cross_do_not() {
        let layout = layout(4, &[(0, 3), (1, 2)]);
        let above = |one: usize, other: usize| layout.nodes[one].1 < layout.nodes[other].1;
        assert_eq!(above(0, 1), above(3, 2), "{layout:?}");
    }

    #[test]
    fn nothing_has_a_place_too() {
        assert_eq!(layout(0, &[]).nodes, []);
        assert_eq!(layout(1, &[]).nodes.len(), 1);
    }
}
