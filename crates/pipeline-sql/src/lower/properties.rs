//! Table properties that say what the SQL dialect has no clause for; they become fields of the specs.

use std::collections::BTreeMap;

use tributary_specs::{ExpectationAction, MergePolicy, NullKeys, Place, Refresh, TableName};

use super::Lowering;
use crate::error::Error;
use crate::parsed::Definition;

/// What properties of ours say of a dataset.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Properties that are the table's.
    pub(super) table: BTreeMap<String, String>,
    pub(super) quarantine: Option<TableName>,
    /// Rules whose failing rows go to quarantine; `*` = all.
    pub(super) to_quarantine: Vec<String>,
    pub(super) null_keys: Option<NullKeys>,
    pub(super) policy: Option<MergePolicy>,
    pub(super) soft_delete_column: Option<String>,
    pub(super) insert_when: Option<String>,
    pub(super) update_when: Option<String>,
    pub(super) delete_when: Option<String>,
    pub(super) refresh: Option<Refresh>,
    pub(super) zorder_by: Vec<String>,
    /// Where the properties stand that no feed and no view has.
    pub(super) of_merges: Vec<(String, Place)>,
}

impl Lowering<'_> {
    /// Takes the properties of a definition apart.
    pub(super) fn said(&mut self, definition: &Definition) -> Said {
        let mut said = Said::default();
        let of = definition.name.to_string();
        let mut advance: Vec<String> = Vec::new();
        for (name, placed) in &definition.properties {
            let value = placed.value.trim();
            let place = placed.place.as_ref().unwrap_or(&definition.place);
            let lower = name.to_lowercase();
            let known = match lower.as_str() {
                "tributary.quarantine" => {
                    value.parse().map(|table| said.quarantine = Some(table)).map_err(|_| "is the name of a table, schema.table".to_owned())
                }
                "tributary.expectations.quarantine" => {
                    said.to_quarantine = list(value);
                    Ok(())
                }
                "tributary.nullkeys" => {
                    choice(value, &[("refuse", NullKeys::Refuse), ("quarantine", NullKeys::Quarantine), ("null_safe", NullKeys::NullSafe)])
                        .map(|choice| said.null_keys = Some(choice))
                }
                "tributary.merge.policy" => choice(
                    value,
                    &[
                        ("insert_only", MergePolicy::InsertOnly { exact: false }),
                        ("insert_only_exact", MergePolicy::InsertOnly { exact: true }),
                        ("last_writer_wins", MergePolicy::LastWriterWins),
                        ("monotonic_advance", MergePolicy::MonotonicAdvance { columns: Vec::new() }),
                    ],
                )
                .map(|choice| said.policy = Some(choice)),
                "tributary.merge.advance" => {
                    advance = list(value);
                    Ok(())
                }
                "tributary.merge.softdeletecolumn" => {
                    said.soft_delete_column = Some(value.to_owned());
                    Ok(())
                }
                "tributary.merge.insertwhen" => {
                    said.insert_when = Some(value.to_owned());
                    Ok(())
                }
                "tributary.merge.updatewhen" => {
                    said.update_when = Some(value.to_owned());
                    Ok(())
                }
                "tributary.merge.deletewhen" => {
                    said.delete_when = Some(value.to_owned());
                    Ok(())
                }
                "tributary.refresh" => {
                    choice(value, &[("auto", Refresh::Auto), ("incremental", Refresh::Incremental), ("full", Refresh::Full)])
                        .map(|choice| said.refresh = Some(choice))
                }
                "pipelines.autooptimize.zordercols" => {
                    said.zorder_by = list(value);
                    said.table.insert(name.clone(), placed.value.clone());
                    Ok(())
                }
                _ => {
                    if lower.starts_with("pipelines.") && !KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name)) {
                        self.report.not_applied(
                            place.clone(),
                            &format!("the property {name}"),
                            Some(&of),
                            "it is kept with the table as text",
                        );
                    }
                    said.table.insert(name.clone(), placed.value.clone());
                    Ok(())
                }
            };
            if lower.starts_with("tributary.merge.") || lower == "tributary.nullkeys" {
                said.of_merges.push((name.clone(), place.clone()));
            }
            if let Err(reason) = known {
                self.report.fault(place, &Error::PropertyValue { of: of.clone(), property: name.clone(), reason });
            }
        }
        if let Some(MergePolicy::MonotonicAdvance { columns }) = &mut said.policy {
            *columns = advance;
        }
        said
    }

    /// Rules with the actions that properties give them.
    pub(super) fn expectations(&mut self, definition: &Definition, said: &Said) -> Vec<tributary_specs::Expectation> {
        let of = definition.name.to_string();
        for name in said.to_quarantine.iter().filter(|name| *name != "*") {
            if !definition.expectations.iter().any(|rule| rule.value.name.eq_ignore_ascii_case(name)) {
                let rules = definition.expectations.iter().map(|rule| rule.value.name.clone());
                let near = self.report.nearest(name, rules).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                let reason = format!("names the rule {name}, which the table does not have{near}");
                let property = "tributary.expectations.quarantine".to_owned();
                self.report.fault(&definition.place, &Error::PropertyValue { of: of.clone(), property, reason });
            }
        }
        let quarantined = |name: &str| said.to_quarantine.iter().any(|rule| rule == "*" || rule.eq_ignore_ascii_case(name));
        let rules = definition.expectations.iter().map(|rule| {
            let mut rule = rule.value.clone();
            if quarantined(&rule.name) {
                rule.action = ExpectationAction::Quarantine;
            }
            rule
        });
        rules.collect()
    }

    /// Properties of merges on something that merges nothing.
    pub(super) fn refuse_merge_properties(&mut self, definition: &Definition, said: &Said, what: &str) {
        for (property, place) in &said.of_merges {
            let reason = format!("means nothing for {what}; it belongs to a table with AUTO CDC");
            let error = Error::PropertyValue { of: definition.name.to_string(), property: property.clone(), reason };
            self.report.fault(place, &error);
        }
    }
}

/// Properties of the platform that mean here what they mean there, or that maintenance goes by.
const KEPT: &[&str] = &["pipelines.reset.allowed", "pipelines.cdc.tombstoneGCThresholdInSeconds", "pipelines.autoOptimize.zOrderCols"];

/// Words between commas, quotes of names taken off.
pub(super) fn list(value: &str) -> Vec<String> {
    value.split(',').map(|part| part.trim().trim_matches('`').to_owned()).filter(|part| !part.is_empty()).collect()
}

fn choice<T: Clone>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    found.map(|(_, choice)| choice.clone()).ok_or_else(|| format!("is one of {}, not {value:?}", names.join(", ")))
}
