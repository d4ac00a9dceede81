//! Bytes as a broken disk, a broken producer or a malicious one would hand them over.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::store::Mode;

#[derive(Debug, Clone)]
enum Harm {
    Truncate(Index),
    FlipBit(Index, u8),
    Overwrite(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, u8),
    Repeat(Index, u8),
    /// A JSON token becomes another.
    Retype(Index, &'static str),
    Nest(Index, u16, u8),
}

/// The bytes with one to three harms done: cut off, bits flipped, bytes overwritten, inserted, removed or repeated, tokens of
/// another type, nesting thousands deep.
pub fn damage(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let at = any::<Index>;
    let tokens =
        vec!["null", "true", "-0", "1e999", "99999999999999999999999999", "\"x\"", "[]", "{}", "\"\\ud800\"", "NaN", "\u{feff}", "\0"];
    let harm = prop_oneof![
        at().prop_map(Harm::Truncate),
        (at(), 0..8u8).prop_map(|(at, bit)| Harm::FlipBit(at, bit)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Harm::Overwrite(at, byte)),
        (at(), vec(any::<u8>(), 1..6)).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (at(), 1..20u8).prop_map(|(at, n)| Harm::Remove(at, n)),
        (at(), 1..20u8).prop_map(|(at, n)| Harm::Repeat(at, n)),
        (at(), proptest::sample::select(tokens)).prop_map(|(at, token)| Harm::Retype(at, token)),
        (at(), 1..3_000u16, prop_oneof![Just(b'['), Just(b'{')]).prop_map(|(at, depth, open)| Harm::Nest(at, depth, open)),
    ];
    vec(harm, 1..=3).prop_map(move |harms| harms.iter().fold(bytes.clone(), |bytes, harm| harm.done_to(bytes)))
}

/// Kill points of a run with this many mutating calls.
pub fn crash_points(calls: u64) -> impl Strategy<Value = (u64, Mode)> {
    (1..=calls.max(1), proptest::sample::select(Mode::ALL.to_vec()))
}

impl Harm {
    fn done_to(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let place = |at: &Index, bytes: &[u8]| at.index(bytes.len() + 1);
        let stretch = |at: &Index, n: u8, bytes: &[u8]| {
            let from = place(at, bytes);
            from..(from + usize::from(n)).min(bytes.len())
        };
        match self {
            Self::Truncate(at) => bytes.truncate(place(at, &bytes)),
            Self::FlipBit(..) | Self::Overwrite(..) if bytes.is_empty() => {}
            Self::FlipBit(at, bit) => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Self::Overwrite(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Insert(at, more) => {
                let at = place(at, &bytes);
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Remove(at, n) => {
                let gone = stretch(at, *n, &bytes);
                bytes.drain(gone);
            }
            Self::Repeat(at, n) => {
                let again = bytes[stretch(at, *n, &bytes)].to_vec();
                let at = place(at, &bytes);
                bytes.splice(at..at, again);
            }
            Self::Retype(at, token) => {
                let found = token_at(&bytes, place(at, &bytes));
                bytes.splice(found, token.bytes());
            }
            Self::Nest(at, depth, open) => {
                let nested = if *open == b'[' { "[".repeat((*depth).into()) } else { "{\"a\":".repeat((*depth).into()) };
                let at = place(at, &bytes);
                bytes.splice(at..at, nested.into_bytes());
            }
        }
        bytes
    }
}

/// The first JSON value token after a colon or comma from here on, or nothing at the end.
fn token_at(bytes: &[u8], from: usize) -> std::ops::Range<usize> {
    let Some(start) = bytes[from..].iter().position(|byte| b":,".contains(byte)).map(|at| from + at + 1) else {
        return bytes.len()..bytes.len();
    };
    let end = bytes[start..].iter().position(|byte| b",}]".contains(byte)).map_or(bytes.len(), |at| start + at);
    start..end
}
