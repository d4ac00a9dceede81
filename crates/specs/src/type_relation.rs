//! How types stand to each other.

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

    /// The narrowest type that holds every value of both, exactly; text where there is none.
    ///
    /// ```
    /// use tributary_specs::DataType;
    /// assert_eq!(DataType::Integer.joined(&DataType::Long), DataType::Long);
    /// assert_eq!(DataType::Long.joined(&DataType::Double), DataType::String);
    /// ```
    pub fn joined(&self, other: &Self) -> Self {
        use DataType::{Array, Byte, Decimal, Double, Float, Integer, Long, Short, String};
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
            (Array(one), Array(other)) => Array(Box::new(one.joined(other))),
            _ => String,
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
        ] {
            let of = |text: &str| text.parse::<DataType>().unwrap();
            assert_eq!(of(one).joined(&of(other)), of(joined), "{one} with {other}");
        }
    }
}
