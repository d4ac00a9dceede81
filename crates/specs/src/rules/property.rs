//! Table properties.

use std::collections::BTreeMap;

use tributary_fault::nearest;

use super::Findings;
use crate::error::Error;
use crate::problem::Path;
use crate::properties::{CHANGE_FEED_ON, DELETE_MEMORY_SECONDS, OURS, REFUSED, RESET_ALLOWED};

/// Checks the properties of the dataset at `path`; `rows_change` = rows of the table are updated or deleted.
pub(super) fn check(findings: &mut Findings, path: &Path, properties: &BTreeMap<String, String>, rows_change: bool) {
    for (name, value) in properties {
        if let Some(reason) = reason_against(name, value, rows_change) {
            findings.add(path.field("properties").field(name), Error::PropertyRefused { property: name.clone(), reason });
        }
    }
}

fn reason_against(name: &str, value: &str, rows_change: bool) -> Option<String> {
    let refused = REFUSED.iter().find(|(refused, values, _)| {
        refused.eq_ignore_ascii_case(name) && values.is_none_or(|refused| refused.eq_ignore_ascii_case(value))
    });
    // Rows that are only added tell their changes by themselves; where rows change, the feed costs something.
    let may_go_without = rows_change && name == CHANGE_FEED_ON && value == "false";
    if let Some((_, _, reason)) = refused.filter(|_| !may_go_without) {
        return Some((*reason).to_owned());
    }
    if name.eq_ignore_ascii_case("delta.appendOnly") && value.eq_ignore_ascii_case("true") && rows_change {
        return Some("rows of this table change".to_owned());
    }
    if name.eq_ignore_ascii_case(RESET_ALLOWED) && !matches!(value.to_lowercase().as_str(), "true" | "false") {
        return Some("its value is one of true, false".to_owned());
    }
    if name == DELETE_MEMORY_SECONDS && value.parse::<u64>().is_err() {
        return Some("its value is a whole number of seconds".to_owned());
    }
    if !name.to_lowercase().starts_with("tributary.") {
        return None;
    }
    match OURS.iter().find(|(ours, _)| *ours == name) {
        Some((_, values)) if values.is_empty() || values.contains(&value) => None,
        Some((_, values)) => Some(format!("its value is one of {}", values.join(", "))),
        None => match nearest(name, OURS.iter().map(|(ours, _)| *ours)) {
            Some(near) => Some(format!("there is no such property; did you mean {near:?}?")),
            None => Some("there is no such property".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_a_feed_is_decoded_by_may_be_declared() {
        assert_eq!(reason_against("tributary.cdc.positionsBackwards", "newEpoch", false), None);
        assert_eq!(reason_against("tributary.cdc.unavailableValuePlaceholder", "any text", false), None);
        let refused = reason_against("tributary.cdc.positionsBackwards", "ignore", false);
        assert_eq!(refused.as_deref(), Some("its value is one of stop, newEpoch, accept"));
    }

    #[test]
    fn only_a_table_whose_rows_change_may_go_without_its_change_feed() {
        assert_eq!(reason_against("delta.enableChangeDataFeed", "false", true), None);
        let refused = reason_against("delta.enableChangeDataFeed", "false", false);
        assert_eq!(refused.as_deref(), Some("every table of ours whose rows are only added carries its change feed"));
    }
}
