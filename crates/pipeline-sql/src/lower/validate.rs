//! The rules of specs, told at the place of the SQL that breaks them.

use std::collections::BTreeMap;

use tributary_specs::{Error as SpecError, Path, Place, Problem, Step};

use super::Lowering;
use crate::error::Error;
use crate::parsed::Definition;

/// Where the specs came from, by their number in each layer.
#[derive(Debug, Default)]
pub(super) struct Origins {
    pub(super) feeds: Vec<Origin>,
    pub(super) silver: Vec<Origin>,
    pub(super) gold: Vec<Origin>,
}

/// Where a spec and its fields came from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) of: String,
    pub(super) place: Place,
    pub(super) fields: BTreeMap<String, Place>,
    pub(super) expectations: Vec<Option<Place>>,
    pub(super) columns: Vec<Place>,
    pub(super) properties: BTreeMap<String, Option<Place>>,
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
            columns: definition.columns.iter().map(|column| column.place.clone()).collect(),
            properties: definition.properties.iter().map(|(name, placed)| (name.clone(), placed.place.clone())).collect(),
        }
    }
}

impl Origin {
    /// Where a part of the spec stands.
    fn place(&self, steps: &[Step]) -> &Place {
        let found = match steps {
            [Step::Field(list), Step::Index(at), ..] if list == "expectations" => self.expectations.get(*at).and_then(Option::as_ref),
            [Step::Field(list), Step::Index(at), ..] if list == "schema" || list == "columns" => self.columns.get(*at),
            [Step::Field(list), Step::Field(name), ..] if list == "properties" => self.properties.get(name).and_then(Option::as_ref),
            _ => None,
        };
        let of_field = || match steps.first() {
            Some(Step::Field(field)) => self.fields.get(field),
            _ => None,
        };
        found.or_else(of_field).unwrap_or(&self.place)
    }
}

impl Lowering<'_> {
    /// Adds what the rules of specs find.
    pub(super) fn validate(&mut self) {
        "pipeline".clone_into(&mut self.out.pipeline.name);
        for Problem { error, path, .. } in self.out.pipeline.validate() {
            // Who reads whom has been checked by name, over the datasets that have other mistakes too.
            if matches!(error, SpecError::SourceUnknown { .. } | SpecError::StreamFromView { .. } | SpecError::Cycle { .. }) {
                continue;
            }
            let origin = self.origin(&path);
            let (of, place) = match &origin {
                Some((origin, rest)) => (origin.of.clone(), origin.place(rest).clone()),
                None => ("the pipeline".to_owned(), Origin::default().place),
            };
            self.report.fault(&place, &Error::Spec { of, problem: error });
        }
    }

    fn origin<'p>(&self, path: &'p Path) -> Option<(&Origin, &'p [Step])> {
        let [Step::Field(layer), Step::Index(at), rest @ ..] = path.steps() else { return None };
        let origins = match layer.as_str() {
            "feeds" => &self.origins.feeds,
            "silver" => &self.origins.silver,
            _ => &self.origins.gold,
        };
        Some((origins.get(*at)?, rest))
    }
}
