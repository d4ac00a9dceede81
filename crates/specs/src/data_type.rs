//! The types a Delta table has, and their text form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::error::Error;

/// A Delta type. Text form: `long`, `decimal(12,2)`, `array<string>`, `struct<a:integer,b:string>`, `map<string,long>`.
///
/// Reading also takes the names Spark, SQL and Debezium use: `int`, `bigint`, `smallint`, `tinyint`, `real`, `int32`, `text`,
/// `bool`, `numeric(p,s)`, …; a struct field may end in `not null` and `comment '…'`. Case does not matter.
///
/// ```
/// use tributary_specs::DataType;
/// assert_eq!("BIGINT".parse::<DataType>()?, DataType::Long);
/// assert_eq!("array<numeric(12, 2)>".parse::<DataType>()?.to_string(), "array<decimal(12,2)>");
/// # Ok::<(), tributary_specs::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DataType {
    /// 1 bit.
    Boolean,
    /// 8-bit signed integer.
    Byte,
    /// 16-bit signed integer.
    Short,
    /// 32-bit signed integer.
    Integer,
    /// 64-bit signed integer.
    Long,
    /// 32-bit IEEE number.
    Float,
    /// 64-bit IEEE number.
    Double,
    /// Exact number, at most 38 digits.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, 0 to `precision`.
        scale: u8,
    },
    /// UTF-8 text.
    String,
    /// Bytes.
    Binary,
    /// Days since 1970-01-01.
    Date,
    /// Instant, µs since the epoch, UTC.
    Timestamp,
    /// Wall clock without zone, µs.
    TimestampNtz,
    /// Elements are nullable.
    Array(Box<DataType>),
    /// Named fields.
    Struct(Vec<Column>),
    /// Keys are not null, values are nullable.
    Map(Box<DataType>, Box<DataType>),
}

/// The most digits a decimal has.
pub const DECIMAL_DIGITS_MAX: u8 = 38;
/// How deep types nest at most.
const DEPTH_MAX: usize = 50;

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Integer => "integer",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
            Self::String => "string",
            Self::Binary => "binary",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::TimestampNtz => "timestamp_ntz",
            Self::Array(element) => return write!(f, "array<{element}>"),
            Self::Map(key, value) => return write!(f, "map<{key},{value}>"),
            Self::Struct(fields) => return write_struct(f, fields),
        })
    }
}

fn write_struct(f: &mut fmt::Formatter<'_>, fields: &[Column]) -> fmt::Result {
    f.write_str("struct<")?;
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            f.write_str(",")?;
        }
        if is_bare(&field.name) {
            f.write_str(&field.name)?;
        } else {
            write!(f, "`{}`", field.name.replace('`', "``"))?;
        }
        write!(f, ":{}", field.data_type)?;
        if !field.nullable {
            f.write_str(" not null")?;
        }
        if let Some(comment) = &field.comment {
            write!(f, " comment '{}'", comment.replace('\'', "''"))?;
        }
    }
    f.write_str(">")
}

fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl FromStr for DataType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut reader = Reader { rest: text };
        reader
            .data_type(0)
            .and_then(|data_type| {
                reader.skip_blanks();
                if reader.rest.is_empty() { Ok(data_type) } else { Err(format!("{:?} is left over", reader.rest)) }
            })
            .map_err(|reason| Error::TypeUnreadable { text: text.to_owned(), reason })
    }
}

/// Names without parameters, canonical first in each row.
const SIMPLE: &[(DataType, &[&str])] = &[
    (DataType::Boolean, &["boolean", "bool"]),
    (DataType::Byte, &["byte", "tinyint"]),
    (DataType::Short, &["short", "smallint", "int16", "int2"]),
    (DataType::Integer, &["integer", "int", "int32", "int4"]),
    (DataType::Long, &["long", "bigint", "int64"]),
    (DataType::Float, &["float", "real", "float32"]),
    (DataType::Double, &["double", "float64", "float8"]),
    (DataType::String, &["string", "text", "varchar"]),
    (DataType::Binary, &["binary", "bytes", "bytea"]),
    (DataType::Date, &["date"]),
    (DataType::Timestamp, &["timestamp", "timestamp_ltz", "timestamptz"]),
    (DataType::TimestampNtz, &["timestamp_ntz", "datetime"]),
];

/// Reads the text form from left to right.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn data_type(&mut self, depth: usize) -> Result<DataType, String> {
        if depth > DEPTH_MAX {
            return Err(format!("it nests deeper than {DEPTH_MAX} levels"));
        }
        let word = self.word();
        if let Some((data_type, _)) = SIMPLE.iter().find(|(_, names)| names.contains(&word.as_str())) {
            return Ok(data_type.clone());
        }
        match word.as_str() {
            "decimal" | "numeric" | "dec" => self.decimal(),
            "array" => {
                self.expect('<')?;
                let element = self.data_type(depth + 1)?;
                self.expect('>')?;
                Ok(DataType::Array(Box::new(element)))
            }
            "map" => {
                self.expect('<')?;
                let key = self.data_type(depth + 1)?;
                self.expect(',')?;
                let value = self.data_type(depth + 1)?;
                self.expect('>')?;
                Ok(DataType::Map(Box::new(key), Box::new(value)))
            }
            "struct" => self.fields(depth),
            "" => Err("a type name is missing".to_owned()),
            "int8" => Err("int8 is 8 bits in Debezium and 8 bytes in PostgreSQL; write byte or long".to_owned()),
            "void" | "null" | "interval" | "time" | "variant" | "uuid" | "json" => Err(format!("Delta tables of ours have no type {word}")),
            _ => Err(unknown_word(&word)),
        }
    }

    fn decimal(&mut self) -> Result<DataType, String> {
        self.expect('(').map_err(|_| "a decimal needs its digits, as in decimal(12,2)".to_owned())?;
        let precision = self.number()?;
        let scale = if self.take(',') { self.number()? } else { 0 };
        self.expect(')')?;
        if precision == 0 || precision > DECIMAL_DIGITS_MAX {
            return Err(format!("a decimal has 1 to {DECIMAL_DIGITS_MAX} digits, not {precision}"));
        }
        if scale > precision {
            return Err(format!("the scale {scale} exceeds the precision {precision}"));
        }
        Ok(DataType::Decimal { precision, scale })
    }

    fn fields(&mut self, depth: usize) -> Result<DataType, String> {
        self.expect('<')?;
        let mut fields = Vec::new();
        if self.take('>') {
            return Ok(DataType::Struct(fields));
        }
        loop {
            fields.push(self.field(depth)?);
            if self.take('>') {
                return Ok(DataType::Struct(fields));
            }
            self.expect(',')?;
        }
    }

    fn field(&mut self, depth: usize) -> Result<Column, String> {
        let name = self.name()?;
        self.take(':');
        let mut field = Column::new(name, self.data_type(depth + 1)?);
        if self.take_word("not") {
            if !self.take_word("null") {
                return Err("not is followed by null".to_owned());
            }
            field.nullable = false;
        }
        if self.take_word("comment") {
            field.comment = Some(self.quoted('\'')?);
        }
        Ok(field)
    }

    fn name(&mut self) -> Result<String, String> {
        self.skip_blanks();
        if self.rest.starts_with('`') {
            return self.quoted('`');
        }
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err("a field name is missing".to_owned());
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    /// Text between quotes, the quote itself doubled inside.
    fn quoted(&mut self, quote: char) -> Result<String, String> {
        self.expect(quote)?;
        let mut text = String::new();
        while let Some(at) = self.rest.find(quote) {
            text.push_str(&self.rest[..at]);
            self.rest = &self.rest[at + quote.len_utf8()..];
            match self.rest.strip_prefix(quote) {
                Some(next) => {
                    text.push(quote);
                    self.rest = next;
                }
                None => return Ok(text),
            }
        }
        Err(format!("{quote} is not closed"))
    }

    fn number(&mut self) -> Result<u8, String> {
        self.skip_blanks();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().map_err(|_| format!("{digits:?} is not a number of digits"))
    }

    /// The next word in lower case, empty where none stands.
    fn word(&mut self) -> String {
        self.skip_blanks();
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_ascii_lowercase()
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let before = self.rest;
        let found = self.word() == wanted;
        if !found {
            self.rest = before;
        }
        found
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let after = self.rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) {
            return Ok(());
        }
        match self.rest.chars().next() {
            Some(found) => Err(format!("{wanted:?} is expected where {found:?} stands")),
            None => Err(format!("it ends where {wanted:?} is expected")),
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

fn unknown_word(word: &str) -> String {
    let names = SIMPLE.iter().flat_map(|(_, names)| *names).chain(&["decimal", "array", "map", "struct"]).copied();
    match tributary_fault::nearest(word, names) {
        Some(near) => format!("there is no type {word}; did you mean {near}?"),
        None => format!("there is no type {word}"),
    }
}

impl Serialize for DataType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DataType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_from_its_own_text() {
        for text in [
            "boolean",
            "byte",
            "short",
            "integer",
            "long",
            "float",
            "double",
            "decimal(38,38)",
            "string",
            "binary",
            "date",
            "timestamp",
            "timestamp_ntz",
            "array<array<long>>",
            "map<string,decimal(12,2)>",
            "struct<>",
            "struct<a:integer not null comment 'it''s',`b c`:struct<`x``y`:string>>",
        ] {
            assert_eq!(text.parse::<DataType>().map(|data_type| data_type.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn names_of_other_systems_are_read() {
        for (text, expected) in [
            ("INT", "integer"),
            ("BigInt", "long"),
            ("smallint", "short"),
            ("tinyint", "byte"),
            ("real", "float"),
            ("int32", "integer"),
            ("NUMERIC(10)", "decimal(10,0)"),
            (" Array < int > ", "array<integer>"),
            ("struct<a int, b: string NOT NULL>", "struct<a:integer,b:string not null>"),
        ] {
            assert_eq!(text.parse::<DataType>().map(|data_type| data_type.to_string()), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn what_no_delta_table_holds_is_refused_with_the_reason() {
        for (text, reason) in [
            ("decimal", "needs its digits"),
            ("decimal(39,2)", "1 to 38 digits"),
            ("decimal(0)", "1 to 38 digits"),
            ("decimal(4,5)", "exceeds the precision"),
            ("decimal(-1)", "not a number"),
            ("decimal(999)", "not a number"),
            ("int8", "write byte or long"),
            ("strng", "did you mean string?"),
            ("array<int", "ends where '>'"),
            ("int int", "left over"),
            ("", "missing"),
            ("struct<a:int not>", "followed by null"),
            ("varchar(10)", "left over"),
        ] {
            let error = text.parse::<DataType>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_the_stack_is() {
        let text = format!("{}int{}", "array<".repeat(100_000), ">".repeat(100_000));
        assert!(text.parse::<DataType>().is_err());
    }
}
