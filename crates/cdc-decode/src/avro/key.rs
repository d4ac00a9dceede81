//! Framed keys: the row of a delete, the names of the key columns, the other half of a key change.

use std::sync::Arc;

use tributary_specs::{DataType, SchemaPolicy};

use crate::avro::rows::{Image, rejected};
use crate::avro::window::{Place, decode};
use crate::avro::{Refused, Rows, framed_id};
use crate::decoded::ReasonCode;
use crate::decoder::{Decoder, Verdict};
use crate::layout::{Field, Layout, Slot};
use crate::row::{Found, Halt};
use crate::table::Placement;
use crate::wire::Wire;

impl Decoder {
    fn avro_key(&mut self, key: &[u8]) -> Result<Place, Refused> {
        let cut = || Refused::new(ReasonCode::BrokenAvro, "the key is cut short in its frame".to_owned());
        let id = framed_id(key).ok_or_else(cut)?;
        let results = decode(&mut self.avro.schemas, id, &[key]);
        let place = results.into_iter().next().unwrap_or_else(|| Err(cut()));
        place.map_err(|refused| Refused { message: format!("the key: {}", refused.message), ..refused })
    }

    /// Takes a key into the business columns. `Some` = it is no key, or the record is to be read again.
    pub(crate) fn avro_key_image(&mut self, key: &[u8], row: usize, found: &mut Found<'_>) -> Result<Option<Verdict>, Halt> {
        let place = match self.avro_key(key) {
            Ok(place) => place,
            Err(refused) => return Ok(Some(rejected(refused))),
        };
        let Ok(known) = self.avro.schemas.get(place.id) else { return Ok(Some(Verdict::Again)) };
        let Some(rows) = known.key.clone() else {
            let schema = known.connect.clone();
            let mut layout = Layout::default();
            for field in &schema.fields {
                let wire = field.wire().unwrap_or(Wire::Anything);
                let slot = match self.table.place(&field.field, &wire.natural(), wire.clone(), false, row) {
                    Placement::At(slot) => slot,
                    Placement::Frozen => Slot::Rescue,
                };
                layout.fields.push(Field::new(&field.field, slot, wire, false));
            }
            if let Ok(known) = self.avro.schemas.get_mut(place.id) {
                let after = (0..layout.fields.len()).map(Some).collect();
                known.key = Some(Arc::new(Rows { after, before: Vec::new(), layout }));
            }
            return Ok(Some(Verdict::Again));
        };
        let image = Image { node: &place.image, at: place.at, layout: &rows.layout, places: &rows.after };
        self.avro_image(image, row, found)?;
        Ok(None)
    }

    /// The names of a key's fields.
    pub(crate) fn avro_key_names(&self, key: &[u8]) -> Vec<String> {
        let known = framed_id(key).and_then(|id| self.avro.schemas.get(id).ok());
        known.map(|known| known.connect.fields.iter().map(|field| field.field.clone()).collect()).unwrap_or_default()
    }

    /// Takes the other key of a key change into its struct; `false` = it cannot be read.
    pub(crate) fn avro_key_change(&mut self, key: &[u8], deleted: bool, row: usize) -> Result<bool, Halt> {
        let Ok(place) = self.avro_key(key) else { return Ok(false) };
        let Ok(known) = self.avro.schemas.get(place.id) else { return Ok(false) };
        let schema = known.connect.clone();
        let Some((from, to)) = &mut self.table.key_changes else { return Ok(false) };
        let (filled, empty) = if deleted { (to, from) } else { (from, to) };
        let DataType::Struct(specs) = filled.data_type().clone() else { return Ok(false) };
        let (mut layout, mut places) = (Layout::default(), Vec::new());
        for (column, spec) in specs.iter().enumerate() {
            let at = schema.fields.iter().position(|field| field.field == spec.name);
            let wire = at.and_then(|at| schema.fields.get(at)).and_then(|field| field.wire()).unwrap_or(Wire::Anything);
            layout.fields.push(Field::new(&spec.name, Slot::Column(column), wire, false));
            places.push(at);
        }
        filled.truncate(row);
        empty.truncate(row);
        filled.fill(row);
        let Some(fields) = filled.fields() else { return Ok(false) };
        let image = Image { node: &place.image, at: place.at, layout: &layout, places: &places };
        let mut found = Found::default();
        let taken = super::rows::take_row(&mut self.reader, image, fields, row, SchemaPolicy::Rescue, &mut found, &mut Default::default());
        if taken.is_err() || !found.rescued.is_empty() {
            return Ok(false);
        }
        filled.close().map_err(crate::change::too_large)?;
        Ok(true)
    }
}
