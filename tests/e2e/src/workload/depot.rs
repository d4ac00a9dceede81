//! The warehouse's inventory in MariaDB: a composite key with an unsigned 64-bit part.

use tributary_cli::demo::Server;

use super::values::{day, instant, or_null, quoted, text};
use super::{Ending, MARKERS, Model, Profile, Transaction};
use crate::random::Random;

/// The depot's transactions.
#[derive(Debug, Clone)]
pub struct Depot {
    random: Random,
    profile: Profile,
    step: u64,
    /// Keys that live: the number in the sku, and the warehouse.
    rows: Vec<(u64, u64)>,
    next: u64,
    truncated: Vec<String>,
}

fn literal(text: &str) -> String {
    quoted(Server::MariaDb, text)
}

fn found((sku, warehouse): (u64, u64)) -> String {
    format!("sku = 'SKU-{sku}' and warehouse = {warehouse}")
}

impl Depot {
    /// The transactions of a seed.
    pub fn new(profile: Profile, seed: u64) -> Self {
        Self { random: Random::new(seed ^ 0xdeb0), profile, step: 0, rows: Vec::new(), next: 1, truncated: Vec::new() }
    }

    /// The table, before any row.
    pub fn schema() -> Vec<String> {
        vec![include_str!("../../sql/depot.sql").trim().trim_end_matches(';').to_owned()]
    }

    /// Rows that are there before the connector comes.
    pub fn first_rows(&mut self) -> Vec<String> {
        (0..80)
            .map(|_| {
                let key = self.fresh();
                self.insert("insert into", key)
            })
            .collect()
    }

    /// A key that was never there. Warehouses above 2^63 only where the connector can carry them.
    fn fresh(&mut self) -> (u64, u64) {
        let number = self.next;
        self.next += 1;
        let high = self.profile == Profile::Fidelity && self.random.chance(30);
        (self.random.below(500), if high { u64::MAX - number } else { number })
    }

    fn insert(&mut self, verb: &str, key: (u64, u64)) -> String {
        if !self.rows.contains(&key) {
            self.rows.push(key);
        }
        let hostile = self.profile == Profile::Hostile;
        // MariaDB's own driver fails on the year 0000 when it reads a snapshot
        let streamed = self.step > 0;
        let (sku, warehouse) = key;
        let random = &mut self.random;
        let product: String = text(random).chars().take(100).collect();
        let (qty, reserved) = (random.below(100_000), random.below(1000));
        let total = random.pick(&["0", "18446744073709551615", "9223372036854775808", "9223372036854775807", "42"]);
        let small = or_null(random, 20, |random| (*random.pick(&["0", "255", "7"])).to_owned());
        let med = or_null(random, 20, |random| (*random.pick(&["0", "16777215"])).to_owned());
        let cost = random.pick(&["0.0000", "99999999999999.9999", "-0.0001", "12.5000"]);
        let ratio = or_null(random, 30, |random| (*random.pick(&["12345678901234567890.0123456789", "-0.0000000001", "0.5"])).to_owned());
        let weight = or_null(random, 20, |random| (*random.pick(&["0.1", "-1.5e300", "2.2250738585072014e-308", "12.25"])).to_owned());
        let temp = or_null(random, 20, |random| (*random.pick(&["-40.25", "0", "36.5"])).to_owned());
        let state = random.pick(&["new", "ok", "damaged", "gone"]);
        let shelf = or_null(random, 30, |random| literal(random.pick(&["A1", "B7", ""])));
        let labels = or_null(random, 20, |random| (*random.pick(&["''", "'fragile,cold'", "'gift'"])).to_owned());
        let bits = or_null(random, 20, |random| (*random.pick(&["b'0'", "b'1111111111'", "b'0101110110'"])).to_owned());
        let one = or_null(random, 20, |random| (*random.pick(&["b'0'", "b'1'"])).to_owned());
        let attrs =
            or_null(random, 20, |random| literal(random.pick(&["{}", "{\"a\": [1, 2.50, null], \"b\": \"é\\\"🦀\"}", "[]", "\"text\""])));
        let photo = or_null(random, 20, |random| (*random.pick(&["''", "x'00ff80'", "x'89504e47'"])).to_owned());
        let code = or_null(random, 20, |random| (*random.pick(&["''", "x'0176'", "x'00'"])).to_owned());
        let descr = or_null(random, 20, |random| literal(&text(random)));
        let made = or_null(random, 20, |random| {
            let extremes = ["1000-01-01", "9999-12-31", "0000-00-00"];
            let extreme = random.chance(30).then(|| extremes[random.index(if hostile { 3 } else { 2 })].to_owned());
            format!("'{}'", extreme.unwrap_or_else(|| day(random)))
        });
        let checked = or_null(random, 20, |random| {
            if random.chance(10) { "'9999-12-31 23:59:59.999999'".to_owned() } else { format!("'{}'", instant(random)) }
        });
        let loaded = or_null(random, 20, |random| {
            if hostile && random.chance(15) { "'0000-00-00 00:00:00'".to_owned() } else { format!("'{}'", instant(random)) }
        });
        let updated = instant(random);
        let span = or_null(random, 20, |random| format!("'{}'", random.pick(&["838:59:59.999", "-838:59:59", "00:00:00", "12:30:00.125"])));
        let vintage = or_null(random, 20, |random| {
            let years = ["1901", "2155", "2024", "0"];
            years[random.index(if hostile && streamed { 4 } else { 3 })].to_owned()
        });
        format!(
            "{verb} inventory (sku, warehouse, product, qty, reserved, qty_total, small_u, med, unit_cost, ratio, weight, temp, state, \
             shelf, labels, bits, one_bit, attrs, photo, raw_code, {}, made_on, checked_at, loaded_at, updated_at, span, vintage) values \
             ('SKU-{sku}', {warehouse}, {}, {qty}, {reserved}, {total}, {small}, {med}, {cost}, {ratio}, {weight}, {temp}, '{state}', \
             {shelf}, {labels}, {bits}, {one}, {attrs}, {photo}, {code}, {descr}, {made}, {checked}, {loaded}, '{}', {span}, {vintage})",
            self.descr(),
            literal(&product),
            &updated[..19],
        )
    }

    /// The column `descr` gets another name in the hostile profile.
    const fn descr(&self) -> &'static str {
        if matches!(self.profile, Profile::Hostile) && self.step >= RENAME_STEP { "description" } else { "descr" }
    }

    fn update(&mut self, key: (u64, u64)) -> String {
        let descr = self.descr();
        let random = &mut self.random;
        let set = match random.below(6) {
            0 => format!("qty = {}", random.below(100_000)),
            1 => format!("reserved = {}, state = 'ok'", random.below(500)),
            2 => format!("{descr} = {}", literal(&text(random))),
            3 => format!("qty_total = {}", random.pick(&["18446744073709551615", "1", "9223372036854775808"])),
            4 => "photo = null, labels = null, shelf = null".to_owned(),
            // changes nothing and leaves no event
            _ => "qty = qty, updated_at = updated_at".to_owned(),
        };
        format!("update inventory set {set} where {}", found(key))
    }

    fn row(&mut self) -> Option<(u64, u64)> {
        (!self.rows.is_empty()).then(|| self.rows[self.random.index(self.rows.len())])
    }

    fn take(&mut self) -> Option<(u64, u64)> {
        (!self.rows.is_empty()).then(|| {
            let index = self.random.index(self.rows.len());
            self.rows.swap_remove(index)
        })
    }
}

/// A row that no later statement touches, with every value that the hostile connectors lose.
const QUIET_ROW: &str = "insert into inventory (sku, warehouse, product, qty, reserved, qty_total, unit_cost, shelf, descr, made_on, \
    loaded_at, updated_at, vintage) values ('QUIET', 1000000, 'quiet', 1, 0, 18446744073709551615, 1, null, 'renamed', '0000-00-00', \
    '0000-00-00 00:00:00', '2026-01-01 00:00:00', 0)";
/// When the inventory gets the column `supplier`.
const SUPPLIER_STEP: u64 = 60;
/// When the hostile profile renames a column.
const RENAME_STEP: u64 = 160;

impl Model for Depot {
    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn appointed(&mut self) -> Option<Transaction> {
        self.step += 1;
        let each = |statement: &str| Transaction { statements: vec![statement.to_owned()], ending: Ending::Each };
        match (self.step, self.profile) {
            (SUPPLIER_STEP, _) => Some(each("alter table inventory add column supplier varchar(40)")),
            (130, Profile::Hostile) => Some(each(QUIET_ROW)),
            (RENAME_STEP, Profile::Hostile) => Some(each("alter table inventory change descr description text")),
            (110, _) | (1300, Profile::Fidelity) => {
                let gone = self.rows.drain(..).map(|(sku, warehouse)| format!("inventory: sku=SKU-{sku}, warehouse={warehouse}"));
                self.truncated.extend(gone);
                Some(each("truncate table inventory"))
            }
            (200, Profile::Hostile) => Some(each("alter table inventory add column origin varchar(10) default 'EU'")),
            _ => None,
        }
    }

    fn statements(&mut self) -> Option<Vec<String>> {
        let statements = match self.random.below(100) {
            0..25 => (0..=self.random.below(4))
                .map(|_| {
                    let key = self.fresh();
                    self.insert("insert into", key)
                })
                .collect(),
            25..55 => (0..=self.random.below(3)).map(|_| self.row().map(|key| self.update(key))).collect::<Option<_>>()?,
            55..62 => vec![format!("delete from inventory where {}", found(self.take()?))],
            62..67 => {
                let key = self.take()?;
                vec![format!("delete from inventory where {}", found(key)), self.insert("insert into", key)]
            }
            67..72 => {
                let key = self.row()?;
                vec![self.insert("replace into", key)]
            }
            72..77 => {
                let key = self.row()?;
                let insert = self.insert("insert into", key);
                vec![format!("{insert} on duplicate key update qty = qty + 1, reserved = 0")]
            }
            77..84 => {
                let (old, (_, warehouse)) = (self.take()?, self.fresh());
                self.rows.push((old.0, warehouse));
                vec![format!("update inventory set warehouse = {warehouse} where {}", found(old))]
            }
            84..88 => {
                let (old, (sku, warehouse), (_, last)) = (self.take()?, self.fresh(), self.fresh());
                self.rows.push((sku, last));
                vec![
                    format!("update inventory set sku = 'SKU-{sku}', warehouse = {warehouse} where {}", found(old)),
                    format!("update inventory set warehouse = {last}, qty = qty + 1 where {}", found((sku, warehouse))),
                ]
            }
            88..92 => {
                let (a, b) = (self.row()?, self.row()?);
                if a == b {
                    return None;
                }
                let between = self.fresh();
                let to = |(sku, warehouse): (u64, u64)| format!("update inventory set sku = 'SKU-{sku}', warehouse = {warehouse} where");
                vec![format!("{} {}", to(between), found(a)), format!("{} {}", to(a), found(b)), format!("{} {}", to(b), found(between))]
            }
            92..96 => {
                let key = self.fresh();
                let inserted = self.insert("insert into", key);
                self.rows.retain(|row| *row != key);
                vec![inserted, self.update(key), format!("delete from inventory where {}", found(key))]
            }
            _ => {
                let below = self.random.below(50);
                vec![format!("update inventory set reserved = reserved + 1 where warehouse < {below}")]
            }
        };
        Some(statements)
    }

    fn plain(&mut self) -> String {
        let key = self.fresh();
        self.insert("insert into", key)
    }

    fn late(&mut self) -> Option<String> {
        if self.step <= SUPPLIER_STEP || !self.random.chance(10) {
            return None;
        }
        let key = self.row()?;
        let supplier = literal(self.random.pick(&["Ä & Co", ""]));
        Some(format!("update inventory set supplier = {supplier} where {}", found(key)))
    }

    fn markers(&self) -> Vec<String> {
        (0..MARKERS)
            .map(|n| {
                format!(
                    "insert into inventory (sku, warehouse, product, qty, reserved, qty_total, unit_cost, updated_at) \
                     values ('MARKER', {n}, 'marker', 1, 0, 1, 1, '2026-01-01 00:00:00')"
                )
            })
            .collect()
    }

    fn truncated(&self) -> &[String] {
        &self.truncated
    }
}
