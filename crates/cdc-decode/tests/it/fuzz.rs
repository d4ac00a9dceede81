//! A fuzz harness for the stable toolchain: bytes of the captures, cut and spliced at random for a time.
//!
//! `TRIBUTARY_LAW_SECONDS=600` runs it longer, `TRIBUTARY_LAW_SEED` replays a run. It looks for panics and for records that are
//! neither rows, nor rejected, nor ignored.

use std::time::{Duration, Instant};

use tributary_cdc_decode::{Decoder, Header, Record};
use tributary_specs::{Decode, SchemaPolicy};

use crate::capture::{ALL, events};
use crate::feeds::{declared, feed};

/// A small generator (xorshift), so that a run is its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides.max(1)).unwrap()).unwrap()
    }
}

/// Pieces that JSON readers stumble over.
const PIECES: [&[u8]; 24] = [
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b"0",
    b"-0",
    b"1e999",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"\"\\ud83d\"",
    b"\"\\u0000\"",
    b"\\",
    b"\"",
    b"{\"schema\":",
    b",\"payload\":",
    b"{\"before\":",
    b"__debezium_unavailable_value",
    b"\xef\xbb\xbf",
    b"\xff",
    b"[[[[",
    b"}}}}",
    b"NaN",
    b"infinity",
];

fn mutate(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[dice.roll(seeds.len())].clone();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(7) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            2 => {
                let piece = PIECES[dice.roll(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let end = (at + dice.roll(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let other = &seeds[dice.roll(seeds.len())];
                let from = dice.roll(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            5 => {
                let end = (at + dice.roll(200)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let depth = dice.roll(2000);
                bytes.splice(at..at, std::iter::repeat_n(b'[', depth));
            }
        }
    }
    bytes
}

#[test]
fn law_no_bytes_make_the_decoder_panic() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let budget = Duration::from_secs(number("TRIBUTARY_LAW_SECONDS").unwrap_or(2));
    let seed = number("TRIBUTARY_LAW_SEED").unwrap_or(0x5eed_1234_5678_9abd).max(1);
    let mut dice = Dice(seed);
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for capture in ALL {
        for event in events(capture).into_iter().take(150) {
            seeds.extend(event.value.into_iter().chain(event.key).map(String::into_bytes));
        }
    }
    let mut feeds = Vec::new();
    for decode in [Decode::Debezium, Decode::DebeziumFlattened, Decode::Json, Decode::Csv, Decode::Raw] {
        for policy in [SchemaPolicy::Add, SchemaPolicy::Widen, SchemaPolicy::Rescue, SchemaPolicy::Quarantine, SchemaPolicy::Freeze] {
            for columns in [Vec::new(), declared("postgres-json-default", "customers"), declared("mysql-json-default", "inventory")] {
                let mut feed = feed(decode, columns);
                feed.schema_policy = policy;
                feeds.push(feed);
            }
        }
    }
    let started = Instant::now();
    let mut tried = 0usize;
    while started.elapsed() < budget {
        let feed = &feeds[dice.roll(feeds.len())];
        let mut decoder = Decoder::new(feed).unwrap();
        let _ = decoder.csv_header(&["id", "name", "x"]);
        let bytes: Vec<(Vec<u8>, Vec<u8>)> = (0..8).map(|_| (mutate(&mut dice, &seeds), mutate(&mut dice, &seeds))).collect();
        let headers: Vec<[Header<'_>; 2]> = bytes
            .iter()
            .map(|(key, _)| [Header { key: "__debezium.oldkey", value: Some(key) }, Header { key: "__debezium.newkey", value: Some(key) }])
            .collect();
        let records: Vec<Record<'_>> = bytes
            .iter()
            .zip(&headers)
            .zip(0i64..)
            .map(|(((key, value), headers), offset)| Record {
                topic: "t.public.t",
                partition: 0,
                offset,
                key: Some(key),
                value: Some(value),
                headers: if dice.roll(2) == 0 { headers } else { &[] },
                timestamp_ms: Some(offset),
                file: None,
                line: None,
            })
            .collect();
        for half in records.chunks(4) {
            let decoded = decoder.decode(half, 0);
            if decoded.stop.is_some() {
                break;
            }
            let ignored: u64 = decoded.ignored.values().sum();
            assert_eq!(half.len(), decoded.batch.num_rows() + decoded.rejects.len() + usize::try_from(ignored).unwrap(), "seed {seed}");
        }
        tried += records.len();
    }
    println!("law fuzz: {tried} records, seed {seed}");
    assert!(tried > 100);
}
