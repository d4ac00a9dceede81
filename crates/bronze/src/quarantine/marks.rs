//! Single records of a quarantine, as a commit of bronze names those that it took.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::Spot;

/// One record of a quarantine: its place, and when it was first refused, since a topic made again has the same places once more.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub spot: Spot,
    pub first_seen_us: i64,
}

/// Marks of one content or partition that were first seen at one time, as a commit keeps them.
#[derive(Debug, Serialize, Deserialize)]
struct Group {
    #[serde(flatten)]
    of: Shared,
    /// Lines, positions or offsets.
    places: Vec<i64>,
}

/// What the marks of one group have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Shared {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<i32>,
    first_seen_us: i64,
}

impl Mark {
    /// Marks as the text of a metadata domain.
    pub(crate) fn all_to_text(marks: &[Self]) -> String {
        let mut groups: BTreeMap<Shared, Vec<i64>> = BTreeMap::new();
        for mark in marks {
            let (of, place) = mark.parts();
            groups.entry(of).or_default().push(place);
        }
        let groups: Vec<Group> = groups.into_iter().map(|(of, places)| Group { of, places }).collect();
        serde_json::json!(groups).to_string()
    }

    /// The marks of such a text; none when it is no such text.
    pub(crate) fn all_from_text(text: &str) -> Option<HashSet<Self>> {
        let groups: Vec<Group> = serde_json::from_str(text).ok()?;
        groups.iter().flat_map(|Group { of, places }| places.iter().map(|place| Self::of_parts(of, *place))).collect()
    }

    fn parts(&self) -> (Shared, i64) {
        let shared = |content, topic, partition| Shared { content, topic, partition, first_seen_us: self.first_seen_us };
        match &self.spot {
            Spot::Content(content, line) => (shared(Some(content.clone()), None, None), *line),
            Spot::Position(partition, position) => (shared(None, None, Some(*partition)), *position),
            Spot::Offset(topic, partition, offset) => (shared(None, Some(topic.clone()), Some(*partition)), *offset),
        }
    }

    fn of_parts(of: &Shared, place: i64) -> Option<Self> {
        let spot = match (&of.content, &of.topic, of.partition) {
            (Some(content), None, None) => Spot::Content(content.clone(), place),
            (None, None, Some(partition)) => Spot::Position(partition, place),
            (None, Some(topic), Some(partition)) => Spot::Offset(topic.clone(), partition, place),
            _ => return None,
        };
        Some(Self { spot, first_seen_us: of.first_seen_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_their_text() {
        let mark = |spot, first_seen_us| Mark { spot, first_seen_us };
        let marks = [
            mark(Spot::Content("ab".to_owned(), 3), 1),
            mark(Spot::Content("ab".to_owned(), 4), 1),
            mark(Spot::Content("ab".to_owned(), 4), 2),
            mark(Spot::Position(0, 7), 1),
            mark(Spot::Offset("t".to_owned(), 0, 7), 1),
        ];
        let text = Mark::all_to_text(&marks);
        assert_eq!(Mark::all_from_text(&text), Some(marks.into_iter().collect()), "{text}");
        assert_eq!(Mark::all_from_text("no marks"), None);
        assert_eq!(Mark::all_from_text(r#"[{"first_seen_us":1,"places":[1]}]"#), None);
    }
}
