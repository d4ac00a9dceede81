//! What a dataset was last run with: it rides in the commits of its table, in a metadata domain, so that a table can tell what made it
//! and `plan` what has changed since. Pure but for reading it back.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tributary_lake::Table;
use tributary_specs::{DatasetRef, GoldSpec, Layer, SilverSpec, Source, SourceFeed, TableName};

use crate::Pipeline;

/// The metadata domain it is kept under.
pub(crate) const DOMAIN: &str = "tributary.definition";
/// What stands for the value of a setting that may be secret.
const HIDDEN: &str = "(not kept)";

/// A dataset's spec in its canonical form: JSON, keys sorted, defaults left out as specs leave them out. The client's properties of a
/// Kafka source are named and not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    layer: String,
    /// What SQL texts mean to the release that ran it.
    #[serde(default)]
    meaning: String,
    /// Whether its rows come from code of the program's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    built_in_code: bool,
    /// The functions of the lake that it calls, by name, each as it is declared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    functions: BTreeMap<String, String>,
    spec: Value,
}

/// A part of a definition that is otherwise than it was.
///
/// ```no_run
/// # fn f(change: tributary::DefinitionChange) {
/// println!("{}: {:?} -> {:?}", change.part, change.before, change.after);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionChange {
    /// Its path in the spec: `query`, `expectations[positive].expression`.
    pub part: String,
    /// As it was, texts bare and anything else as JSON; none where it was not there.
    pub before: Option<String>,
    /// As it is now.
    pub after: Option<String>,
}

impl Definition {
    pub(crate) fn of(pipeline: &Pipeline, dataset: &DatasetRef) -> Self {
        let spec = pipeline.spec();
        let value = match dataset.layer {
            Layer::Bronze => serde_json::to_value(without_secrets(&spec.feeds[dataset.index])),
            Layer::Silver => serde_json::to_value(&spec.silver[dataset.index]),
            Layer::Gold => serde_json::to_value(&spec.gold[dataset.index]),
        };
        let meaning = match dataset.layer {
            Layer::Bronze => String::new(),
            Layer::Silver | Layer::Gold => tributary_spark_sql::MEANING.to_owned(),
        };
        // A spec is text, numbers, lists and mappings with text keys: turning it into JSON cannot fail.
        let spec = value.unwrap_or_default();
        let functions = match dataset.layer {
            Layer::Bronze => BTreeMap::new(),
            Layer::Silver => pipeline.called_by_silver(&pipeline.spec().silver[dataset.index]),
            Layer::Gold => pipeline.called_by(&pipeline.spec().gold[dataset.index]),
        };
        let built_in_code = pipeline.build_of(&dataset.table).is_some();
        Self { layer: dataset.layer.to_string(), meaning, built_in_code, functions, spec }
    }

    /// What a table was made with; none where no run of a release that keeps it has committed to it.
    pub(crate) async fn of_table(table: &Table) -> Result<Option<Self>, tributary_lake::Error> {
        let text = table.domain(DOMAIN).await?;
        Ok(text.and_then(|text| serde_json::from_str::<Self>(&text).ok()).map(Self::read_again))
    }

    /// The form that is kept.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// SHA-256 of the form that is kept, in hexadecimal.
    pub(crate) fn fingerprint(&self) -> String {
        hexadecimal(&Sha256::digest(self.to_text()))
    }

    /// As this release would have kept it: what has got a name or a default since is no change.
    fn read_again(mut self) -> Self {
        fn again<Spec: Serialize + DeserializeOwned>(kept: &Value) -> Option<Value> {
            serde_json::to_value(Spec::deserialize(kept).ok()?).ok()
        }
        let again = match self.layer.as_str() {
            "bronze" => again::<SourceFeed>(&self.spec),
            "silver" => again::<SilverSpec>(&self.spec),
            _ => again::<GoldSpec>(&self.spec),
        };
        self.spec = again.unwrap_or(self.spec);
        self
    }

    /// Whether it calls functions of the lake.
    pub(crate) fn calls_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    /// The functions that it calls and that are declared otherwise than they were in `before`, by name.
    pub(crate) fn functions_replaced_since(&self, before: &Self) -> Vec<String> {
        let replaced = self.functions.iter().filter(|(name, now)| before.functions.get(*name).is_some_and(|then| then != *now));
        replaced.map(|(name, _)| name.clone()).collect()
    }

    /// What is otherwise in `self` than it was in `before`.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<DefinitionChange> {
        let mut found = Vec::new();
        compare("", Some(&before.spec), Some(&self.spec), &mut found);
        let names: BTreeSet<&String> = before.functions.keys().chain(self.functions.keys()).collect();
        for name in names {
            let (before, after) = (before.functions.get(name), self.functions.get(name));
            if before != after {
                found.push(DefinitionChange { part: format!("function {name}"), before: before.cloned(), after: after.cloned() });
            }
        }
        if before.built_in_code != self.built_in_code {
            let word = |built: bool| Some(if built { "code" } else { "declaration" }.to_owned());
            found.push(DefinitionChange {
                part: "rows made by".to_owned(),
                before: word(before.built_in_code),
                after: word(self.built_in_code),
            });
        }
        if before.meaning != self.meaning {
            let of = |meaning: &String| Some(meaning.clone());
            found.push(DefinitionChange { part: "meaning of SQL".to_owned(), before: of(&before.meaning), after: of(&self.meaning) });
        }
        found
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The texts that the commits of a run leave in their tables.
pub(crate) fn texts(pipeline: &Pipeline) -> BTreeMap<TableName, String> {
    let of = |dataset: DatasetRef| {
        let text = Definition::of(pipeline, &dataset).to_text();
        (dataset.table, text)
    };
    pipeline.spec().datasets().into_iter().map(of).collect()
}

fn without_secrets(feed: &SourceFeed) -> SourceFeed {
    let mut feed = feed.clone();
    if let Source::Kafka(kafka) = &mut feed.source {
        kafka.properties.values_mut().for_each(|value| HIDDEN.clone_into(value));
    }
    feed
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<DefinitionChange>) {
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&below, one.get(key), other.get(key), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one != other && all_named(one) && all_named(other) => {
            let names: Vec<&str> = one.iter().chain(other).filter_map(name_of).collect();
            for (_, name) in names.iter().enumerate().filter(|(at, name)| !names[..*at].contains(name)) {
                let is_it = |item: &&Value| name_of(item) == Some(*name);
                compare(&format!("{path}[{name}]"), one.iter().find(is_it), other.iter().find(is_it), found);
            }
            let kept = |all: &[Value], others: &[Value]| -> Vec<String> {
                let names = all.iter().filter_map(name_of).filter(|name| others.iter().any(|other| name_of(other) == Some(*name)));
                names.map(str::to_owned).collect()
            };
            let (before, after) = (kept(one, other), kept(other, one));
            if before != after {
                let part = format!("order of {path}");
                found.push(DefinitionChange { part, before: Some(before.join(", ")), after: Some(after.join(", ")) });
            }
        }
        (before, after) if before == after => {}
        (before, after) => {
            found.push(DefinitionChange { part: path.to_owned(), before: before.map(said), after: after.map(said) });
        }
    }
}

/// Whether every item has a name of its own, so that items are known by it and not by their places.
fn all_named(items: &[Value]) -> bool {
    let names: Vec<&str> = items.iter().filter_map(name_of).collect();
    names.len() == items.len() && names.iter().enumerate().all(|(at, name)| !names[..at].contains(name))
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIPELINE: &str = "
name: shop
feeds:
  - name: shop_orders
    table: bronze.orders
    source: {kafka: {topics: [shop.orders], properties: {sasl.password: hunter2}}}
silver:
  - {table: silver.orders, sources: [bronze.orders], keys: [id]}
gold:
  - {table: gold.count, query: select count(*) as n from silver.orders, expectations: [{name: some, expression: n > 0}]}
";

    fn definitions(text: &str) -> Vec<Definition> {
        let pipeline = Pipeline::from_yaml(&[("shop.yml", text)]).unwrap();
        pipeline.spec().datasets().iter().map(|dataset| Definition::of(&pipeline, dataset)).collect()
    }

    fn changes(from: &str, to: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let changed = PIPELINE.replace(from, to);
        let (before, after) = (definitions(PIPELINE), definitions(&changed));
        let pairs = before.iter().zip(&after);
        pairs.flat_map(|(before, after)| after.changes_since(before)).map(|change| (change.part, change.before, change.after)).collect()
    }

    #[test]
    fn a_change_is_named_by_its_path_and_nothing_else_is_said() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(changes("keys: [id]", "keys: [id, line]"), [("keys".to_owned(), text(r#"["id"]"#), text(r#"["id","line"]"#))]);
        assert_eq!(changes("n > 0", "n > 1"), [("expectations[some].expression".to_owned(), text("n > 0"), text("n > 1"))]);
        assert_eq!(changes("keys: [id]", "keys: [id], comment: all orders"), [("comment".to_owned(), None, text("all orders"))]);
        let note = "{name: all, expression: n > 1}, {name: some";
        let added = changes("{name: some", note);
        assert_eq!((added.len(), added[0].0.as_str(), &added[0].1), (1, "expectations[all]", &None));
        assert_eq!(changes("name: shop\n", "name: store\n"), []);
    }

    #[test]
    fn no_password_is_kept_and_a_new_one_is_no_change() {
        let kept = definitions(PIPELINE)[0].to_text();
        assert!(kept.contains("sasl.password") && !kept.contains("hunter2"), "{kept}");
        assert_eq!(changes("hunter2", "hunter3"), []);
    }

    #[test]
    fn what_an_older_release_kept_without_a_newer_field_is_the_same_definition() {
        let now = &definitions(PIPELINE)[1];
        let mut older: Value = serde_json::from_str(&now.to_text()).unwrap();
        older["spec"].as_object_mut().unwrap().remove("null_keys");
        let older = serde_json::from_value::<Definition>(older).unwrap().read_again();
        assert_eq!((now.changes_since(&older), now.fingerprint()), (vec![], older.fingerprint()));
    }
}
