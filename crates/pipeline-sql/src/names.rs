//! Names of datasets: as written, and what they mean where they stand.

use sqlparser::tokenizer::Token;
use tributary_specs::Place;

use crate::cursor::Cursor;
use crate::error::Error;
use crate::parsed::{DatasetName, Options};
use crate::report::Report;

/// A name as it is written, `LIVE.` taken off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) parts: Vec<String>,
    /// Whether `LIVE.` stood before it: then it means a dataset of the pipeline.
    pub(crate) live: bool,
}

impl Written {
    /// Of parts and whether each stands in back-quotes.
    pub(crate) fn of(parts: &[(String, bool)]) -> Self {
        let live = matches!(parts, [(first, false), _, ..] if first.eq_ignore_ascii_case("live"));
        let parts = parts.iter().skip(usize::from(live)).map(|(part, _)| part.clone()).collect();
        Self { parts, live }
    }

    /// Reads a name; it is passed over.
    pub(crate) fn read(cursor: &mut Cursor) -> Option<Self> {
        let mut parts = Vec::new();
        loop {
            let quoted = matches!(cursor.sign(0), Some(Token::Word(word)) if word.quote_style.is_some());
            parts.push((cursor.identifier()?, quoted));
            if !cursor.eat_sign(&Token::Period) {
                return Some(Self::of(&parts));
            }
        }
    }
}

/// What names without catalogue or schema mean at a place of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) catalog: Option<String>,
    pub(crate) schema: Option<String>,
}

impl Scope {
    pub(crate) fn new(options: &Options) -> Self {
        Self { catalog: options.catalog.clone(), schema: options.schema.clone() }
    }

    /// The full name, or a mistake that is told; so is that `LIVE.` is an old spelling.
    pub(crate) fn named(&self, written: &Written, place: &Place, report: &mut Report) -> Option<DatasetName> {
        if written.live {
            let message = format!("LIVE. before {} is an old spelling and means nothing", written.parts.join("."));
            report.notice(place.clone(), "deprecated", message);
        }
        self.name(written).map_err(|error| report.fault(place, &error)).ok()
    }

    /// The full name; one of one part has no schema where the pipeline has none.
    ///
    /// # Errors
    /// For more than three parts and for empty ones.
    pub(crate) fn name(&self, written: &Written) -> Result<DatasetName, Error> {
        let shown = written.parts.join(".");
        let unreadable = |reason: &str, instead: Option<&str>| Error::NameUnreadable {
            name: shown.clone(),
            reason: reason.to_owned(),
            instead: instead.map(str::to_owned),
        };
        if written.parts.iter().any(|part| part.trim().is_empty()) {
            return Err(unreadable("a part of it is empty", None));
        }
        match written.parts.as_slice() {
            [name] => Ok(DatasetName { catalog: self.catalog.clone(), schema: self.schema.clone(), name: name.clone() }),
            [schema, name] => Ok(DatasetName { catalog: self.catalog.clone(), schema: Some(schema.clone()), name: name.clone() }),
            [catalog, schema, name] => Ok(DatasetName { catalog: Some(catalog.clone()), schema: Some(schema.clone()), name: name.clone() }),
            _ => Err(unreadable("it has more than three parts", Some("catalogue.schema.table"))),
        }
    }
}
