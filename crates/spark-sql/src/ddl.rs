//! Types as they are written: `bigint`, `decimal(10, 2)`, `array<int>`, `struct<a: int, b: string>`, and `a INT, b STRING` for a struct.

use std::sync::Arc;

use tributary_lake::arrow::datatypes::{DataType, Field};

use crate::value::{instant_type, list_type, local_type, map_type};

/// Types inside types at most.
const LEVELS_MAX: usize = 50;

/// The type that a text names; none where it names none.
pub(crate) fn data_type(text: &str) -> Option<DataType> {
    let mut reader = Reader { rest: text.trim(), levels: 0 };
    let found = reader.data_type()?;
    reader.blank();
    reader.rest.is_empty().then_some(found)
}

/// The type that a text names, or the struct of the columns that it lists.
pub(crate) fn schema(text: &str) -> Option<DataType> {
    data_type(text).or_else(|| {
        let mut reader = Reader { rest: text.trim(), levels: 0 };
        let fields = reader.fields()?;
        reader.blank();
        reader.rest.is_empty().then(|| DataType::Struct(fields.into()))
    })
}

struct Reader<'t> {
    rest: &'t str,
    levels: usize,
}

impl Reader<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, sign: char) -> bool {
        self.blank();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> Option<String> {
        self.blank();
        if let Some(quoted) = self.rest.strip_prefix('`') {
            let end = quoted.find('`')?;
            self.rest = &quoted[end + 1..];
            return Some(quoted[..end].to_owned());
        }
        let end = self.rest.find(|sign: char| !(sign.is_alphanumeric() || sign == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// Takes this word, without regard to case.
    fn keyword(&mut self, keyword: &str) -> bool {
        let before = self.rest;
        if self.word().is_some_and(|word| word.eq_ignore_ascii_case(keyword)) {
            return true;
        }
        self.rest = before;
        false
    }

    fn data_type(&mut self) -> Option<DataType> {
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            return None;
        }
        let found = self.any();
        self.levels -= 1;
        found
    }

    fn any(&mut self) -> Option<DataType> {
        let word = self.word()?.to_lowercase();
        Some(match word.as_str() {
            "boolean" => DataType::Boolean,
            "tinyint" | "byte" => DataType::Int8,
            "smallint" | "short" => DataType::Int16,
            "int" | "integer" => DataType::Int32,
            "bigint" | "long" => DataType::Int64,
            "float" | "real" => DataType::Float32,
            "double" => DataType::Float64,
            "string" => DataType::Utf8,
            "binary" => DataType::Binary,
            "date" => DataType::Date32,
            "timestamp" | "timestamp_ltz" => instant_type(),
            "timestamp_ntz" => local_type(),
            "void" => DataType::Null,
            "decimal" | "dec" | "numeric" => self.decimal()?,
            "array" => {
                let of = self.inside(Self::data_type)?;
                list_type(of)
            }
            "map" => self.inside(|reader| {
                let key = reader.data_type()?;
                reader.take(',').then_some(())?;
                Some(map_type(key, reader.data_type()?))
            })?,
            "struct" => {
                if self.rest.trim_start().starts_with("<>") {
                    self.take('<');
                    self.take('>');
                    return Some(DataType::Struct(Vec::<Arc<Field>>::new().into()));
                }
                DataType::Struct(self.inside(Self::fields)?.into())
            }
            _ => return None,
        })
    }

    fn inside<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.take('<').then_some(())?;
        let found = read(self)?;
        self.take('>').then_some(found)
    }

    fn decimal(&mut self) -> Option<DataType> {
        if !self.take('(') {
            return Some(DataType::Decimal128(10, 0));
        }
        let precision: u8 = self.word()?.parse().ok()?;
        let scale: i8 = if self.take(',') { self.word()?.parse().ok()? } else { 0 };
        let fits = (1..=38).contains(&precision) && (0..=precision as i8).contains(&scale);
        (self.take(')') && fits).then_some(DataType::Decimal128(precision, scale))
    }

    /// Names and types; between them a colon, which may be left out.
    fn fields(&mut self) -> Option<Vec<Field>> {
        let mut fields = Vec::new();
        loop {
            let name = self.word()?;
            self.take(':');
            let data_type = self.data_type()?;
            if self.keyword("not") && !self.keyword("null") {
                return None;
            }
            if self.keyword("comment") {
                self.quoted()?;
            }
            fields.push(Field::new(name, data_type, true));
            if !self.take(',') {
                return Some(fields);
            }
        }
    }

    fn quoted(&mut self) -> Option<()> {
        self.blank();
        let inside = self.rest.strip_prefix('\'')?;
        let end = inside.find('\'')?;
        self.rest = &inside[end + 1..];
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::word;

    #[test]
    fn types_are_read_as_they_are_written() {
        for (text, found) in [
            ("BIGINT", Some("bigint")),
            ("decimal", Some("decimal(10,0)")),
            ("array< struct<a: int, `b c`: map<string, double>> >", Some("array<struct<a:int,b c:map<string,double>>>")),
            ("struct<>", Some("struct<>")),
            ("decimal(39, 2)", None),
            ("array<int", None),
            ("nonsense", None),
        ] {
            assert_eq!(data_type(text).as_ref().map(word).as_deref(), found, "{text}");
        }
        assert_eq!(schema("a INT, b STRING NOT NULL").as_ref().map(word).as_deref(), Some("struct<a:int,b:string>"));
        assert_eq!(schema("a INT b"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(array|map|struct|int|string|decimal|<|>|,|:|\\(|\\)|1|`| |ä){0,20}") {
            let _ = schema(&text);
        }
    }
}
