//! Payments in PostgreSQL: a key of two columns, nullable columns with a default, and types that Avro shows in its own way.

use tributary_cli::demo::Server;

use super::values::{cents, day, instant, long_text, or_null, quoted, text};
use super::{Ending, MARKERS, Model, Transaction};
use crate::random::Random;

/// When payments get the column `note`.
const NOTE_STEP: u64 = 60;

/// The transactions of the till.
#[derive(Debug, Clone)]
pub struct Payments {
    random: Random,
    step: u64,
    numbers: Vec<u64>,
    next: u64,
}

fn literal(text: &str) -> String {
    quoted(Server::Postgres, text)
}

fn found(number: u64) -> String {
    format!("code = 'PAY-{}' and number = {number}", number % 5)
}

impl Payments {
    /// The transactions of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { random: Random::new(seed ^ 0xa7_0b), step: 0, numbers: Vec::new(), next: 1 }
    }

    /// The table, before any row.
    pub fn schema() -> Vec<String> {
        let statements = include_str!("../../sql/payments.sql").split(';').map(str::trim).filter(|statement| !statement.is_empty());
        statements.map(str::to_owned).collect()
    }

    /// Rows that are there before the connector comes.
    pub fn first_rows(&mut self) -> Vec<String> {
        (0..60).map(|_| self.insert()).collect()
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn insert(&mut self) -> String {
        let number = self.fresh();
        self.insert_as(number)
    }

    fn insert_as(&mut self, number: u64) -> String {
        self.numbers.push(number);
        let random = &mut self.random;
        let amount = cents(random, 1_000_000);
        let rate = or_null(random, 20, |random| (*random.pick(&["0", "-0.0000000001", "12345678901234567890.0123456789"])).to_owned());
        let total =
            or_null(random, 20, |random| (*random.pick(&["0", "-0.000000001", "12345678901234567890.123456789", "3.50"])).to_owned());
        let fee = or_null(random, 20, |random| format!("'{}'", random.pick(&["NaN", "-Infinity", "0.1", "-1.5"])));
        let score = or_null(random, 20, |random| format!("'{}'", random.pick(&["NaN", "Infinity", "5e-324", "0.1", "-0"])));
        let small = or_null(random, 20, |random| (*random.pick(&["-32768", "32767", "0"])).to_owned());
        let count = random.pick(&["-2147483648", "2147483647", "0", "17"]);
        let (paid, paid_at) = (random.pick(&["true", "false"]), instant(random));
        let booked = or_null(random, 20, |random| format!("'{}'", instant(random)));
        let clock = or_null(random, 20, |random| format!("'{}'", random.pick(&["00:00:00", "23:59:59.999999", "09:30:00.5"])));
        let on = or_null(random, 20, |random| {
            let extreme = (*random.pick(&["0001-01-01", "9999-12-31", "1969-12-31"])).to_owned();
            format!("'{}'", if random.chance(30) { extreme } else { day(random) })
        });
        let reference = or_null(random, 20, |random| format!("'00000000-0000-4000-8000-{:012x}'", random.below(1 << 48)));
        let kind = or_null(random, 30, |random| literal(random.pick(&["card", "cash", ""])));
        let priority = or_null(random, 30, |random| random.below(9).to_string());
        let tags = or_null(random, 20, |random| {
            (*random.pick(&["'{}'", "array['vip']", "array['a,b', 'quo\"te', null, '', 'NULL', '🦀']"])).to_owned()
        });
        let details = or_null(random, 20, |random| {
            (*random.pick(&["'{}'", "'null'", "'{\"a\": [1, null, 0.574423710258671], \"é\": \"\\\"🦀\"}'"])).to_owned()
        });
        let proof = or_null(random, 20, |random| (*random.pick(&["''", "'\\x00ff80'", "'\\x89504e47'"])).to_owned());
        let state = random.pick(&["open", "paid", "refunded"]);
        let memo = or_null(random, 20, |random| literal(&if random.chance(40) { long_text(random) } else { text(random) }));
        format!(
            "insert into payments (code, number, amount, rate, total, fee, score, small, count, paid, paid_at, booked_at, clock, day, \
             reference, kind, priority, tags, details, proof, state, memo) values ('PAY-{}', {number}, {amount}, {rate}, {total}, {fee}, \
             {score}, {small}, {count}, {paid}, '{paid_at}+00', {booked}, {clock}, {on}, {reference}, {kind}, {priority}, {tags}, {details}, \
             {proof}, '{state}', {memo})",
            number % 5
        )
    }

    fn number(&mut self) -> Option<u64> {
        (!self.numbers.is_empty()).then(|| self.numbers[self.random.index(self.numbers.len())])
    }

    fn take(&mut self) -> Option<u64> {
        (!self.numbers.is_empty()).then(|| {
            let index = self.random.index(self.numbers.len());
            self.numbers.swap_remove(index)
        })
    }

    /// Everything of a payment but its memo, which stays where it is.
    fn update(&mut self, number: u64) -> String {
        let set = match self.random.below(4) {
            0 => format!("amount = {}, paid = not paid", cents(&mut self.random, 1_000_000)),
            1 => "kind = null, priority = null, tags = null".to_owned(),
            2 => format!("state = '{}', booked_at = null", self.random.pick(&["open", "paid", "refunded"])),
            _ => "kind = 'cash', priority = 1, total = null".to_owned(),
        };
        format!("update payments set {set} where {}", found(number))
    }
}

impl Model for Payments {
    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn appointed(&mut self) -> Option<Transaction> {
        self.step += 1;
        let each = |statement: &str| Transaction { statements: vec![statement.to_owned()], ending: Ending::Each };
        match self.step {
            NOTE_STEP => Some(each("alter table payments add column note text")),
            110 => {
                self.numbers.clear();
                Some(each("truncate payments"))
            }
            // a row that no later statement touches, with the nulls that the converter loses
            200 => Some(each(
                "insert into payments (code, number, amount, count, paid_at, kind, priority) \
                 values ('QUIET', 0, 0, 0, '2026-01-01Z', null, null)",
            )),
            _ => None,
        }
    }

    fn statements(&mut self) -> Option<Vec<String>> {
        Some(match self.random.below(100) {
            0..35 => (0..=self.random.below(3)).map(|_| self.insert()).collect(),
            35..65 => {
                let number = self.number()?;
                vec![self.update(number)]
            }
            65..75 => {
                let (number, memo) = (self.number()?, literal(&long_text(&mut self.random)));
                vec![format!("update payments set memo = {memo} where {}", found(number))]
            }
            75..85 => vec![format!("delete from payments where {}", found(self.take()?))],
            85..90 => {
                let number = self.take()?;
                vec![format!("delete from payments where {}", found(number)), self.insert_as(number)]
            }
            _ => {
                let (old, new) = (self.take()?, self.fresh());
                self.numbers.push(new);
                vec![format!("update payments set code = 'PAY-{}', number = {new} where {}", new % 5, found(old))]
            }
        })
    }

    fn plain(&mut self) -> String {
        self.insert()
    }

    fn late(&mut self) -> Option<String> {
        if self.step <= NOTE_STEP || !self.random.chance(10) {
            return None;
        }
        let (number, note) = (self.number()?, literal(&text(&mut self.random)));
        Some(format!("update payments set note = {note} where {}", found(number)))
    }

    fn markers(&self) -> Vec<String> {
        let marker = |n| format!("insert into payments (code, number, amount, count, paid_at) values ('MARKER', {n}, 0, 0, '2026-01-01Z')");
        (0..MARKERS).map(marker).collect()
    }

    fn truncated(&self) -> &[String] {
        &[]
    }
}
