//! Orders and customers in PostgreSQL. Orders have the default replica identity, customers the full one.

use tributary_cli::demo::Server;

use super::values::{cents, day, instant, long_text, or_null, quoted, text};
use super::{Ending, MARKER_FIRST, MARKERS, Model, Profile, Transaction};
use crate::random::Random;

/// When orders get the column `carrier`.
const CARRIER_STEP: u64 = 60;

/// The shop's transactions.
#[derive(Debug, Clone)]
pub struct Shop {
    random: Random,
    profile: Profile,
    step: u64,
    orders: Vec<u64>,
    customers: Vec<u64>,
    /// Deleted in an earlier transaction, to come back in a later one.
    away: Vec<u64>,
    next_order: u64,
    next_customer: u64,
    truncated: Vec<String>,
}

fn literal(text: &str) -> String {
    quoted(Server::Postgres, text)
}

impl Shop {
    /// The transactions of a seed.
    pub fn new(profile: Profile, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            profile,
            step: 0,
            orders: Vec::new(),
            customers: Vec::new(),
            away: Vec::new(),
            next_order: 1,
            next_customer: 1,
            truncated: Vec::new(),
        }
    }

    /// The tables, before any row.
    pub fn schema(profile: Profile) -> Vec<String> {
        let statements = include_str!("../../sql/shop.sql").split(';').map(str::trim).filter(|statement| !statement.is_empty());
        let full = |statement: &&str| profile == Profile::Fidelity || !statement.contains("customers replica identity full");
        statements.filter(full).map(str::to_owned).collect()
    }

    /// Rows that are there before the connector comes.
    pub fn first_rows(&mut self) -> Vec<String> {
        let mut statements: Vec<String> = (0..40).map(|_| self.insert_customer()).collect();
        statements.extend((0..120).map(|_| self.insert_order()));
        statements
    }

    fn insert_order(&mut self) -> String {
        let id = self.next_order;
        self.next_order += 1;
        self.insert_order_as(id)
    }

    fn insert_order_as(&mut self, id: u64) -> String {
        self.orders.push(id);
        let amount = self.amount();
        let random = &mut self.random;
        let customer = 1 + random.below(self.next_customer);
        let qty =
            if random.chance(5) { (*random.pick(&["2147483647", "-2147483648", "0"])).to_owned() } else { random.below(99).to_string() };
        let status = random.pick(&["new", "paid", "shipped", "cancelled", "returned"]);
        let channel = or_null(random, 30, |random| literal(random.pick(&["web", "app", ""])));
        let placed = if random.chance(4) {
            (*random.pick(&["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999"])).to_owned()
        } else {
            instant(random)
        };
        let updated = instant(random);
        let ship = or_null(random, 40, |random| format!("'{}'", day(random)));
        let notes = self.notes();
        let sku = self.random.below(300);
        let warehouse = self.random.below(9);
        format!(
            "insert into orders (order_id, customer_id, sku, warehouse, qty, amount, status, channel, placed_at, updated_at, ship_day, notes) \
             values ({id}, {customer}, 'SKU-{sku}', {warehouse}, {qty}, {amount}, '{status}', {channel}, '{placed}+00', '{updated}+00', {ship}, {notes})"
        )
    }

    fn amount(&mut self) -> String {
        if self.random.chance(5) {
            (*self.random.pick(&["9999999999.99", "-9999999999.99", "0.00", "0.01"])).to_owned()
        } else {
            cents(&mut self.random, 1_000_000)
        }
    }

    fn notes(&mut self) -> String {
        or_null(&mut self.random, 25, |random| literal(&if random.chance(50) { long_text(random) } else { text(random) }))
    }

    /// Everything of an order but its notes, which stay where they are.
    fn update_order(&mut self, id: u64) -> String {
        let amount = self.amount();
        let status = self.random.pick(&["new", "paid", "shipped", "cancelled", "returned"]);
        let updated = instant(&mut self.random);
        let qty = self.random.below(50);
        match self.random.below(3) {
            0 => format!("update orders set status = '{status}', updated_at = '{updated}+00' where order_id = {id}"),
            1 => format!("update orders set qty = {qty}, amount = {amount}, updated_at = '{updated}+00' where order_id = {id}"),
            _ => format!("update orders set channel = null, ship_day = '{}' where order_id = {id}", day(&mut self.random)),
        }
    }

    fn insert_customer(&mut self) -> String {
        let id = self.next_customer;
        self.next_customer += 1;
        self.customers.push(id);
        let hostile = self.profile == Profile::Hostile;
        let random = &mut self.random;
        let uuid = format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            random.below(1 << 32),
            random.below(1 << 16),
            random.below(1 << 12),
            random.below(1 << 12),
            random.below(1 << 48)
        );
        let name: String = text(random).chars().take(80).collect();
        let email = or_null(random, 20, |random| literal(&text(random)));
        let tier = random.pick(&["A1", "B2", "C", "Z9", "é1"]);
        let balance = balance(random, hostile);
        let credit = or_null(random, 30, |random| (*random.pick(&["9999999999.99", "-0.01", "0.00", "1500.50"])).to_owned());
        let score = or_null(random, 20, |random| {
            format!("'{}'", random.pick(&["NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "5e-324", "-0", "0.1", "-19.911474"]))
        });
        let signup = if random.chance(10) {
            let extremes = ["0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00", "infinity", "-infinity"];
            extremes[random.index(if hostile { 4 } else { 2 })].to_owned()
        } else {
            format!("{}+00", instant(random))
        };
        let seen = or_null(random, 30, |random| format!("'{}'", instant(random)));
        let calls = or_null(random, 30, |random| format!("'{}'", random.pick(&["00:00:00", "23:59:59.999999", "24:00:00", "09:30:00.5"])));
        let born = or_null(random, 20, |random| birth_date(random, hostile));
        let tags = or_null(random, 25, |random| {
            (*random.pick(&["'{}'", "array['vip']", "array['a,b', 'quo\"te', null, '', 'NULL', '🦀']", "array['x', 'y', 'z']"])).to_owned()
        });
        let prefs = or_null(random, 25, |random| {
            (*random.pick(&[
                "'{}'",
                "'null'",
                "'\"just text\"'",
                "'12345678901234567890.000'",
                "'{\"theme\": \"dark\", \"limits\": [1, null, 0.574423710258671], \"näme\": \"é\\\"🦀\"}'",
            ]))
            .to_owned()
        });
        let ip = or_null(random, 30, |random| format!("'{}'", random.pick(&["192.0.2.1", "2001:db8::1", "198.51.100.0/24"])));
        let active = random.pick(&["true", "false"]);
        let bio = or_null(random, 30, |random| literal(&if random.chance(40) { long_text(random) } else { text(random) }));
        format!(
            "insert into customers (id, external_id, name, email, tier, balance, credit_limit, score, signup_at, seen_at, calls_from, \
             birth_date, tags, prefs, last_ip, active, bio) values ({id}, '{uuid}', {}, {email}, '{tier}', {balance}, {credit}, {score}, \
             '{signup}', {seen}, {calls}, {born}, {tags}, {prefs}, {ip}, {active}, {bio})",
            literal(&name)
        )
    }

    fn update_customer(&mut self, id: u64) -> String {
        let hostile = self.profile == Profile::Hostile;
        let random = &mut self.random;
        let set = match random.below(6) {
            0 => format!("name = {}", literal(&text(random).chars().take(80).collect::<String>())),
            1 => format!("balance = {}, active = not active", balance(random, hostile)),
            2 => format!("bio = {}", literal(&long_text(random))),
            3 => format!("seen_at = '{}', email = null", instant(random)),
            4 => format!("tier = '{}', birth_date = {}", random.pick(&["A1", "B2", "C"]), birth_date(random, hostile)),
            // an update that changes nothing
            _ => "tier = tier".to_owned(),
        };
        format!("update customers set {set} where id = {id}")
    }

    fn order(&mut self) -> Option<u64> {
        (!self.orders.is_empty()).then(|| self.orders[self.random.index(self.orders.len())])
    }

    fn take_order(&mut self) -> Option<u64> {
        (!self.orders.is_empty()).then(|| {
            let index = self.random.index(self.orders.len());
            self.orders.swap_remove(index)
        })
    }

    fn customer(&mut self) -> Option<u64> {
        (!self.customers.is_empty()).then(|| self.customers[self.random.index(self.customers.len())])
    }

    fn take_customer(&mut self) -> Option<u64> {
        (!self.customers.is_empty()).then(|| {
            let index = self.random.index(self.customers.len());
            self.customers.swap_remove(index)
        })
    }

    fn fresh_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order - 1
    }

    fn truncate_orders(&mut self) {
        let gone = self.orders.drain(..).chain(self.away.drain(..));
        self.truncated.extend(gone.map(|id| format!("orders: order_id={id}")));
    }

    fn truncate_customers(&mut self) {
        self.truncated.extend(self.customers.drain(..).map(|id| format!("customers: id={id}")));
    }
}

/// Rows that no later statement touches, with every value that the hostile connectors lose.
fn quiet_rows() -> [String; 3] {
    let customer = |id: u64, balance: &str, signup: &str, born: &str, calls: &str| {
        format!(
            "insert into customers (id, external_id, name, balance, credit_limit, signup_at, seen_at, calls_from, birth_date) values \
             ({id}, '00000000-0000-4000-8000-{id:012}', 'quiet', {balance}, -12.50, '{signup}', '2024-02-29 12:00:00.000999', '{calls}', '{born}')"
        )
    };
    [
        format!("insert into orders values ({}, 1, 'QUIET', 1, 1, 1.00, 'new', null, '2025-01-01Z', '2025-01-01Z')", MARKER_FIRST - 1),
        customer(MARKER_FIRST - 1, "'NaN'", "infinity", "-infinity", "23:59:59.999999"),
        customer(MARKER_FIRST - 2, "0", "-infinity", "infinity", "00:00:00.0005"),
    ]
}

fn balance(random: &mut Random, hostile: bool) -> String {
    or_null(random, 10, |random| {
        let values = [
            "0",
            "-0.000000001",
            "12345678901234567890123456789.123456789",
            "-99999999999999999999999999999.999999999",
            "3.50",
            "100000000000000000000",
            "'NaN'",
        ];
        values[random.index(if hostile { values.len() } else { values.len() - 1 })].to_owned()
    })
}

fn birth_date(random: &mut Random, hostile: bool) -> String {
    let values = ["0044-03-15 BC", "0001-01-01", "9999-12-31", "1970-01-01", "2024-02-29", "infinity", "-infinity"];
    let value = if random.chance(60) { day(random) } else { values[random.index(if hostile { 7 } else { 5 })].to_owned() };
    format!("'{value}'")
}

impl Model for Shop {
    fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn appointed(&mut self) -> Option<Transaction> {
        self.step += 1;
        let each = |statements: &[&str]| Transaction {
            statements: statements.iter().map(|statement| (*statement).to_owned()).collect(),
            ending: Ending::Each,
        };
        match (self.step, self.profile) {
            (CARRIER_STEP, _) => Some(each(&["alter table orders add column carrier text"])),
            (220, Profile::Hostile) => Some(each(&quiet_rows().each_ref().map(String::as_str))),
            (260, Profile::Hostile) => Some(each(&["alter table orders add column app text default 'shop'"])),
            (110, _) | (1200, Profile::Fidelity) => {
                self.truncate_orders();
                Some(each(&["truncate orders"]))
            }
            (150, _) => Some(each(&["alter table customers add column language text", "update customers set language = 'de'"])),
            (200, _) => {
                self.truncate_orders();
                self.truncate_customers();
                Some(each(&["truncate orders, customers"]))
            }
            _ => None,
        }
    }

    fn statements(&mut self) -> Option<Vec<String>> {
        let statements = match self.random.below(100) {
            0..22 => (0..=self.random.below(4)).map(|_| self.insert_order()).collect(),
            22..44 => {
                let id = self.order()?;
                vec![self.update_order(id)]
            }
            44..50 => {
                let (id, notes) = (self.order()?, self.notes());
                vec![format!("update orders set notes = {notes} where order_id = {id}")]
            }
            50..53 => vec![format!("update orders set status = status where order_id = {}", self.order()?)],
            53..59 => vec![format!("delete from orders where order_id = {}", self.take_order()?)],
            59..62 => {
                let id = self.take_order()?;
                vec![format!("delete from orders where order_id = {id}"), self.insert_order_as(id)]
            }
            62..65 => match self.away.pop() {
                Some(id) => vec![self.insert_order_as(id)],
                None => {
                    let id = self.take_order()?;
                    self.away.push(id);
                    vec![format!("delete from orders where order_id = {id}")]
                }
            },
            65..67 => {
                let id = self.next_order;
                let inserted = self.insert_order();
                self.orders.retain(|order| *order != id);
                vec![inserted, self.update_order(id), format!("delete from orders where order_id = {id}")]
            }
            67..71 => {
                let (old, new) = (self.take_order()?, self.fresh_order());
                self.orders.push(new);
                vec![format!("update orders set order_id = {new} where order_id = {old}")]
            }
            71..73 => {
                let (a, b, c) = (self.take_order()?, self.fresh_order(), self.fresh_order());
                self.orders.push(c);
                vec![
                    format!("update orders set order_id = {b} where order_id = {a}"),
                    format!("update orders set order_id = {c}, status = 'paid' where order_id = {b}"),
                ]
            }
            73..75 => {
                let (a, b) = (self.order()?, self.order()?);
                if a == b {
                    return None;
                }
                vec![
                    format!("update orders set order_id = -{a} where order_id = {a}"),
                    format!("update orders set order_id = {a} where order_id = {b}"),
                    format!("update orders set order_id = {b} where order_id = -{a}"),
                ]
            }
            75..77 => {
                let (old, new, notes) = (self.take_order()?, self.fresh_order(), self.notes());
                self.orders.push(new);
                vec![format!("update orders set order_id = {new}, notes = {notes}, qty = 7 where order_id = {old}")]
            }
            77..84 => vec![self.insert_customer()],
            84..92 => {
                let id = self.customer()?;
                vec![self.update_customer(id)]
            }
            92..94 => vec![format!("delete from customers where id = {}", self.take_customer()?)],
            94..96 => {
                let (old, new) = (self.take_customer()?, self.next_customer);
                self.next_customer += 1;
                self.customers.push(new);
                vec![format!("update customers set id = {new} where id = {old}")]
            }
            96..98 => {
                let (order, customer) = (self.order()?, self.customer()?);
                vec![
                    self.insert_customer(),
                    self.insert_order(),
                    self.update_order(order),
                    self.update_customer(customer),
                    self.insert_order(),
                ]
            }
            _ => {
                let (kept, undone) = (self.order()?, self.order()?);
                vec![
                    self.update_order(kept),
                    "savepoint here".to_owned(),
                    format!("update orders set notes = 'never seen', qty = -1 where order_id = {undone}"),
                    format!("insert into orders values ({}, 1, 'never', 1, 1, 1, 'new', null, now(), now())", self.next_order + 5_000_000),
                    "rollback to savepoint here".to_owned(),
                    self.insert_order(),
                ]
            }
        };
        Some(statements)
    }

    fn plain(&mut self) -> String {
        self.insert_order()
    }

    fn late(&mut self) -> Option<String> {
        if self.step <= CARRIER_STEP || !self.random.chance(10) {
            return None;
        }
        let id = self.order()?;
        let carrier = literal(&text(&mut self.random));
        Some(format!("update orders set carrier = {carrier} where order_id = {id}"))
    }

    fn markers(&self) -> Vec<String> {
        (0..MARKERS)
            .flat_map(|n| {
                let id = MARKER_FIRST + n;
                [
                    format!("insert into orders values ({id}, 1, 'MARKER', 1, 1, 1.00, 'new', null, '2026-01-01Z', '2026-01-01Z')"),
                    format!(
                        "insert into customers (id, external_id, name, balance, signup_at) \
                         values ({id}, '00000000-0000-4000-8000-{n:012}', 'marker', 0, '2026-01-01Z')"
                    ),
                ]
            })
            .collect()
    }

    fn truncated(&self) -> &[String] {
        &self.truncated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload as _;

    #[test]
    fn a_seed_gives_the_same_transactions() {
        let transactions = |seed| {
            let mut shop = Shop::new(Profile::Fidelity, seed);
            shop.first_rows();
            (0..500).map(|_| shop.next()).collect::<Vec<_>>()
        };
        assert_eq!(transactions(1), transactions(1));
        assert_ne!(transactions(1), transactions(2));
    }
}
