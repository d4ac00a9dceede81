//! What forbids a commit: the first problem found, and how many rows have it.

use tributary_lake::KEYS_SHOWN;

use crate::error::Error;

/// Whether the key of one more row that breaks a rule is to be named.
pub(crate) fn has_room(stop: Option<&Error>, rule: &str) -> bool {
    match stop {
        None => true,
        Some(Error::Expectation { expectation, keys, .. }) => expectation == rule && keys.len() < KEYS_SHOWN,
        Some(_) => false,
    }
}

/// Counts one more row of the first problem found.
pub(crate) fn note(stop: &mut Option<Error>, problem: impl FnOnce() -> Error) {
    let mut found = problem();
    if let Error::NullKey { rows, .. } | Error::NullSequence { rows, .. } | Error::Expectation { rows, .. } = &mut found {
        *rows = 1;
    }
    join_stops(stop, Some(found));
}

/// Adds what was found later to what forbids the commit already, where it is the same.
pub(crate) fn join_stops(first: &mut Option<Error>, later: Option<Error>) {
    match (first.as_mut(), later) {
        (None, later) => *first = later,
        (Some(Error::NullKey { rows, .. }), Some(Error::NullKey { rows: more, .. }))
        | (Some(Error::NullSequence { rows, .. }), Some(Error::NullSequence { rows: more, .. })) => *rows += more,
        (
            Some(Error::Expectation { expectation, rows, keys, .. }),
            Some(Error::Expectation { expectation: other, rows: more, keys: more_keys, .. }),
        ) if *expectation == other => {
            *rows += more;
            keys.extend(more_keys);
            keys.truncate(KEYS_SHOWN);
        }
        _ => {}
    }
}
