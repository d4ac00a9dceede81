//! Digests, hashes and other writings of bytes.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use md5::Digest as _;
use tributary_lake::arrow::array::{Array, ArrayRef, BinaryArray, Int32Array, Int64Array, StringArray};
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::error::{DataFusionError, Result};

use super::own::Kind::{Any, Bytes, Int, Text};
use super::own::{Gives, Own, bytes, column, fault, ints, one, or_literal, texts, three, two};
use super::{Entry, own, refused};
use crate::convert;
use crate::value::{Value, read};

/// Of the names of this subject.
pub(super) const FUNCTIONS: &[Entry] = &[
    own(&["md5"], Own::new("md5", &[Bytes], Gives::Text, |a, _| digested(a, |bytes| digits(&md5::Md5::digest(bytes))))),
    own(
        &["sha1", "sha"],
        Own::new("sha1", &[Bytes], Gives::Text, |a, _| digested(a, |bytes| digits(&sha1_smol::Sha1::from(bytes).digest().bytes()))),
    ),
    own(
        &["sha2"],
        Own::new("sha2", &[Bytes, Int], Gives::Text, |a, _| {
            column::<StringArray>(two(bytes(&a[0]), ints(&a[1]), |bytes: &[u8], bits| Ok(sha2(bytes, bits)))?)
        }),
    ),
    own(
        &["crc32"],
        Own::new("crc32", &[Bytes], Gives::Long, |a, _| {
            column::<Int64Array>(one(bytes(&a[0]), |bytes: &[u8]| Ok(Some(i64::from(crc32fast::hash(bytes)))))?)
        }),
    ),
    own(
        &["hash"],
        Own::new("hash", &[], Gives::Int, |a, _| {
            column(hashed(a, 42_u32, murmur)?.into_iter().map(|hash| Some(hash as i32)).collect::<Int32Array>())
        })
        .at_least(1)
        .and_more(Any),
    ),
    own(
        &["xxhash64"],
        Own::new("xxhash64", &[], Gives::Long, |a, _| {
            column(hashed(a, 42_u64, xxhash)?.into_iter().map(|hash| Some(hash as i64)).collect::<Int64Array>())
        })
        .at_least(1)
        .and_more(Any),
    ),
    own(&["base64"], Own::new("base64", &[Bytes], Gives::Text, |a, _| digested(a, |bytes| in_lines(&to_base64(bytes))))),
    own(
        &["unbase64"],
        Own::new("unbase64", &[Text], Gives::Bytes, |a, _| {
            undone(a, |text| from_base64(text).map_or_else(|| fault("a string cannot be read as base64"), |bytes| Ok(Some(bytes))))
        }),
    ),
    own(&["hex"], Own::new("hex", &[Any], Gives::Text, hex)),
    own(
        &["unhex"],
        Own::new("unhex", &[Text], Gives::Bytes, |a, _| {
            undone(a, |text| from_hex(text).map_or_else(|| fault("a string cannot be read as hexadecimal digits"), |bytes| Ok(Some(bytes))))
        }),
    ),
    own(
        &["encode"],
        Own::new("encode", &[Text, Text], Gives::Bytes, |a, _| {
            column::<BinaryArray>(two(texts(&a[0]), texts(&a[1]), |text: &str, set: &str| encoded(text, set).map(Some))?)
        }),
    ),
    own(&["to_binary"], Own::new("to_binary", &[Text, Text], Gives::Bytes, |a, _| to_binary(a, false)).at_least(1)),
    own(&["try_to_binary"], Own::new("try_to_binary", &[Text, Text], Gives::Bytes, |a, _| to_binary(a, true)).at_least(1)),
    own(&["url_encode"], Own::new("url_encode", &[Text], Gives::Text, |a, _| super::texts::each(a, |text| Some(url_encoded(text))))),
    own(
        &["url_decode"],
        Own::new("url_decode", &[Text], Gives::Text, |a, _| {
            column::<StringArray>(one(texts(&a[0]), |text: &str| {
                url_decoded(text).map_or_else(|| fault("a string cannot be read as an encoded URL"), |text| Ok(Some(text)))
            })?)
        }),
    ),
    own(&["try_url_decode"], Own::new("try_url_decode", &[Text], Gives::Text, |a, _| super::texts::each(a, url_decoded))),
    own(&["parse_url"], Own::new("parse_url", &[Text, Text, Text], Gives::Text, |a, _| parse_url(a, false)).at_least(2)),
    own(&["try_parse_url"], Own::new("try_parse_url", &[Text, Text, Text], Gives::Text, |a, _| parse_url(a, true)).at_least(2)),
    refused(&["aes_encrypt", "aes_decrypt", "try_aes_decrypt"], "keys do not belong in a text"),
];

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

fn digested(arguments: &[ArrayRef], f: impl Fn(&[u8]) -> String) -> Result<ArrayRef> {
    column::<StringArray>(one(bytes(&arguments[0]), |bytes: &[u8]| Ok(Some(f(bytes))))?)
}

fn undone(arguments: &[ArrayRef], f: impl Fn(&str) -> Result<Option<Vec<u8>>>) -> Result<ArrayRef> {
    column::<BinaryArray>(one(texts(&arguments[0]), f)?)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha2(bytes: &[u8], bits: i32) -> Option<String> {
    match bits {
        224 => Some(digits(&sha2::Sha224::digest(bytes))),
        0 | 256 => Some(digits(&sha2::Sha256::digest(bytes))),
        384 => Some(digits(&sha2::Sha384::digest(bytes))),
        512 => Some(digits(&sha2::Sha512::digest(bytes))),
        _ => None,
    }
}

/// Lines of 76 signs, as MIME has them.
fn in_lines(text: &str) -> String {
    let lines: Vec<&str> = (0..text.len()).step_by(76).map(|at| &text[at..(at + 76).min(text.len())]).collect();
    lines.join("\r\n")
}

/// In one line.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let signs: String = text.chars().filter(|sign| !sign.is_whitespace()).collect();
    BASE64.decode(signs).ok()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let nibble = |sign: char| sign.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = text.chars().map(nibble).collect::<Option<_>>()?;
    let (first, pairs) = digits.split_at(digits.len() % 2);
    Some(first.iter().copied().chain(pairs.chunks(2).map(|pair| pair[0] << 4 | pair[1])).collect())
}

fn hex(arguments: &[ArrayRef], _: &DataType) -> Result<ArrayRef> {
    let of = &arguments[0];
    let told = |row| {
        Ok(match read(of, row)? {
            Value::Null => None,
            Value::Whole(number) => Some(format!("{number:X}")),
            Value::Bytes(bytes) => Some(digits(&bytes).to_uppercase()),
            Value::Text(text) => Some(digits(text.as_bytes()).to_uppercase()),
            value @ (Value::Double(_) | Value::Float(_) | Value::Decimal(..)) => {
                let whole = convert::real(&value).filter(|number| number.is_finite());
                whole.map(|number| format!("{:X}", number as i64))
            }
            _ => return Err(DataFusionError::Execution("`hex` takes a whole number, a string or a binary".to_owned())),
        })
    };
    column((0..of.len()).map(told).collect::<Result<StringArray>>()?)
}

fn encoded(text: &str, set: &str) -> Result<Vec<u8>> {
    Ok(match set.to_lowercase().as_str() {
        "utf-8" => text.as_bytes().to_vec(),
        "us-ascii" => text.chars().map(|sign| if sign.is_ascii() { sign as u8 } else { b'?' }).collect(),
        "iso-8859-1" => text.chars().map(|sign| u8::try_from(u32::from(sign)).unwrap_or(b'?')).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16" => [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect(),
        _ => return fault("`encode` knows US-ASCII, ISO-8859-1, UTF-8, UTF-16BE, UTF-16LE and UTF-16"),
    })
}

/// `decode(bytes, set)`.
pub(super) fn decoded(bytes: &[u8], set: &str) -> Result<String> {
    let units = |of: fn([u8; 2]) -> u16| bytes.chunks(2).map(|pair| of([pair[0], *pair.get(1).unwrap_or(&0)])).collect::<Vec<u16>>();
    let bad = || DataFusionError::Execution("bytes are no text of their set of signs".to_owned());
    match set.to_lowercase().as_str() {
        "utf-8" => String::from_utf8(bytes.to_vec()).map_err(|_| bad()),
        "us-ascii" if bytes.is_ascii() => Ok(bytes.iter().copied().map(char::from).collect()),
        "iso-8859-1" => Ok(bytes.iter().copied().map(char::from).collect()),
        "utf-16be" => String::from_utf16(&units(u16::from_be_bytes)).map_err(|_| bad()),
        "utf-16le" => String::from_utf16(&units(u16::from_le_bytes)).map_err(|_| bad()),
        _ => fault("`decode` knows US-ASCII, ISO-8859-1, UTF-8, UTF-16BE and UTF-16LE"),
    }
}

fn to_binary(arguments: &[ArrayRef], lenient: bool) -> Result<ArrayRef> {
    let forms: Vec<Option<&str>> = or_literal(arguments.get(1).map(texts), "hex", arguments[0].len());
    column::<BinaryArray>(two(texts(&arguments[0]), forms, |text: &str, form: &str| {
        let bytes = match form.to_lowercase().as_str() {
            "hex" => from_hex(text),
            "utf-8" | "utf8" => Some(text.as_bytes().to_vec()),
            "base64" => from_base64(text),
            _ => return fault("`to_binary` knows hex, utf-8 and base64"),
        };
        if bytes.is_none() && !lenient { fault("a string cannot be read in the form of `to_binary`") } else { Ok(bytes) }
    })?)
}

fn url_encoded(text: &str) -> String {
    let told = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(told).collect()
}

fn url_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut nibble = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (nibble()?, nibble()?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

fn parse_url(arguments: &[ArrayRef], lenient: bool) -> Result<ArrayRef> {
    let keys: Vec<Option<&str>> = match arguments.get(2) {
        Some(column) => texts(column).iter().collect(),
        None => vec![Some(""); arguments[0].len()],
    };
    let keyed = arguments.len() == 3;
    column::<StringArray>(three(texts(&arguments[0]), texts(&arguments[1]), keys, |url: &str, part: &str, key: &str| {
        match Url::parse(url) {
            Some(url) => Ok(url.part(part, keyed.then_some(key))),
            None if lenient => Ok(None),
            None => fault("a string cannot be read as a URL"),
        }
    })?)
}

/// The parts of `protocol://user@host:port/path?query#reference`.
struct Url<'t> {
    protocol: Option<&'t str>,
    authority: Option<&'t str>,
    path: &'t str,
    query: Option<&'t str>,
    reference: Option<&'t str>,
}

impl<'t> Url<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        if text.chars().any(|sign| sign.is_whitespace() || sign.is_control() || "\"<>\\^`{|}".contains(sign)) {
            return None;
        }
        let (rest, reference) = cut(text, '#');
        let (rest, query) = cut(rest, '?');
        let (protocol, rest) = match rest.split_once(':') {
            Some((protocol, rest)) if !protocol.contains('/') && !protocol.is_empty() => (Some(protocol), rest),
            _ => (None, rest),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, rest),
        };
        Some(Self { protocol, authority, path, query, reference })
    }

    fn part(&self, part: &str, key: Option<&str>) -> Option<String> {
        let user = self.authority.and_then(|authority| authority.rsplit_once('@'));
        let owned = |text: &str| text.to_owned();
        match (part, key) {
            ("QUERY", Some(key)) => {
                let mut pairs = self.query?.split('&').filter_map(|pair| pair.split_once('='));
                pairs.find(|(name, _)| *name == key).map(|(_, value)| owned(value))
            }
            (_, Some(_)) => None,
            ("HOST", None) => {
                let host = user.map_or(self.authority?, |(_, host)| host);
                Some(owned(
                    host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|c| c.is_ascii_digit())).map_or(host, |(host, _)| host),
                ))
            }
            ("PATH", None) => Some(owned(self.path)),
            ("QUERY", None) => self.query.map(owned),
            ("REF", None) => self.reference.map(owned),
            ("PROTOCOL", None) => self.protocol.map(owned),
            ("FILE", None) => Some(self.query.map_or_else(|| owned(self.path), |query| format!("{}?{query}", self.path))),
            ("AUTHORITY", None) => self.authority.map(owned),
            ("USERINFO", None) => user.map(|(user, _)| owned(user)),
            _ => None,
        }
    }
}

fn cut(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// The hash of a row: of each value with the hash of those before it as seed; null leaves it.
fn hashed<H: Copy>(arguments: &[ArrayRef], seed: H, of: impl Fn(&Value, &DataType, H) -> Result<H>) -> Result<Vec<H>> {
    let rows = arguments.first().map_or(1, |column| column.len());
    (0..rows).map(|row| arguments.iter().try_fold(seed, |seed, column| of(&read(column, row)?, column.data_type(), seed))).collect()
}

/// The bytes that stand for a number in a hash: four or eight.
enum Bits {
    Four(u32),
    Eight(u64),
    Many(Vec<u8>),
}

fn bits(value: &Value, of: &DataType) -> Result<Option<Bits>> {
    Ok(Some(match (value, of) {
        (Value::Boolean(yes), _) => Bits::Four(u32::from(*yes)),
        (Value::Whole(number), DataType::Int64) => Bits::Eight(*number as u64),
        (Value::Whole(number), _) => Bits::Four(*number as u32),
        (Value::Float(number), _) => Bits::Four(if *number == 0.0 {
            0
        } else if number.is_nan() {
            0x7fc0_0000
        } else {
            number.to_bits()
        }),
        (Value::Double(number), _) => Bits::Eight(if *number == 0.0 {
            0
        } else if number.is_nan() {
            0x7ff8_0000_0000_0000
        } else {
            number.to_bits()
        }),
        (Value::Date(days), _) => Bits::Four(*days as u32),
        (Value::Instant(instant), _) => Bits::Eight(*instant as u64),
        (Value::Decimal(digits, _), DataType::Decimal128(precision, _)) if *precision <= 18 => Bits::Eight(*digits as u64),
        (Value::Decimal(digits, _), _) => Bits::Many(shortest_bytes(*digits)),
        (Value::Text(text), _) => Bits::Many(text.as_bytes().to_vec()),
        (Value::Bytes(bytes), _) => Bits::Many(bytes.clone()),
        (Value::Map(_), _) => return fault("maps have no hash"),
        _ => return Ok(None),
    }))
}

/// A number in the fewest bytes of two's complement, the most significant first.
fn shortest_bytes(number: i128) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let sign = if number < 0 { 0xff } else { 0 };
    let skipped = bytes.windows(2).take_while(|pair| pair[0] == sign && (pair[1] ^ sign) & 0x80 == 0).count();
    bytes[skipped..].to_vec()
}

/// Values inside a list or a struct, one after the other.
fn inside<H: Copy>(value: &Value, of: &DataType, seed: H, hash: impl Fn(&Value, &DataType, H) -> Result<H>) -> Result<H> {
    match (value, of) {
        (Value::List(inside), DataType::List(field)) => inside.iter().try_fold(seed, |seed, value| hash(value, field.data_type(), seed)),
        (Value::Struct(inside), DataType::Struct(fields)) => {
            inside.iter().zip(fields).try_fold(seed, |seed, (value, field)| hash(value, field.data_type(), seed))
        }
        _ => Ok(seed),
    }
}

fn murmur(value: &Value, of: &DataType, seed: u32) -> Result<u32> {
    const MIX: fn(u32) -> u32 = |block| block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    const ADD: fn(u32, u32) -> u32 = |hash, block| (hash ^ MIX(block)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    let end = |hash: u32, length: u32| {
        let hash = hash ^ length;
        let hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
        let hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        hash ^ (hash >> 16)
    };
    Ok(match bits(value, of)? {
        None => inside(value, of, seed, murmur)?,
        Some(Bits::Four(bits)) => end(ADD(seed, bits), 4),
        Some(Bits::Eight(bits)) => end(ADD(ADD(seed, bits as u32), (bits >> 32) as u32), 8),
        Some(Bits::Many(bytes)) => {
            let blocks = bytes.chunks_exact(4);
            // a byte that is left over is a block of its own, with its sign
            let rest = blocks.remainder().iter().map(|byte| i32::from(*byte as i8) as u32);
            let words = blocks.map(|block| u32::from_le_bytes([block[0], block[1], block[2], block[3]]));
            end(words.chain(rest).fold(seed, ADD), bytes.len() as u32)
        }
    })
}

fn xxhash(value: &Value, of: &DataType, seed: u64) -> Result<u64> {
    Ok(match bits(value, of)? {
        None => inside(value, of, seed, xxhash)?,
        Some(Bits::Four(bits)) => xx::end(xx::four(seed.wrapping_add(xx::P5).wrapping_add(4), bits)),
        Some(Bits::Eight(bits)) => xx::end(xx::eight(seed.wrapping_add(xx::P5).wrapping_add(8), bits)),
        Some(Bits::Many(bytes)) => xx::hash(&bytes, seed),
    })
}

/// XXH64.
mod xx {
    const P1: u64 = 0x9e37_79b1_85eb_ca87;
    const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
    const P3: u64 = 0x1656_67b1_9e37_79f9;
    const P4: u64 = 0x85eb_ca77_c2b2_ae63;
    pub(super) const P5: u64 = 0x27d4_eb2f_1656_67c5;

    fn round(lane: u64, input: u64) -> u64 {
        lane.wrapping_add(input.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
    }

    pub(super) fn eight(hash: u64, bits: u64) -> u64 {
        (hash ^ round(0, bits)).rotate_left(27).wrapping_mul(P1).wrapping_add(P4)
    }

    pub(super) fn four(hash: u64, bits: u32) -> u64 {
        (hash ^ u64::from(bits).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3)
    }

    pub(super) fn end(hash: u64) -> u64 {
        let hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
        let hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
        hash ^ (hash >> 32)
    }

    fn word(bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    pub(super) fn hash(bytes: &[u8], seed: u64) -> u64 {
        let stripes = bytes.chunks_exact(32);
        let rest = stripes.remainder();
        let mut hash = if bytes.len() >= 32 {
            let mut lanes = [seed.wrapping_add(P1).wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
            for stripe in stripes {
                lanes.iter_mut().zip(stripe.chunks(8)).for_each(|(lane, bits)| *lane = round(*lane, word(bits)));
            }
            let [a, b, c, d] = lanes;
            let all = a.rotate_left(1).wrapping_add(b.rotate_left(7)).wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
            lanes.iter().fold(all, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4))
        } else {
            seed.wrapping_add(P5)
        };
        hash = hash.wrapping_add(bytes.len() as u64);
        let words = rest.chunks_exact(8);
        let rest = words.remainder();
        hash = words.fold(hash, |hash, bits| eight(hash, word(bits)));
        let halves = rest.chunks_exact(4);
        let rest = halves.remainder();
        hash = halves.fold(hash, |hash, bits| four(hash, word(bits) as u32));
        hash = rest.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1));
        end(hash)
    }
}
