//! Looks through a datum before Arrow's decoder is given it: one that does not fit its schema must leave no trace in the
//! columns under construction, and what is wrong with it must be told by field and byte.

use crate::avro::schema::{Branch, Kind, Type};

/// What is wrong with a datum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The fields it lies in, outermost first.
    path: Vec<String>,
    /// The byte of the message.
    at: usize,
    what: &'static str,
}

impl Misfit {
    fn within(mut self, field: &str) -> Self {
        self.path.insert(0, field.to_owned());
        self
    }

    pub(crate) fn message(&self) -> String {
        let Self { path, at, what } = self;
        if path.is_empty() { format!("{what} at byte {at}") } else { format!("field {}: {what} at byte {at}", path.join(".")) }
    }
}

/// Checks that the bytes from `at` on are one value of the type and nothing more.
pub(crate) fn check(bytes: &[u8], at: usize, data: &Type) -> Result<(), Misfit> {
    let mut walk = Walk { bytes, at };
    walk.value(data)?;
    if walk.at < bytes.len() {
        return Err(walk.misfit("bytes follow the record"));
    }
    Ok(())
}

struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Walk<'_> {
    fn misfit(&self, what: &'static str) -> Misfit {
        Misfit { path: Vec::new(), at: self.at, what }
    }

    fn value(&mut self, data: &Type) -> Result<(), Misfit> {
        if let Some(null) = data.null {
            let branch = self.number()?;
            let is_null = match (branch, null) {
                (0, Branch::First) | (2, Branch::Second) => true,
                (2, Branch::First) | (0, Branch::Second) => false,
                _ => return Err(self.misfit("a union has no such branch")),
            };
            if is_null {
                return Ok(());
            }
        }
        match &data.body.kind {
            Kind::Boolean => match self.take(1)? {
                [0 | 1] => Ok(()),
                _ => Err(self.misfit("a boolean is neither 0 nor 1")),
            },
            Kind::Int => self.int().map(drop),
            Kind::Long => self.number().map(drop),
            Kind::Float => self.take(4).map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Fixed(size) => self.take(*size).map(drop),
            Kind::Bytes => self.bytes().map(drop),
            Kind::Text => self.text(),
            Kind::Enum(symbols) => {
                let symbol = self.int()?;
                if symbol & 1 == 1 || usize::try_from(symbol >> 1).is_ok_and(|symbol| symbol >= symbols.len()) {
                    return Err(self.misfit("an enum has no such symbol"));
                }
                Ok(())
            }
            Kind::Array(items) => self.blocks(|walk| walk.value(items)),
            Kind::Map(values) => self.blocks(|walk| {
                walk.text()?;
                walk.value(values)
            }),
            Kind::Record(fields) => {
                for field in fields {
                    self.value(&field.data).map_err(|misfit| misfit.within(&field.name))?;
                }
                Ok(())
            }
        }
    }

    /// A number as it is written: zigzag, seven bits a byte.
    fn number(&mut self) -> Result<u64, Misfit> {
        let mut value = 0u64;
        for shift in 0..10 {
            let Some(byte) = self.bytes.get(self.at + shift) else { return Err(self.misfit("the record is cut short")) };
            if shift == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * shift);
            if byte & 0x80 == 0 {
                self.at += shift + 1;
                return Ok(value);
            }
        }
        Err(self.misfit("a number has more than 64 bits"))
    }

    fn int(&mut self) -> Result<u32, Misfit> {
        let start = self.at;
        let number = self.number()?;
        u32::try_from(number).map_err(|_| {
            self.at = start;
            self.misfit("an int has more than 32 bits")
        })
    }

    fn long(&mut self) -> Result<i64, Misfit> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Misfit> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else { return Err(self.misfit("the record is cut short")) };
        let start = std::mem::replace(&mut self.at, end);
        Ok(self.bytes.get(start..end).unwrap_or_default())
    }

    fn bytes(&mut self) -> Result<&[u8], Misfit> {
        let length = self.long()?;
        let Ok(length) = usize::try_from(length) else { return Err(self.misfit("a length is negative")) };
        self.take(length)
    }

    fn text(&mut self) -> Result<(), Misfit> {
        let text = self.bytes()?;
        if simdutf8::basic::from_utf8(text).is_err() {
            return Err(self.misfit("a text is not utf-8, before"));
        }
        Ok(())
    }

    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Misfit>) -> Result<(), Misfit> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            // A negative count is followed by the block's size.
            let end = if count < 0 {
                let size = self.long()?;
                let end = usize::try_from(size).ok().and_then(|size| self.at.checked_add(size));
                Some(end.ok_or_else(|| self.misfit("a block's size is negative"))?)
            } else {
                None
            };
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
            if end.is_some_and(|end| end != self.at) {
                return Err(self.misfit("a block has another size than it says"));
            }
        }
    }
}
