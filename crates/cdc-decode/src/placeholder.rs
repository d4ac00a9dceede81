//! What Debezium writes in place of a value that did not change and was not sent.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use md5::{Digest, Md5};

/// The text unless the connector's `unavailable.value.placeholder` says otherwise.
pub(crate) const DEFAULT: &str = "__debezium_unavailable_value";

/// The forms a placeholder takes by type.
#[derive(Debug, Clone)]
pub(crate) struct Placeholder {
    text: Vec<u8>,
    /// The text's bytes as a `bytes` column has them, in the four ways bytes are written.
    encoded: Vec<Vec<u8>>,
    /// The name-based UUID (version 3) of the bytes, the one element of a uuid array.
    uuid: Vec<u8>,
    /// Every length that one of the above has, as a bit; longer ones at bit 63.
    lengths: u64,
}

impl Placeholder {
    /// The forms of one text. `hex:` in front means the bytes that follow, as Debezium has it.
    pub(crate) fn new(setting: &str) -> Self {
        let bytes = setting.strip_prefix("hex:").and_then(|digits| unhex(digits.as_bytes())).unwrap_or_else(|| setting.as_bytes().to_vec());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let encoded = vec![STANDARD.encode(&bytes).into_bytes(), URL_SAFE.encode(&bytes).into_bytes(), hex.into_bytes()];
        let mut new = Self { uuid: name_uuid(&bytes), text: bytes, encoded, lengths: 0 };
        for form in std::iter::once(&new.text).chain(&new.encoded).chain(std::iter::once(&new.uuid)) {
            new.lengths |= 1 << form.len().min(63);
        }
        new
    }

    /// Whether a text is the placeholder of a text or bytes column.
    #[inline]
    pub(crate) fn is_text(&self, text: &[u8]) -> bool {
        self.lengths & (1 << text.len().min(63)) != 0 && (text == self.text || self.encoded.iter().any(|form| text == form.as_slice()))
    }

    /// Whether the only element of an array is its placeholder.
    pub(crate) fn is_element(&self, text: &[u8]) -> bool {
        self.is_text(text) || text == self.uuid
    }

    /// Whether the elements of an int or bigint array spell the placeholder, a byte an element.
    pub(crate) fn is_spelled(&self, elements: impl Iterator<Item = i64>) -> bool {
        elements.eq(self.text.iter().map(|byte| i64::from(byte.cast_signed())))
    }
}

/// Java's `UUID.nameUUIDFromBytes`.
fn name_uuid(bytes: &[u8]) -> Vec<u8> {
    let mut digest: [u8; 16] = Md5::digest(bytes).into();
    digest[6] = digest[6] & 0x0f | 0x30;
    digest[8] = digest[8] & 0x3f | 0x80;
    let mut text = String::new();
    for (at, byte) in digest.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text.into_bytes()
}

/// The bytes of hexadecimal digits, `None` if they are none.
pub(crate) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_known_as_text_bytes_and_elements() {
        let placeholder = Placeholder::new(DEFAULT);
        assert!(placeholder.is_text(b"__debezium_unavailable_value"));
        assert!(placeholder.is_text(b"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="));
        assert!(placeholder.is_text(b"5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"));
        assert!(!placeholder.is_text(b"__debezium_unavailable_valuf"));
        assert!(placeholder.is_spelled(DEFAULT.bytes().map(i64::from)));
        assert!(!placeholder.is_spelled([95, 95].into_iter()));
    }

    #[test]
    fn the_name_based_uuid_is_javas() {
        // `UUID.nameUUIDFromBytes("hello".getBytes())`
        assert_eq!(name_uuid(b"hello"), b"5d41402a-bc4b-3a76-b971-9d911017c592");
    }

    #[test]
    fn a_placeholder_may_be_given_in_hexadecimal() {
        let placeholder = Placeholder::new("hex:ff00");
        assert!(placeholder.is_text(b"/wA="));
        assert!(placeholder.is_text(b"ff00"));
    }
}
