//! How types stand to each other.

use crate::column::Column;
use crate::data_type::{DECIMAL_DIGITS_MAX, DataType};

impl DataType {
    /// Whether both hold the same values: equal but for comments and nullability of nested fields, which a table keeps as it was
    /// made.
    ///
    /// ```
    /// use tributary_specs::DataType;
    /// let declared: DataType = "struct<id:long not null comment 'its key'>".parse()?;
    /// assert!(declared.same_values(&"struct<id:long>".parse()?));
    /// assert!(!declared.same_values(&"struct<id:integer>".parse()?));
    /// # Ok::<(), tributary_specs::Error>(())
    /// ```
    pub fn same_values(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => a.same_values(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.same_values(c) && b.same_values(d),
            (Self::Struct(a), Self::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && a.data_type.same_values(&b.data_type))
            }
            _ => self == other,
        }
    }

    /// The narrowest type that holds every value of both, exactly; text where there is none. Structs are joined field by field, the
    /// other's new fields behind one's own.
    ///
    /// ```
    /// use tributary_specs::DataType;
    /// assert_eq!(DataType::Integer.joined(&DataType::Long), DataType::Long);
    /// assert_eq!(DataType::Long.joined(&DataType::Double), DataType::String);
    /// ```
    pub fn joined(&self, other: &Self) -> Self {
        use DataType::{Array, Byte, Date, Decimal, Double, Float, Integer, Long, Map, Short, String, Struct, TimestampNtz};
        if self == other {
            return self.clone();
        }
        if let (Some(one), Some(two)) = (self.whole_digits(), other.whole_digits()) {
            return if one >= two { self.clone() } else { other.clone() };
        }
        match (self, other) {
            (Float | Byte | Short, Double | Float) | (Double, Float | Byte | Short | Integer) | (Integer, Double) => Double,
            (Float, Byte | Short) => Float,
            (Decimal { precision, scale }, other) | (other, Decimal { precision, scale }) => {
                let (other_before, other_scale) = match other {
                    Decimal { precision, scale } => (precision - scale, *scale),
                    Byte | Short | Integer | Long => (other.whole_digits().unwrap_or(DECIMAL_DIGITS_MAX), 0),
                    _ => return String,
                };
                let scale_joined = (*scale).max(other_scale);
                let precision = (precision - scale).max(other_before) + scale_joined;
                if precision <= DECIMAL_DIGITS_MAX { Decimal { precision, scale: scale_joined } } else { String }
            }
            // A day is its midnight; which instant that is nobody knows.
            (Date, TimestampNtz) | (TimestampNtz, Date) => TimestampNtz,
            (Array(one), Array(other)) => Array(Box::new(one.joined(other))),
            (Map(key, one), Map(other_key, other)) if key == other_key => Map(key.clone(), Box::new(one.joined(other))),
            (Struct(one), Struct(other)) => joined_fields(one, other, Self::joined).map_or(String, Struct),
            _ => String,
        }
    }

    /// Whether it holds every number of the other, exactly, so that a column of it can go on being written with them; equal types do,
    /// and so do lists, maps and structs of such.
    ///
    /// ```
    /// use tributary_specs::DataType;
    /// assert!(DataType::Long.holds(&DataType::Integer) && !DataType::Integer.holds(&DataType::Long));
    /// assert!(!DataType::String.holds(&DataType::Long));
    /// ```
    pub fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(a), Self::Array(b)) => a.holds(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.holds(c) && b.holds(d),
            (Self::Struct(a), Self::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && a.data_type.holds(&b.data_type))
            }
            _ => self == other || (self.is_number() && other.is_number() && self.joined(other) == *self),
        }
    }

    fn is_number(&self) -> bool {
        self.whole_digits().is_some() || matches!(self, Self::Float | Self::Double | Self::Decimal { .. })
    }

    /// This type with the fields of structs that only the other has behind its own, at every depth; nothing else of it changes.
    ///
    /// ```
    /// use tributary_specs::DataType;
    /// let table: DataType = "struct<city:string,floor:long>".parse()?;
    /// assert_eq!(table.with_fields_of(&"struct<zip:string,floor:integer>".parse()?), "struct<city:string,floor:long,zip:string>".parse()?);
    /// # Ok::<(), tributary_specs::Error>(())
    /// ```
    #[must_use]
    pub fn with_fields_of(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Array(one), Self::Array(other)) => Self::Array(Box::new(one.with_fields_of(other))),
            (Self::Map(key, one), Self::Map(_, other)) => Self::Map(key.clone(), Box::new(one.with_fields_of(other))),
            (Self::Struct(one), Self::Struct(other)) => {
                Self::Struct(joined_fields(one, other, Self::with_fields_of).unwrap_or_else(|| one.clone()))
            }
            _ => self.clone(),
        }
    }

    /// The fields of structs, at every depth, that only the other has; each by its path, `city.zip`.
    pub fn fields_only_of(&self, other: &Self) -> Vec<Column> {
        match (self, other) {
            (Self::Array(one), Self::Array(other)) | (Self::Map(_, one), Self::Map(_, other)) => one.fields_only_of(other),
            (Self::Struct(one), Self::Struct(other)) => {
                let new = |field: &Column| match one.iter().find(|known| known.name == field.name) {
                    None => vec![field.clone()],
                    Some(known) => {
                        let below = known.data_type.fields_only_of(&field.data_type).into_iter();
                        below.map(|below| Column { name: format!("{}.{}", field.name, below.name), ..below }).collect()
                    }
                };
                other.iter().flat_map(new).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Digits of the largest value of a whole-number type.
    fn whole_digits(&self) -> Option<u8> {
        match self {
            Self::Byte => Some(3),
            Self::Short => Some(5),
            Self::Integer => Some(10),
            Self::Long => Some(19),
            _ => None,
        }
    }
}

/// One's fields, each joined with the other's of its name, then the other's; none where names differ by case alone.
fn joined_fields(one: &[Column], other: &[Column], join: impl Fn(&DataType, &DataType) -> DataType) -> Option<Vec<Column>> {
    let mut fields = one.to_vec();
    for field in other {
        match fields.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&field.name)) {
            Some(known) if known.name != field.name => return None,
            Some(known) => known.data_type = join(&known.data_type, &field.data_type),
            None => fields.push(Column { nullable: true, ..field.clone() }),
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::DataType;

    #[test]
    fn a_joined_type_holds_both_exactly() {
        for (one, other, joined) in [
            ("byte", "short", "short"),
            ("long", "integer", "long"),
            ("integer", "double", "double"),
            ("long", "double", "string"),
            ("short", "float", "double"),
            ("float", "byte", "float"),
            ("decimal(12,2)", "decimal(10,4)", "decimal(14,4)"),
            ("decimal(12,2)", "long", "decimal(21,2)"),
            ("decimal(38,2)", "decimal(38,4)", "string"),
            ("decimal(12,2)", "double", "string"),
            ("array<integer>", "array<long>", "array<long>"),
            ("date", "timestamp", "string"),
            ("date", "timestamp_ntz", "timestamp_ntz"),
            ("struct<a:integer,b:string>", "struct<c:date,a:long>", "struct<a:long,b:string,c:date>"),
            ("struct<a:integer>", "struct<A:integer>", "string"),
            ("array<struct<a:integer>>", "array<struct<b:long>>", "array<struct<a:integer,b:long>>"),
            ("map<string,integer>", "map<string,long>", "map<string,long>"),
            ("map<string,long>", "map<long,long>", "string"),
        ] {
            let of = |text: &str| text.parse::<DataType>().unwrap();
            assert_eq!(of(one).joined(&of(other)), of(joined), "{one} with {other}");
        }
    }

    #[test]
    fn a_wider_number_holds_a_narrower_one_at_every_depth() {
        for (one, other, holds) in [
            ("long", "integer", true),
            ("integer", "long", false),
            ("double", "integer", true),
            ("double", "long", false),
            ("decimal(22,2)", "decimal(12,2)", true),
            ("decimal(12,2)", "integer", true),
            ("decimal(10,2)", "integer", false),
            ("string", "integer", false),
            ("timestamp_ntz", "date", false),
            ("array<struct<a:long,b:string>>", "array<struct<a:integer,b:string>>", true),
            ("struct<a:long,b:string>", "struct<a:integer>", false),
            ("map<string,long>", "map<string,short>", true),
            ("date", "date", true),
        ] {
            let of = |text: &str| text.parse::<DataType>().unwrap();
            assert_eq!(of(one).holds(&of(other)), holds, "{one} and {other}");
        }
    }

    #[test]
    fn new_fields_are_found_by_their_paths() {
        let of = |text: &str| text.parse::<DataType>().unwrap();
        let table = of("struct<a:long,b:array<struct<c:long>>>");
        let paths = |other: &str| table.fields_only_of(&of(other)).into_iter().map(|field| format!("{} {}", field.name, field.data_type));
        assert_eq!(paths("struct<e:long,b:array<struct<c:string,d:date>>>").collect::<Vec<_>>(), ["e long", "b.d date"]);
        assert_eq!(paths("struct<a:date>").count(), 0);
        assert!(DataType::Long.fields_only_of(&table).is_empty());
    }
}
