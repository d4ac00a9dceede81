//! Types of columns that nobody declared, from the values of a batch of bare JSON.
//!
//! Values are kept as they came: whole numbers as `long`, other numbers as `double`, text as `string`, arrays of these as
//! arrays, objects as their JSON text. What a text or number *means* (bytes, a decimal's digits, the unit of a time) is
//! never guessed. A column that is null in the whole batch has no type yet and is left out.

use tributary_specs::DataType;

use crate::json::{Broken, Cursor, Kind};
use crate::number::Decimal;
use crate::read::significant;

/// What a kind of value becomes.
pub(crate) fn kind_type(kind: Kind) -> Option<DataType> {
    match kind {
        Kind::Null => None,
        Kind::Boolean => Some(DataType::Boolean),
        Kind::Number => Some(DataType::Double),
        Kind::Text | Kind::Object => Some(DataType::String),
        Kind::Array => None,
    }
}

/// The columns seen so far, in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Inference {
    columns: Vec<(String, Option<DataType>)>,
}

impl Inference {
    /// Takes in one row image.
    pub(crate) fn row(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let mut members = cursor.object()?;
        let mut scratch = Vec::new();
        let mut hint = 0;
        while let Some(key) = cursor.member(&mut members)? {
            let name = key.resolve(&mut scratch)?;
            let known = match self.columns.get(hint) {
                Some((known, _)) if known.as_bytes() == name => Some(hint),
                _ => self.columns.iter().position(|(known, _)| known.as_bytes() == name),
            };
            let index = known.unwrap_or_else(|| {
                self.columns.push((String::from_utf8_lossy(name).into_owned(), None));
                self.columns.len() - 1
            });
            hint = index + 1;
            let seen = value_type(cursor)?;
            if let Some((_, data_type)) = self.columns.get_mut(index) {
                *data_type = both(data_type.take(), seen);
            }
        }
        Ok(())
    }

    /// The columns that have a type, in the order they came.
    pub(crate) fn finish(self) -> impl Iterator<Item = (String, DataType)> {
        self.columns.into_iter().filter_map(|(name, data_type)| Some((name, data_type?)))
    }
}

/// The type of a column for a value; none where the value tells none.
pub(crate) fn value_type(cursor: &mut Cursor<'_>) -> Result<Option<DataType>, Broken> {
    let kind = cursor.kind()?;
    Ok(match kind {
        Kind::Number => {
            let number = cursor.number()?;
            Some(match number.integer {
                Some(_) => DataType::Long,
                None => match Decimal::parse(number.raw) {
                    Some(decimal) if decimal.scale <= 0 && !number.raw.contains(&b'e') && !number.raw.contains(&b'E') => {
                        DataType::Decimal { precision: if decimal.unscaled.unsigned_abs() < 10u128.pow(20) { 20 } else { 38 }, scale: 0 }
                    }
                    _ if significant(number.raw) <= 17 => DataType::Double,
                    _ => DataType::String,
                },
            })
        }
        Kind::Array => {
            let mut element = None;
            let mut any = false;
            let mut elements = cursor.array()?;
            while cursor.element(&mut elements)? {
                any = true;
                if matches!(cursor.kind()?, Kind::Array) {
                    cursor.skip()?;
                    element = Some(DataType::String);
                } else {
                    element = both(element, value_type(cursor)?);
                }
            }
            // Nothing but nulls, or nothing at all, says nothing about the elements.
            let _ = any;
            element.map(|element| DataType::Array(Box::new(element)))
        }
        _ => {
            cursor.skip()?;
            kind_type(kind)
        }
    })
}

/// A type for values of both.
fn both(one: Option<DataType>, other: Option<DataType>) -> Option<DataType> {
    use DataType::{Array, Decimal, Double, Long, String};
    let (one, other) = match (one, other) {
        (None, known) | (known, None) => return known,
        (Some(one), Some(other)) => (one, other),
    };
    if one == other {
        return Some(one);
    }
    Some(match (&one, &other) {
        (Long, Double) | (Double, Long) => Double,
        (Long, Decimal { .. }) => other,
        (Decimal { .. }, Long) => one,
        (Decimal { .. }, Decimal { .. }) => Decimal { precision: 38, scale: 0 },
        (Array(one), Array(other)) => Array(Box::new(both(Some((**one).clone()), Some((**other).clone())).unwrap_or(String))),
        _ => String,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(rows: &[&str]) -> Vec<(String, String)> {
        let mut inference = Inference::default();
        for row in rows {
            inference.row(&mut Cursor::new(row.as_bytes())).unwrap();
        }
        inference.finish().map(|(name, data_type)| (name, data_type.to_string())).collect()
    }

    #[test]
    fn values_are_kept_as_they_came() {
        let rows = [
            r#"{"id":1,"price":5,"name":null,"big":18446744073709551615,"tags":[],"flag":true,"exact":1.5}"#,
            r#"{"id":2,"price":5.5,"name":"x","big":1,"tags":["a"],"flag":null,"exact":12345678901234567.8901,"never":null,"o":{"scale":0}}"#,
        ];
        let expected = [
            ("id", "long"),
            ("price", "double"),
            ("name", "string"),
            ("big", "decimal(20,0)"),
            ("tags", "array<string>"),
            ("flag", "boolean"),
            ("exact", "string"),
            ("o", "string"),
        ];
        assert_eq!(inferred(&rows), expected.map(|(name, data_type)| (name.to_owned(), data_type.to_owned())));
    }
}
