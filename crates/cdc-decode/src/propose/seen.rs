//! What the values of one column have been, and what that allows to say.

use tributary_specs::{DataType, Encoding};

use crate::encoded::decode;
use crate::json::{Broken, Cursor, Kind};
use crate::number::Decimal;
use crate::read::significant;
use crate::time::{Moment, Parsed, parse_date, parse_moment};
use crate::wire::Form;

/// Who wrote the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// A connector, without schemas.
    Debezium,
    /// Any producer of JSON.
    Any,
    /// CSV: every value is text, so its digits tell its type.
    Csv,
}

/// What the values of a column have been.
#[derive(Debug, Default)]
pub(super) struct Seen {
    nulls: usize,
    booleans: usize,
    whole: Numbers,
    fractions: usize,
    /// Numbers that a double does not hold.
    long_fractions: usize,
    texts: Texts,
    variable: usize,
    objects: usize,
    arrays: usize,
    items: Option<Box<Seen>>,
}

#[derive(Debug, Default)]
struct Numbers {
    count: usize,
    /// Some do not fit a `long`.
    huge: bool,
    /// Some do not fit an `integer`.
    wide: bool,
}

/// How many texts have each form.
#[derive(Debug, Default)]
struct Texts {
    count: usize,
    empty: usize,
    base64: usize,
    zoned: usize,
    local: usize,
    dates: usize,
    whole: usize,
    decimals: usize,
    scale: u8,
    digits: u8,
    booleans: usize,
}

impl Seen {
    pub(super) fn null(&mut self) {
        self.nulls += 1;
    }

    /// Takes in the next value.
    pub(super) fn value(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        match cursor.kind()? {
            Kind::Null => {
                self.null();
                cursor.skip()?;
            }
            Kind::Boolean => {
                self.booleans += 1;
                cursor.skip()?;
            }
            Kind::Number => {
                let number = cursor.number()?;
                let point = number.raw.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
                if point {
                    self.fractions += 1;
                    self.long_fractions += usize::from(significant(number.raw) > 15);
                } else {
                    self.whole.count += 1;
                    self.whole.huge |= number.integer.is_none();
                    self.whole.wide |= number.integer.is_none_or(|whole| i32::try_from(whole).is_err());
                }
            }
            Kind::Text => {
                let mut scratch = Vec::new();
                let text = cursor.text()?;
                self.text(text.resolve(&mut scratch)?);
            }
            Kind::Object => self.object(cursor)?,
            Kind::Array => {
                self.arrays += 1;
                let mut elements = cursor.array()?;
                while cursor.element(&mut elements)? {
                    self.items.get_or_insert_default().value(cursor)?;
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let (mut scale, mut value, mut others) = (false, false, false);
        let mut members = cursor.object()?;
        while let Some(key) = cursor.member(&mut members)? {
            match (key.raw, cursor.kind()?) {
                (b"scale", Kind::Number) => scale = true,
                (b"value", Kind::Text) => value = true,
                _ => others = true,
            }
            cursor.skip()?;
        }
        if scale && value && !others {
            self.variable += 1
        } else {
            self.objects += 1
        }
        Ok(())
    }

    pub(super) fn text(&mut self, text: &[u8]) {
        let texts = &mut self.texts;
        texts.count += 1;
        let mut bytes = Vec::new();
        texts.empty += usize::from(text.is_empty());
        let is_base64 = text.len().is_multiple_of(4) && decode(Form::Base64, text, &mut bytes).is_some();
        texts.base64 += usize::from(is_base64);
        match parse_date(text) {
            Parsed::Value { .. } => texts.dates += 1,
            _ => match parse_moment(text) {
                Parsed::Value { value: Moment { offset: Some(_), .. }, .. } => texts.zoned += 1,
                Parsed::Value { .. } => texts.local += 1,
                _ => {}
            },
        }
        texts.booleans += usize::from(matches!(text, b"true" | b"false"));
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let plain = digits.first().is_some_and(u8::is_ascii_digit) && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        // Zeros in front would be lost.
        let canonical = plain && (!digits.starts_with(b"0") || digits.len() == 1 || digits.starts_with(b"0."));
        if let Some(decimal) = Decimal::parse(text).filter(|_| canonical) {
            let scale = u8::try_from(decimal.scale).unwrap_or(38);
            let (before, _) = decimal.digits();
            texts.whole += usize::from(scale == 0 && decimal.whole().is_some());
            texts.decimals += 1;
            texts.scale = texts.scale.max(scale);
            texts.digits = texts.digits.max(before);
        }
    }

    /// The type that holds the values as they came, how they are written, and what is not known.
    pub(super) fn proposed(&self, writer: Writer) -> (Option<DataType>, Option<Encoding>, Option<String>) {
        let plain = |data_type, remark: &str| (Some(data_type), None, (!remark.is_empty()).then(|| remark.to_owned()));
        let numbers = self.whole.count + self.fractions;
        let kinds = [self.booleans, numbers, self.texts.count, self.variable, self.objects, self.arrays];
        match kinds.iter().filter(|count| **count > 0).count() {
            0 => return (None, None, Some("null in every sample: its type is not known".to_owned())),
            1 => {}
            _ => return plain(DataType::String, "values of several kinds: kept as their text"),
        }
        if self.booleans > 0 {
            return plain(DataType::Boolean, "");
        }
        if self.variable > 0 {
            let remark = "a decimal that brings its own scale: declare decimal(p,s) when both are known";
            return (Some(DataType::String), Some(Encoding::Unscaled), Some(remark.to_owned()));
        }
        if self.objects > 0 {
            return plain(DataType::String, "an object: kept as its JSON text");
        }
        if self.arrays > 0 {
            return self.array(writer);
        }
        if self.texts.count > 0 {
            return self.texts.proposed(writer);
        }
        self.number(writer)
    }

    fn array(&self, writer: Writer) -> (Option<DataType>, Option<Encoding>, Option<String>) {
        let Some(items) = &self.items else {
            return (None, None, Some("an empty array in every sample: the type of its elements is not known".to_owned()));
        };
        let (element, encoding, remark) = items.proposed(writer);
        let Some(element) = element else {
            return (None, None, Some("an array of nulls: the type of its elements is not known".to_owned()));
        };
        (Some(DataType::Array(Box::new(element))), encoding, remark.map(|remark| format!("elements: {remark}")))
    }

    fn number(&self, writer: Writer) -> (Option<DataType>, Option<Encoding>, Option<String>) {
        let with = |data_type, remark: String| (Some(data_type), None, Some(remark));
        if self.fractions > 0 {
            if self.long_fractions > 0 || self.whole.huge {
                return with(
                    DataType::String,
                    "a number of more digits than a double has: declare decimal(p,s) when both are known".to_owned(),
                );
            }
            return with(DataType::Double, "a number with a fraction: if it is a decimal at the source, declare decimal(p,s)".to_owned());
        }
        if self.whole.huge {
            let decimal = DataType::Decimal { precision: 38, scale: 0 };
            return with(decimal, "a whole number larger than a long: how large it may be is not known".to_owned());
        }
        let days = if self.whole.wide { "" } else { "days (date), " };
        let remark = match writer {
            Writer::Debezium => format!(
                "a whole number; not known: whether it is {days}a time or timestamp (encoding millis, micros or nanos), or unsigned"
            ),
            _ => "a whole number; not known: whether it is a time, and in which unit".to_owned(),
        };
        with(DataType::Long, remark)
    }
}

impl Texts {
    fn proposed(&self, writer: Writer) -> (Option<DataType>, Option<Encoding>, Option<String>) {
        let all = |count: usize| count == self.count;
        if writer == Writer::Csv {
            let (data_type, remark) = self.of_csv();
            return (Some(data_type), None, remark.map(str::to_owned));
        }
        let remark = if all(self.zoned) {
            "every value is a time with offset: timestamp, if the source says so"
        } else if all(self.local) {
            "every value is a time without offset: timestamp_ntz, if the source says so"
        } else if all(self.dates) {
            "every value is a date: date, if the source says so"
        } else if all(self.decimals) {
            "every value is digits: decimal(p,s) with encoding text, if the source says so"
        } else if all(self.base64) && self.base64 > self.empty && writer == Writer::Debezium {
            "may be base64: then binary with encoding base64, or decimal(p,s) with encoding unscaled, whose scale is not known"
        } else {
            ""
        };
        (Some(DataType::String), None, (!remark.is_empty()).then(|| remark.to_owned()))
    }

    fn of_csv(&self) -> (DataType, Option<&'static str>) {
        let all = |count: usize| count == self.count;
        let digits = self.digits.saturating_add(self.scale);
        if all(self.booleans) {
            (DataType::Boolean, Some("every value is true or false"))
        } else if all(self.whole) {
            (DataType::Long, Some("every value is a whole number"))
        } else if all(self.decimals) && digits <= 38 {
            let remark = "the most digits of the samples behind the point: the scale is not known";
            (DataType::Decimal { precision: 38, scale: self.scale }, Some(remark))
        } else if all(self.dates) {
            (DataType::Date, Some("every value is a date"))
        } else if all(self.zoned) {
            (DataType::Timestamp, Some("every value is a time with offset"))
        } else if all(self.local) {
            (DataType::TimestampNtz, Some("every value is a time without offset"))
        } else {
            (DataType::String, None)
        }
    }
}
