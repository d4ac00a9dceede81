//! Partitions of topics.

use std::fmt;
use std::sync::Arc;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub topic: Arc<str>,
    pub partition: i32,
}

/// As messages name it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topic `{}`, partition {}", self.topic, self.partition)
    }
}

/// The partitions of a topic, by its number of them.
pub(crate) fn places_of((topic, partitions): (&String, &i32)) -> Vec<Place> {
    let topic: Arc<str> = topic.as_str().into();
    (0..*partitions).map(|partition| Place { topic: Arc::clone(&topic), partition }).collect()
}
