//! The schemas a decoder has been taught.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::avro::schema::{Type, parse};
use crate::avro::{Refused, SchemaId};
use crate::connect::Schema;
use crate::decoded::ReasonCode;
use crate::layout::Layout;

/// Schemas by their registry's id.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    by_id: BTreeMap<SchemaId, Lesson>,
}

#[derive(Debug)]
enum Lesson {
    Known(Box<Known>),
    Refused(Refused),
}

/// A schema, and what has been made of it.
#[derive(Debug)]
pub(crate) struct Known {
    pub data: Type,
    /// As Kafka Connect says it.
    pub connect: Schema,
    /// Arrow's decoder, made when first needed.
    pub arrow: Option<Box<arrow_avro::reader::Decoder>>,
    /// Where the fields of its rows go, once decided.
    pub rows: Option<Arc<Rows>>,
    /// The same for a key of this schema.
    pub key: Option<Arc<Rows>>,
}

/// Where the fields of rows go, and where in a decoded record they are.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub layout: Layout,
    /// The place in the row image of each field of the layout.
    pub after: Vec<Option<usize>>,
    /// The same in the before-image.
    pub before: Vec<Option<usize>>,
}

impl Schemas {
    pub(crate) fn has(&self, id: SchemaId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Takes in a schema; records of one that cannot be used are refused from now on.
    pub(crate) fn learn(&mut self, id: SchemaId, text: &str, references: &[String]) -> Result<(), String> {
        let parsed = parse(text, references).and_then(|data| {
            if data.null.is_some() || data.fields().is_empty() {
                return Err("it is no record".to_owned());
            }
            Ok(data)
        });
        let (lesson, result) = match parsed {
            Ok(data) => {
                let known = Known { connect: data.connect(), data, arrow: None, rows: None, key: None };
                (Lesson::Known(Box::new(known)), Ok(()))
            }
            Err(problem) => {
                let message = format!("schema {id} cannot be used: {problem}");
                (Lesson::Refused(Refused::new(ReasonCode::UnsupportedSchema, message)), Err(problem))
            }
        };
        self.by_id.insert(id, lesson);
        result
    }

    /// Takes in why there is no schema of this id.
    pub(crate) fn refuse(&mut self, id: SchemaId, refused: Refused) {
        self.by_id.insert(id, Lesson::Refused(refused));
    }

    pub(crate) fn get(&self, id: SchemaId) -> Result<&Known, Refused> {
        match self.by_id.get(&id) {
            Some(Lesson::Known(known)) => Ok(known),
            Some(Lesson::Refused(refused)) => Err(refused.clone()),
            None => Err(untold(id)),
        }
    }

    pub(crate) fn get_mut(&mut self, id: SchemaId) -> Result<&mut Known, Refused> {
        match self.by_id.get_mut(&id) {
            Some(Lesson::Known(known)) => Ok(known),
            Some(Lesson::Refused(refused)) => Err(refused.clone()),
            None => Err(untold(id)),
        }
    }

    /// Lets go of the buffers of every schema but these, when there are many.
    pub(crate) fn rest_all_but(&mut self, used: &[SchemaId]) {
        if self.by_id.len() <= DECODERS_KEPT {
            return;
        }
        for (id, lesson) in &mut self.by_id {
            if let Lesson::Known(known) = lesson
                && !used.contains(id)
            {
                known.arrow = None;
            }
        }
    }
}

/// So many decoders are kept whether they are in use or not.
const DECODERS_KEPT: usize = 8;

fn untold(id: SchemaId) -> Refused {
    Refused::new(ReasonCode::UnknownSchema, format!("schema {id} has not been looked up: the source has no schema registry"))
}
