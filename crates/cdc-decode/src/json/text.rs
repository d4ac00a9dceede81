//! JSON strings: their escapes, read and written.

use crate::json::Broken;

/// The inside of a JSON string, escapes not yet resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// The bytes between the quotes.
    pub raw: &'a [u8],
    /// Whether there is a backslash in them.
    pub escaped: bool,
}

impl<'a> Text<'a> {
    /// The text itself, resolved into `scratch` where it has escapes.
    pub(crate) fn resolve<'s>(self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], Broken>
    where
        'a: 's,
    {
        if !self.escaped {
            return Ok(self.raw);
        }
        scratch.clear();
        unescape(self.raw, scratch)?;
        Ok(scratch)
    }
}

/// What an escape of one letter means.
#[inline(always)]
pub(super) fn short_escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        _ => return None,
    })
}

/// Resolves the escapes of a string whose form has been checked.
fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        let (byte, length) = match tail.get(1) {
            Some(b'u') => {
                let (letter, length) = unicode(tail)?;
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                rest = tail.get(length..).unwrap_or_default();
                continue;
            }
            Some(&letter) => (short_escape(letter).unwrap_or(letter), 2),
            None => return Err(Broken::Short),
        };
        out.push(byte);
        rest = tail.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// The character of a `\uXXXX` at the start, or of a pair of them, and the bytes it takes.
fn unicode(bytes: &[u8]) -> Result<(char, usize), Broken> {
    let first = unit(bytes)?;
    if let Some(letter) = char::from_u32(first) {
        return Ok((letter, 6));
    }
    let second = match bytes.get(6..) {
        Some(tail) if tail.starts_with(b"\\u") => unit(tail)?,
        _ => return Err(Broken::LoneSurrogate),
    };
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return Err(Broken::LoneSurrogate);
    }
    let point = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(point).map(|letter| (letter, 12)).ok_or(Broken::LoneSurrogate)
}

fn unit(bytes: &[u8]) -> Result<u32, Broken> {
    let digits = bytes.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(Broken::Short)?;
    u32::from_str_radix(digits, 16).map_err(|_| Broken::Short)
}

/// Writes a text as a JSON string, quotes included.
pub(crate) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::Cursor;

    proptest! {
        #[test]
        fn a_text_survives_being_written_and_read(text in any::<String>()) {
            for json in [serde_json::to_string(&text).unwrap().into_bytes(), { let mut out = Vec::new(); write_text(text.as_bytes(), &mut out); out }] {
                let mut scratch = Vec::new();
                let read = Cursor::new(&json).text().unwrap();
                prop_assert_eq!(read.resolve(&mut scratch).unwrap(), text.as_bytes());
            }
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_no_text() {
        let mut scratch = Vec::new();
        for bad in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\ud83dx""#] {
            assert_eq!(Cursor::new(bad.as_bytes()).text().unwrap().resolve(&mut scratch), Err(Broken::LoneSurrogate), "{bad}");
        }
        assert_eq!(Cursor::new(br#""\ud83d\ude00""#).text().unwrap().resolve(&mut scratch).unwrap(), "😀".as_bytes());
    }
}
