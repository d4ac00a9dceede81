//! Where what specs hold stands in the files: texts word by word, names of clauses, columns, properties.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tributary_specs::{Layer, Path, Place, Step, TableName};

use crate::parsed::Definition;
use crate::place::Lines;
use crate::woven::Woven;

/// Where the specs of a pipeline stand in its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    pub(crate) feeds: Vec<Origin>,
    pub(crate) silver: Vec<Origin>,
    pub(crate) gold: Vec<Origin>,
    /// The files by name.
    pub(crate) files: BTreeMap<String, Arc<Lines>>,
    /// What messages call files, where that is something else.
    pub(crate) shown: BTreeMap<String, String>,
    /// Tables that the files define and the specs leave out for their mistakes, in lower case.
    pub(crate) mistaken: BTreeSet<TableName>,
}

/// What of a part of a spec is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spot<'a> {
    /// The text that the part holds, where it is one.
    pub text: Option<&'a str>,
    /// Line and column of it, both counted from 1.
    pub position: Option<(u64, u64)>,
    /// A name that stands in it.
    pub name: Option<&'a str>,
}

/// Where a spec and its fields came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) of: String,
    pub(crate) place: Place,
    pub(crate) fields: BTreeMap<String, Place>,
    pub(crate) expectations: Vec<Option<Place>>,
    pub(crate) columns: Vec<(String, Place)>,
    pub(crate) properties: BTreeMap<String, Option<Place>>,
    /// Texts by the way to them from the spec on, as `deletes.apply_as_delete_when`.
    pub(crate) texts: BTreeMap<String, Woven>,
}

impl Default for Origin {
    fn default() -> Self {
        Self {
            of: String::new(),
            place: Place { file: String::new(), line: 1, column: 1 },
            fields: BTreeMap::new(),
            expectations: Vec::new(),
            columns: Vec::new(),
            properties: BTreeMap::new(),
            texts: BTreeMap::new(),
        }
    }
}

impl From<&Definition> for Origin {
    fn from(definition: &Definition) -> Self {
        let mut fields = BTreeMap::new();
        for (field, place) in [("partition_by", &definition.partition_by.place), ("cluster_by", &definition.cluster_by.place)] {
            if let Some(place) = place {
                fields.insert(field.to_owned(), place.clone());
            }
        }
        Self {
            of: definition.name.to_string(),
            place: definition.place.clone(),
            fields,
            expectations: definition.expectations.iter().map(|rule| rule.place.clone()).collect(),
            columns: definition.columns.iter().map(|column| (column.name.clone(), column.place.clone())).collect(),
            properties: definition.properties.iter().map(|(name, placed)| (name.clone(), placed.place.clone())).collect(),
            texts: BTreeMap::new(),
        }
    }
}

impl Origin {
    /// Where a part of the spec stands.
    pub(crate) fn place(&self, steps: &[Step]) -> &Place {
        let found = match steps {
            [Step::Field(list), Step::Index(at), ..] if list == "expectations" => self.expectations.get(*at).and_then(Option::as_ref),
            [Step::Field(list), Step::Index(at), ..] if list == "schema" || list == "columns" => {
                self.columns.get(*at).map(|(_, place)| place)
            }
            [Step::Field(list), Step::Field(name), ..] if list == "properties" => self.properties.get(name).and_then(Option::as_ref),
            _ => None,
        };
        let of_way = || self.fields.get(&way(steps));
        let of_field = || match steps.first() {
            Some(Step::Field(field)) => self.fields.get(field),
            _ => None,
        };
        found.or_else(of_way).or_else(of_field).unwrap_or(&self.place)
    }

    /// Where a text of the spec stands, from the spec on; of several of a list the one that has the name at the position.
    fn text(&self, steps: &[Step], spot: &Spot<'_>) -> Option<&Woven> {
        let way = way(steps);
        let of_list = || {
            let begin = format!("{way}[");
            let list = self.texts.iter().filter(|(key, _)| key.starts_with(&begin)).map(|(_, woven)| woven);
            let has = |woven: &&Woven| spot.name.is_none_or(|name| word(&woven.text, name).is_some());
            list.clone().find(has).or_else(|| list.clone().next())
        };
        self.texts.get(&way).or_else(of_list)
    }
}

impl Origins {
    /// The same, whose places name files as `shown` does.
    #[must_use]
    pub fn shown_as(&self, shown: impl Fn(&str) -> String) -> Self {
        Self { shown: self.files.keys().map(|file| (file.clone(), shown(file))).collect(), ..self.clone() }
    }

    /// Whether a table is defined in the files, and left out of the specs for its mistakes.
    pub fn is_mistaken(&self, table: &TableName) -> bool {
        self.mistaken.contains(&table.folded())
    }

    /// Where a part of the specs stands; none of what is in no file.
    pub fn place(&self, path: &Path, spot: &Spot<'_>) -> Option<Place> {
        let place = self.place_in_file(path, spot)?;
        Some(Place { file: self.shown.get(&place.file).cloned().unwrap_or(place.file), ..place })
    }

    fn place_in_file(&self, path: &Path, spot: &Spot<'_>) -> Option<Place> {
        let (origin, steps) = self.of(path)?;
        if let Some(woven) = origin.text(steps, spot) {
            let same = spot.text.is_none_or(|text| text == woven.text);
            let at_position = spot.position.filter(|_| same).and_then(|(line, column)| woven.place_at(line, column));
            let at_name = || spot.name.and_then(|name| word(&woven.text, name)).and_then(|at| woven.place(at));
            return at_position.or_else(at_name).or_else(|| woven.place(0));
        }
        if let ([Step::Field(list), ..], Some(name)) = (steps, spot.name)
            && list == "schema"
            && let Some((_, place)) = origin.columns.iter().find(|(column, _)| column.eq_ignore_ascii_case(name))
        {
            return Some(place.clone());
        }
        let place = origin.place(steps);
        let named = || {
            let lines = self.files.get(&place.file)?;
            let from = lines.byte(place.line, place.column);
            let rest = lines.text_from(from);
            word(&rest[..rest.find(';').unwrap_or(rest.len())], spot.name?).map(|at| lines.place(from + at))
        };
        Some(named().filter(|_| place != &origin.place).unwrap_or_else(|| place.clone()))
    }

    /// The dataset of a part of the specs, as its file calls it.
    pub fn dataset(&self, path: &Path) -> Option<&str> {
        self.of(path).map(|(origin, _)| origin.of.as_str())
    }

    pub(crate) fn of<'p>(&self, path: &'p Path) -> Option<(&Origin, &'p [Step])> {
        let (layer, at, rest) = part(path)?;
        let origins = match layer {
            Layer::Bronze => &self.feeds,
            Layer::Silver => &self.silver,
            Layer::Gold => &self.gold,
        };
        Some((origins.get(at)?, rest))
    }
}

/// The dataset that a way leads to, and the way from there on.
pub(crate) fn part(path: &Path) -> Option<(Layer, usize, &[Step])> {
    let [Step::Field(layer), Step::Index(at), rest @ ..] = path.steps() else { return None };
    let layer = match layer.as_str() {
        "feeds" => Layer::Bronze,
        "silver" => Layer::Silver,
        _ => Layer::Gold,
    };
    Some((layer, *at, rest))
}

/// The way from a spec to a part of it, as it is written.
fn way(steps: &[Step]) -> String {
    steps.iter().cloned().collect::<Path>().to_string()
}

/// Where a name begins among the words of a text, in any case; strings and comments hold none.
fn word(text: &str, name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let part = |sign: char| sign.is_alphanumeric() || sign == '_';
    let mut at = 0;
    while let Some(sign) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match sign {
            '\'' | '"' => rest[1..].find(sign).map_or(rest.len(), |end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '`' => {
                let end = rest[1..].find('`').map_or(rest.len(), |end| end + 1);
                if rest[1..end.max(1)].to_lowercase() == name {
                    return Some(at);
                }
                (end + 1).min(rest.len())
            }
            _ if part(sign) => {
                let end = rest.find(|sign| !part(sign)).unwrap_or(rest.len());
                if rest[..end].to_lowercase() == name {
                    return Some(at);
                }
                end
            }
            _ => sign.len_utf8(),
        };
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn a_name_is_found_as_a_word_and_not_within_others_strings_or_comments() {
        let text = "KEYS /* id */ (order_id, 'id', ID) -- id";
        assert_eq!(word(text, "id"), text.find("ID"));
        assert_eq!(word("a `Order Id` b", "order id"), Some(2));
        assert_eq!(word("-- x", "x"), None);
        assert_eq!(word("'open x", "x"), None);
    }
}
