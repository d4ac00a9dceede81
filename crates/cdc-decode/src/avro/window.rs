//! The records that are decoded together: some of those that come next, each schema's in one Arrow batch.

use std::sync::Arc;

use arrow_avro::reader::{Decoder as Arrow, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};

use crate::avro::image::Node;
use crate::avro::known::{Known, Schemas};
use crate::avro::schema::Type;
use crate::avro::{FRAME, Refused, SchemaId, framed_id, walk};
use crate::decoded::ReasonCode;
use crate::record::Record;

/// A place in the window and the bytes framed there.
type Framed<'a> = (usize, &'a [u8]);

/// So many records are decoded together, and as many bytes of them; a larger one goes alone.
const RECORDS_MAX: usize = 1024;
const BYTES_MAX: usize = 64 << 20;
/// Arrow counts the text of a column in 31 bits.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// Where a decoded record is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub id: SchemaId,
    pub image: Arc<Node>,
    pub at: usize,
}

/// Decoded records, from one index of the slice on.
#[derive(Debug, Default)]
pub(crate) struct Window {
    from: usize,
    places: Vec<Option<Result<Place, Refused>>>,
}

impl Window {
    /// Forgets everything; the next slice begins.
    pub(crate) fn clear(&mut self) {
        self.from = 0;
        self.places.clear();
    }

    /// A record whose value is framed.
    pub(crate) fn get(&mut self, schemas: &mut Schemas, records: &[Record<'_>], index: usize) -> Result<Place, Refused> {
        if index < self.from || index >= self.from + self.places.len() {
            self.decode(schemas, records, index);
        }
        let missing = || Refused::new(ReasonCode::BrokenAvro, "the value is cut short in its frame".to_owned());
        self.places.get(index - self.from).cloned().flatten().unwrap_or_else(|| Err(missing()))
    }

    fn decode(&mut self, schemas: &mut Schemas, records: &[Record<'_>], from: usize) {
        self.from = from;
        self.places.clear();
        let mut groups: Vec<(SchemaId, Vec<Framed<'_>>)> = Vec::new();
        let mut bytes = 0;
        for record in records.iter().skip(from).take(RECORDS_MAX) {
            let value = record.value.unwrap_or_default();
            bytes += value.len();
            if bytes > BYTES_MAX && !self.places.is_empty() {
                break;
            }
            let place = self.places.len();
            self.places.push(None);
            let Some(id) = framed_id(value) else { continue };
            match groups.iter_mut().find(|(known, _)| *known == id) {
                Some((_, values)) => values.push((place, value)),
                None => groups.push((id, vec![(place, value)])),
            }
        }
        for (id, values) in groups {
            let messages: Vec<&[u8]> = values.iter().map(|(_, value)| *value).collect();
            for ((place, _), result) in values.iter().zip(decode(schemas, id, &messages)) {
                if let Some(slot) = self.places.get_mut(*place) {
                    *slot = Some(result);
                }
            }
        }
        let used: Vec<SchemaId> = self.places.iter().flatten().filter_map(|place| Some(place.as_ref().ok()?.id)).collect();
        schemas.rest_all_but(&used);
    }
}

/// Decodes messages of one schema, each framed by its id; a result for each.
pub(crate) fn decode(schemas: &mut Schemas, id: SchemaId, messages: &[&[u8]]) -> Vec<Result<Place, Refused>> {
    let known = match schemas.get_mut(id) {
        Ok(known) => known,
        Err(refused) => return messages.iter().map(|_| Err(refused.clone())).collect(),
    };
    let mut results: Vec<Result<usize, Refused>> = Vec::with_capacity(messages.len());
    let mut good = Vec::with_capacity(messages.len());
    for message in messages {
        results.push(check(message, &known.data).map(|()| good.len()));
        if matches!(results.last(), Some(Ok(_))) {
            good.push(*message);
        }
    }
    let image = match decode_checked(known, id, &good) {
        Ok(image) => Ok(Arc::new(image)),
        Err(problem) => {
            // Half-built columns may be left inside.
            known.arrow = None;
            Err(Refused::new(ReasonCode::BrokenAvro, problem))
        }
    };
    let place = |at| image.clone().map(|image| Place { id, image, at });
    results.into_iter().map(|result| result.and_then(place)).collect()
}

fn check(message: &[u8], data: &Type) -> Result<(), Refused> {
    if message.len() > RECORD_BYTES_MAX {
        return Err(Refused::new(ReasonCode::BatchTooLarge, "the value is larger than 1 GiB".to_owned()));
    }
    walk::check(message, FRAME, data).map_err(|misfit| Refused::new(ReasonCode::BrokenAvro, misfit.message()))
}

/// Decodes messages that fit the schema.
fn decode_checked(known: &mut Known, id: SchemaId, messages: &[&[u8]]) -> Result<Node, String> {
    let arrow = match &mut known.arrow {
        Some(arrow) => arrow,
        empty => empty.insert(Box::new(decoder(&known.data, id)?)),
    };
    for message in messages {
        let taken = arrow.decode(message).map_err(|problem| problem.to_string())?;
        if taken != message.len() {
            return Err(format!("{taken} of {} bytes were read", message.len()));
        }
    }
    if messages.is_empty() {
        return Ok(Node::none());
    }
    let batch = arrow.flush().map_err(|problem| problem.to_string())?.ok_or("no record was read")?;
    if batch.num_rows() != messages.len() {
        return Err(format!("{} records gave {} rows", messages.len(), batch.num_rows()));
    }
    Node::of_batch(&batch, &known.data).ok_or_else(|| "the columns have another form than the schema says".to_owned())
}

fn decoder(data: &Type, id: SchemaId) -> Result<Arrow, String> {
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    let fingerprint = Fingerprint::Id(id.0);
    store.set(fingerprint, AvroSchema::new(data.plain())).map_err(|problem| problem.to_string())?;
    ReaderBuilder::new()
        .with_batch_size(RECORDS_MAX + 1)
        .with_writer_schema_store(store)
        .with_active_fingerprint(fingerprint)
        .build_decoder()
        .map_err(|problem| problem.to_string())
}
