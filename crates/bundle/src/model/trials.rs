//! What a file of tests holds.

use super::Kind::{Any, List, Map, Object as Of, Text};
use super::{ANYS, Object, TEXTS};

/// The file.
pub(crate) static FILE: Object = Object {
    fields: &[("columns", Map(&Map(&Text))), ("dataset", Text), ("keys", TEXTS), ("tests", List(&Of(&TEST)))],
    needed: &["dataset", "tests"],
};

static TEST: Object =
    Object { fields: &[("expect", Any), ("fails", Text), ("given", ANYS), ("name", Text), ("then", List(&Of(&RUN)))], needed: &["name"] };

static RUN: Object = Object { fields: &[("expect", Any), ("fails", Text), ("given", ANYS)], needed: &[] };
