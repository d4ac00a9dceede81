//! Which topics are a feed's.

use tributary_specs::{Source, SourceFeed};

/// Which topics are a feed's.
#[derive(Debug, Clone)]
pub(crate) struct Topics(Vec<String>);

impl Topics {
    pub(crate) fn of(feed: &SourceFeed) -> Self {
        match &feed.source {
            Source::Files(source) => Self(source.topics.clone()),
            Source::Kafka(source) => Self(source.topics.clone()),
            Source::Custom(_) => Self(Vec::new()),
        }
    }

    /// No topics asked for: every record, also one without a topic.
    pub(crate) fn take(&self, topic: Option<&str>) -> bool {
        self.0.is_empty() || topic.is_some_and(|topic| self.0.iter().any(|pattern| wildcard(pattern, topic)))
    }
}

/// Whether `text` is `pattern`, where `*` stands for any text, also none.
pub(crate) fn wildcard(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text
            .strip_prefix(head)
            .is_some_and(|rest| rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| wildcard(tail, &rest[at..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, topic, taken) in [
            ("shop.public.orders", "shop.public.orders", true),
            ("shop.public.*", "shop.public.orders", true),
            ("*.orders", "shop.public.orders", true),
            ("shop.*.orders", "shop.public.orders", true),
            ("*", "é", true),
            ("shop.public.order", "shop.public.orders", false),
            ("shop.*.items", "shop.public.orders", false),
            ("shop?public.orders", "shop.public.orders", false),
        ] {
            assert_eq!(wildcard(pattern, topic), taken, "{pattern} {topic}");
        }
    }
}
