//! Table properties that say what the SQL dialect has no clause for; they become fields of the specs.

use std::collections::BTreeMap;

use tributary_specs::{ExpectationAction, LateRows, MergePolicy, NullKeys, Place, Refresh, SetExpectation, SetRule, TableName};

use super::Lowering;
use crate::error::Error;
use crate::origin::Origin;
use crate::parsed::Definition;
use crate::query::Query;

/// What properties of ours say of a dataset.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Properties that are the table's.
    pub(super) table: BTreeMap<String, String>,
    pub(super) quarantine: Option<TableName>,
    /// Rules whose failing rows go to quarantine; `*` = all.
    pub(super) to_quarantine: Vec<String>,
    /// Rules of the whole table.
    pub(super) of_set: Vec<SetExpectation>,
    pub(super) null_keys: Option<NullKeys>,
    pub(super) policy: Option<MergePolicy>,
    pub(super) soft_delete_column: Option<String>,
    pub(super) insert_when: Option<String>,
    pub(super) update_when: Option<String>,
    pub(super) delete_when: Option<String>,
    pub(super) refresh: Option<Refresh>,
    /// What becomes of late rows, and where that stands.
    pub(super) late: Option<(LateRows, Place)>,
    pub(super) zorder_by: Vec<String>,
    /// Where the properties stand that no feed and no view has.
    pub(super) of_merges: Vec<(String, Place)>,
}

impl Said {
    /// Names of the rules of the whole table.
    pub(super) fn names_of_set(&self) -> Vec<String> {
        self.of_set.iter().map(|rule| rule.name.clone()).collect()
    }
}

/// Fields of specs that properties say, and the property of each.
const SAID_BY: &[(&str, &str)] = &[
    ("insert_when", "tributary.merge.insertWhen"),
    ("update_when", "tributary.merge.updateWhen"),
    ("delete_when", "tributary.merge.deleteWhen"),
    ("zorder_by", "pipelines.autoOptimize.zOrderCols"),
];

impl Lowering<'_> {
    /// Where the spec of a definition and its fields stand; `rules` = names of its rules of the whole table.
    pub(super) fn origin(&self, definition: &Definition, rules: &[String]) -> Origin {
        let mut origin = Origin::from(definition);
        let of_property = |name: &str| {
            let found = definition.properties.iter().find(|(property, _)| property.eq_ignore_ascii_case(name));
            found.and_then(|(_, placed)| placed.place.clone())
        };
        let fields = SAID_BY.iter().map(|(field, property)| ((*field).to_owned(), of_property(property)));
        let of_set =
            rules.iter().enumerate().map(|(at, rule)| (format!("set_expectations[{at}]"), of_property(&format!("{SET_RULE}{rule}"))));
        origin.fields.extend(fields.chain(of_set).filter_map(|(field, place)| Some((field, place?))));
        for (at, rule) in definition.expectations.iter().enumerate() {
            let woven = self.report.expression_of(rule.place.as_ref(), &rule.value.expression);
            origin.texts.extend(woven.map(|woven| (format!("expectations[{at}].expression"), woven.clone())));
        }
        origin
    }

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
                rule if rule.starts_with(SET_RULE) => {
                    set_rule(name.get(SET_RULE.len()..).unwrap_or_default(), value).map(|rule| said.of_set.push(rule))
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
                "tributary.late" => {
                    let place = place.clone();
                    choice(value, &[("apply", LateRows::Apply), ("drop", LateRows::Drop)]).map(|choice| said.late = Some((choice, place)))
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
                    if lower.starts_with("pipelines.") && !is_obeyed(name) {
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
    /// Late rows where no watermark of the table tells them.
    pub(super) fn refuse_late(&mut self, definition: &Definition, said: &Said) {
        if let Some((_, place)) = &said.late {
            let reason = "means nothing without a WATERMARK of the stream that the table reads".to_owned();
            let property = "tributary.late".to_owned();
            self.report.fault(place, &Error::PropertyValue { of: definition.name.to_string(), property, reason });
        }
    }

    /// Watermarks that tell no late rows.
    pub(super) fn watermarks_not_applied(&mut self, definition: &Definition, query: &Query) {
        let of = definition.name.to_string();
        for placed in query.reads.iter().filter_map(|read| read.watermark.as_ref()) {
            let place = placed.place.as_ref().unwrap_or(&query.place);
            self.report.not_applied(place.clone(), "WATERMARK", Some(&of), "rows are applied however late they come, and not counted");
        }
    }

    pub(super) fn refuse_merge_properties(&mut self, definition: &Definition, said: &Said, what: &str) {
        for (property, place) in &said.of_merges {
            let reason = format!("means nothing for {what}; it belongs to a table with AUTO CDC");
            let error = Error::PropertyValue { of: definition.name.to_string(), property: property.clone(), reason };
            self.report.fault(place, &error);
        }
    }
}

/// Whether a property of the platform means here what it means there, or maintenance goes by it.
pub(crate) fn is_obeyed(name: &str) -> bool {
    let obeyed = ["pipelines.reset.allowed", "pipelines.cdc.tombstoneGCThresholdInSeconds", "pipelines.autoOptimize.zOrderCols"];
    obeyed.iter().any(|obeyed| obeyed.eq_ignore_ascii_case(name))
}

/// How the property of a rule of the whole table begins; its name follows.
const SET_RULE: &str = "tributary.expect.";

/// `unique(a, b)`, `row_count >= 1`, `row_count <= 9`, `row_count between 1 and 9` or `freshness(column) <= 2 hours`, and behind it
/// `ON VIOLATION FAIL UPDATE` where a table that breaks it is not to be.
fn set_rule(name: &str, text: &str) -> Result<SetExpectation, String> {
    const FORMS: &str = "is unique(a, b), row_count >= 1, row_count <= 9, row_count between 1 and 9 or freshness(column) <= 2 hours, and behind \
                         it ON VIOLATION FAIL UPDATE where that is meant";
    let wrong = || FORMS.to_owned();
    let lower = text.to_ascii_lowercase();
    let (rule, action) = match lower.find(" on violation ") {
        Some(at) if lower[at..].split_whitespace().eq(["on", "violation", "fail", "update"]) => (&text[..at], ExpectationAction::Fail),
        Some(_) => return Err(wrong()),
        None => (text, ExpectationAction::Warn),
    };
    let of_call = |word: &str| {
        let start = rule.get(..word.len()).filter(|start| start.eq_ignore_ascii_case(word)).map(str::len)?;
        rule[start..].trim_start().strip_prefix('(')?.split_once(')')
    };
    let rule = if let Some((columns, rest)) = of_call("unique") {
        let columns = list(columns);
        if columns.is_empty() || !rest.trim().is_empty() {
            return Err(wrong());
        }
        SetRule::Unique(columns)
    } else if let Some((column, rest)) = of_call("freshness") {
        let age = rest.trim().strip_prefix("<=").and_then(seconds).ok_or_else(wrong)?;
        SetRule::Freshness { column: column.trim().trim_matches('`').to_owned(), max_age_seconds: age }
    } else {
        let words: Vec<String> = rule.replace(">=", " >= ").replace("<=", " <= ").split_whitespace().map(str::to_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        match words.as_slice() {
            ["row_count", ">=", min] => SetRule::RowCount { min: Some(number(min)?), max: None },
            ["row_count", "<=", max] => SetRule::RowCount { min: None, max: Some(number(max)?) },
            ["row_count", "between", min, "and", max] => SetRule::RowCount { min: Some(number(min)?), max: Some(number(max)?) },
            _ => return Err(wrong()),
        }
    };
    Ok(SetExpectation { name: name.to_owned(), rule, action })
}

/// `2 hours` in seconds.
fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let unit = match unit.trim().to_lowercase().trim_end_matches('s') {
        "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Words between commas, quotes of names taken off.
pub(super) fn list(value: &str) -> Vec<String> {
    value.split(',').map(|part| part.trim().trim_matches('`').to_owned()).filter(|part| !part.is_empty()).collect()
}

fn choice<T: Clone>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    found.map(|(_, choice)| choice.clone()).ok_or_else(|| format!("is one of {}, not {value:?}", names.join(", ")))
}
