//! Circles in what waits for what.

use std::collections::{BTreeMap, BTreeSet};

/// Every circle once, the way round with its first node at both ends; the first node is the first in the graph's order. A name
/// that stands twice is taken once; what is waited for and is not there is no edge.
pub(crate) fn circles(graph: &[(&str, Vec<String>)]) -> Vec<Vec<String>> {
    let mut number = BTreeMap::new();
    for (at, (name, _)) in graph.iter().enumerate() {
        number.entry(*name).or_insert(at);
    }
    let edges: Vec<Vec<usize>> =
        graph.iter().map(|(_, waits)| waits.iter().filter_map(|name| number.get(name.as_str()).copied()).collect()).collect();
    // A walk along the edges. A node is left behind when it leads nowhere any more, or when its circle has been found.
    let mut next: Vec<usize> = vec![0; graph.len()];
    let mut settled: Vec<bool> = vec![false; graph.len()];
    let mut place: Vec<Option<usize>> = vec![None; graph.len()];
    let mut found = Vec::new();
    for start in number.values().copied().collect::<BTreeSet<_>>() {
        let mut way: Vec<usize> = if settled[start] { Vec::new() } else { vec![start] };
        place[start] = Some(0);
        while let Some(at) = way.last().copied() {
            match edges[at].get(next[at]).copied() {
                None => {
                    settled[at] = true;
                    place[at] = None;
                    way.pop();
                }
                Some(to) if settled[to] => next[at] += 1,
                Some(to) => match place[to] {
                    Some(begin) => {
                        let round = way.split_off(begin);
                        for at in &round {
                            settled[*at] = true;
                            place[*at] = None;
                        }
                        found.push(round);
                    }
                    None => {
                        place[to] = Some(way.len());
                        way.push(to);
                    }
                },
            }
        }
        place[start] = None;
    }
    found.iter().map(|round| named(round, graph)).collect()
}

/// Names of a circle, the first in the graph's order at both ends.
fn named(round: &[usize], graph: &[(&str, Vec<String>)]) -> Vec<String> {
    let first = round.iter().enumerate().min_by_key(|(_, at)| **at).map_or(0, |(place, _)| place);
    let (before, after) = round.split_at(first);
    after.iter().chain(before).chain(after.first()).map(|at| graph[*at].0.to_owned()).collect()
}

/// The way round as it is read; the middle of a long one is left out.
pub(crate) fn shown(way: &[String]) -> String {
    match way {
        [first, rest @ .., last] if rest.len() > 20 => format!("{first} -> {} -> … -> {last}", rest[..18].join(" -> ")),
        _ => way.join(" -> "),
    }
}

#[cfg(test)]
mod tests {
    use super::circles;

    fn found(edges: &[(&str, &[&str])]) -> Vec<String> {
        let graph: Vec<(&str, Vec<String>)> =
            edges.iter().map(|(name, waits)| (*name, waits.iter().map(|wait| (*wait).to_owned()).collect())).collect();
        circles(&graph).iter().map(|way| way.join(" -> ")).collect()
    }

    #[test]
    fn each_circle_is_found_once_and_tails_are_none() {
        assert_eq!(found(&[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &[]), ("e", &["a"])]), ["a -> b -> c -> a"]);
        assert_eq!(found(&[("a", &["a"]), ("b", &["c"]), ("c", &["b"])]), ["a -> a", "b -> c -> b"]);
        assert_eq!(found(&[("e", &["a"]), ("a", &["b"]), ("b", &["a"])]), ["a -> b -> a"]);
        assert_eq!(found(&[("a", &["gone"]), ("b", &["a"])]), Vec::<String>::new());
    }
}
