//! Messages as connectors write nearly all of them are read by comparing whole stretches with what came before. With blanks
//! between the tokens the same messages are read by the grammar alone, and must give the same rows.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tributary_cdc_decode::Decoder;
use tributary_specs::{Decode, ReplicaIdentity, SchemaPolicy};
use tributary_testkit::Law;

use crate::capture::{Event, with_records};
use crate::feeds::{columns, feed};
use crate::message::rows;

/// JSON whose texts need not be JSON at all.
#[derive(Debug, Clone)]
enum Node {
    Text(String),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// With `blank` around every token.
    fn write(&self, blank: &str, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    out.push_str(&format!("{comma}{blank}\"{key}\"{blank}:{blank}"));
                    value.write(blank, out);
                    out.push_str(blank);
                }
                out.push('}');
            }
        }
    }

    fn members(&mut self) -> Option<&mut Vec<(String, Node)>> {
        match self {
            Self::Object(members) => Some(members),
            Self::Text(_) => None,
        }
    }
}

fn object<const MEMBERS: usize>(members: [(&str, String); MEMBERS]) -> Node {
    Node::Object(members.into_iter().map(|(key, text)| (key.to_owned(), Node::Text(text))).collect())
}

/// A value as its column is mostly sent, by a number.
fn row(number: u64) -> Node {
    let digit = number % 10;
    let maybe = |text: String| if digit < 7 { "null".to_owned() } else { text };
    object([
        ("id", number.to_string()),
        ("name", format!("\"name {}\"", "x".repeat(usize::try_from(number % 40).unwrap()))),
        ("price", select_by(number, &["\"AA==\"", "\"PP0=\"", "\"/zk=\"", "\"AJPPTA==\"", "\"dTY3\"", "null"])),
        ("at", format!("\"2026-03-0{}T12:{:02}:56.{:06}Z\"", 1 + digit % 5, number % 60, number % 1_000_000)),
        ("day", (i64::try_from(number % 40_000).unwrap() - 20_000).to_string()),
        ("flag", (digit < 5).to_string()),
        ("tags", select_by(number, &["[]", "[\"vip\"]", "[\"eu\",\"a \\\"quoted\\\" one\"]", "null"])),
        ("size", select_by(number, &["{\"scale\":2,\"value\":\"CseW\"}", "{\"scale\":0,\"value\":\"AQ==\"}", "null"])),
        ("moved", format!("177231600{:07}", number % 10_000_000)),
        ("notes", maybe("\"é\\n\"".to_owned())),
        ("carrier", maybe("\"dhl\"".to_owned())),
    ])
}

fn select_by(number: u64, texts: &[&str]) -> String {
    texts[usize::try_from(number).unwrap_or(0) % texts.len()].to_owned()
}

/// PostgreSQL's source block of the change with a number.
fn source(number: u64) -> Node {
    let ms = 1_770_112_800_000 + number;
    object([
        ("version", "\"3.6.3.Final\"".to_owned()),
        ("connector", "\"postgresql\"".to_owned()),
        ("name", "\"shop\"".to_owned()),
        ("ts_ms", ms.to_string()),
        ("snapshot", "\"false\"".to_owned()),
        ("db", "\"shop\"".to_owned()),
        ("sequence", format!(r#""[\"{}\",\"{}\"]""#, number * 8, number * 8 + number % 3)),
        ("ts_us", format!("{ms}{:03}", number % 1000)),
        ("ts_ns", format!("{ms}{:06}", number % 1000)),
        ("schema", "\"public\"".to_owned()),
        ("table", "\"t\"".to_owned()),
        ("txId", (number / 3).to_string()),
        ("lsn", (number * 8 + number % 3).to_string()),
        ("xmin", "null".to_owned()),
    ])
}

/// The envelope of the change with a number.
fn envelope(number: u64, op: &str, full: bool) -> Node {
    let null = || Node::Text("null".to_owned());
    let before = if full || op == "d" { row(number + 1) } else { null() };
    let after = if op == "d" { null() } else { row(number) };
    let ms = 1_770_112_800_100 + number;
    let text = |text: String| Node::Text(text);
    let members = [
        ("before", before),
        ("after", after),
        ("source", source(number)),
        ("transaction", null()),
        ("op", text(format!("\"{op}\""))),
        ("ts_ms", text(ms.to_string())),
        ("ts_us", text(format!("{ms}000"))),
        ("ts_ns", text(format!("{ms}000000"))),
    ];
    Node::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Something that makes a message other than the usual one.
#[derive(Debug, Clone)]
enum Twist {
    Value(Index, &'static str),
    Leave(Index),
    Twice(Index, Index),
    Swap(Index, Index),
    Add(Index, &'static str),
}

impl Twist {
    fn apply(self, members: &mut Vec<(String, Node)>) {
        let length = members.len();
        if length == 0 {
            return;
        }
        match self {
            Self::Value(at, text) => members[at.index(length)].1 = Node::Text(text.to_owned()),
            Self::Leave(at) => drop(members.remove(at.index(length))),
            Self::Twice(from, to) => {
                let again = members[from.index(length)].clone();
                members.insert(to.index(length + 1), again);
            }
            Self::Swap(one, other) => {
                members.swap(one.index(length), other.index(length));
            }
            Self::Add(at, text) => members.insert(at.index(length + 1), ("more".to_owned(), Node::Text(text.to_owned()))),
        }
    }
}

/// Values of every kind, and what is no JSON.
const VALUES: [&str; 30] = [
    "null",
    "true",
    "0",
    "-0",
    "7",
    "-12",
    "00",
    "012",
    "1.5",
    "1e3",
    "12345678",
    "123456789012345678",
    "9223372036854775807",
    "9223372036854775808",
    "123456789012345678901234567890",
    "1.",
    "nul",
    "nullx",
    "\"\"",
    "\"u\"",
    "\"__debezium_unavailable_value\"",
    "\"tab\\tand \\u00e9 and more than a word\"",
    "\"open",
    "\"\\ud83d\"",
    "\"2026-02-30T10:00:00.000000Z\"",
    "\"2026-02-28T10:00:00Z\"",
    "[\"__debezium_unavailable_value\"]",
    "[\"a\",null,\"b\"]",
    "{}",
    "{\"scale\":1,\"value\":\"AQ==\",\"more\":1}",
];

fn twist() -> impl Strategy<Value = Twist> {
    let at = any::<Index>;
    let value = || select(VALUES.to_vec());
    prop_oneof![
        4 => (at(), value()).prop_map(|(at, value)| Twist::Value(at, value)),
        1 => at().prop_map(Twist::Leave),
        1 => (at(), at()).prop_map(|(from, to)| Twist::Twice(from, to)),
        1 => (at(), at()).prop_map(|(one, other)| Twist::Swap(one, other)),
        1 => (at(), value()).prop_map(|(at, value)| Twist::Add(at, value)),
    ]
}

/// A message with few twists in one of its objects, most with none.
fn message() -> impl Strategy<Value = Node> {
    let twists = prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(twist(), 1..3)];
    let number = prop_oneof![100_000u64..100_100, 0u64..2_000_000];
    let place = select(vec!["", "before", "after", "source"]);
    (number, select(vec!["c", "u", "u", "d", "r"]), any::<bool>(), place, twists).prop_map(|(number, op, full, place, twists)| {
        let mut message = envelope(number, op, full);
        for twist in twists {
            let envelope = message.members().expect("an object");
            match envelope.iter_mut().find(|(key, _)| key == place).and_then(|(_, part)| part.members()) {
                Some(part) => twist.apply(part),
                None => twist.apply(envelope),
            }
        }
        message
    })
}

fn events(messages: &[Node], blank: &str) -> Vec<Event> {
    let event = |(message, offset): (&Node, i64)| {
        let mut value = String::new();
        message.write(blank, &mut value);
        Event {
            topic: "shop.public.t".to_owned(),
            partition: 0,
            offset,
            key: Some("{\"id\":1}".to_owned()),
            value: Some(value),
            headers: Vec::new(),
            timestamp: Some(1_770_112_800_000),
        }
    };
    messages.iter().zip(0..).map(event).collect()
}

#[test]
fn law_a_message_means_the_same_with_blanks_between_its_tokens() {
    let cases = (prop::collection::vec(message(), 1..40), 1usize..40, any::<bool>());
    Law::new("quick = by the grammar").holds(&cases, |(messages, batch, full), tried| {
        let mut feed = feed(
            Decode::Debezium,
            columns(
                "id long\nname string\nprice decimal(12,2) unscaled\nat timestamp\nday date\nflag boolean\ntags array<string>\n\
                 size string unscaled\nmoved timestamp_ntz micros\nnotes string\ncarrier string",
            ),
        );
        feed.schema_policy = SchemaPolicy::Rescue;
        if full {
            feed.replica_identity = ReplicaIdentity::Full;
        }
        let (mut quick, mut slow) = (Decoder::new(&feed).unwrap(), Decoder::new(&feed).unwrap());
        for (dense, sparse) in events(&messages, "").chunks(batch).zip(events(&messages, " ").chunks(batch)) {
            let taken = with_records(dense, |records| quick.decode(records, 0));
            let expected = with_records(sparse, |records| slow.decode(records, 0));
            tried.add("rows", taken.batch.num_rows());
            tried.add("rejects", taken.rejects.len());
            let stop = |stop: Option<tributary_cdc_decode::Error>| stop.map(|error| error.to_string());
            prop_assert_eq!(stop(taken.stop), stop(expected.stop));
            let reasons = |rejects: Vec<tributary_cdc_decode::Reject>| {
                rejects.into_iter().map(|reject| (reject.index, reject.reason)).collect::<Vec<_>>()
            };
            prop_assert_eq!(reasons(taken.rejects), reasons(expected.rejects));
            prop_assert_eq!(
                (taken.ignored, taken.notes, taken.duplicate_keys),
                (expected.ignored, expected.notes, expected.duplicate_keys)
            );
            prop_assert_eq!(rows(&taken.batch), rows(&expected.batch));
        }
        Ok(())
    });
}
