//! Changes that follow from a seed, in files as a source drops them: some late, some twice, none lost. Who has made them knows
//! what becomes of them.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;
use tributary_testkit::Value;
use tributary_testkit::oracle::Event;

use crate::random::Random;

/// One change of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub id: i64,
    /// Its place in the order of all changes; no two have the same.
    pub seq: i64,
    /// Whether the row is gone.
    pub deleted: bool,
    /// One of few, so that a change may leave the row as it was.
    pub name: Option<&'static str>,
    /// In hundredths.
    pub amount: i64,
}

const NAMES: [&str; 6] = ["Ada", "Grace", "Edsger", "Bàrbara", "李", ""];

impl Change {
    /// Values by column: `id`, `name`, `amount`, `seq`, `op`.
    pub fn row(&self) -> Vec<Value> {
        let name = self.name.map_or(Value::Null, Value::text);
        vec![self.id.into(), name, self.amount.into(), self.seq.into(), Value::text(self.op())]
    }

    /// As the oracle is told.
    pub fn event(&self) -> Event {
        let (key, sequence) = (vec![self.id.into()], self.seq.into());
        if self.deleted {
            return Event::delete(key, sequence);
        }
        let names = ["id", "name", "amount", "seq"].map(str::to_owned);
        Event::upsert(key, sequence, names.into_iter().zip(self.row()).collect())
    }

    const fn op(&self) -> &'static str {
        if self.deleted { "d" } else { "u" }
    }

    fn line(&self) -> String {
        let amount = self.amount as f64 / 100.0;
        json!({ "id": self.id, "name": self.name, "amount": amount, "seq": self.seq, "op": self.op() }).to_string()
    }
}

/// The source.
#[derive(Debug)]
pub struct Changes {
    random: Random,
    /// As often as they were delivered, in that order.
    pub delivered: Vec<Change>,
    late: Vec<Change>,
    keys: i64,
    made: i64,
    files: u64,
}

impl Changes {
    /// A source that has made nothing yet.
    pub const fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), delivered: Vec::new(), late: Vec::new(), keys: 0, made: 0, files: 0 }
    }

    /// Different changes made so far.
    pub const fn made(&self) -> i64 {
        self.made
    }

    /// Drops a file of new changes, late ones and repeated ones into the folder.
    pub fn drop_file(&mut self, folder: &Path) -> Result<()> {
        let mut batch = Vec::new();
        for _ in 0..20 + self.random.below(180) {
            let change = self.change();
            if self.random.chance(10) { self.late.push(change) } else { batch.push(change) }
        }
        for _ in 0..self.random.below(1 + self.late.len() as u64) / 2 {
            batch.push(self.late.swap_remove(self.random.index(self.late.len())));
        }
        for _ in 0..self.random.below(8).min(self.delivered.len() as u64) {
            batch.push(self.delivered[self.random.index(self.delivered.len())].clone());
        }
        for at in (1..batch.len()).rev() {
            batch.swap(at, self.random.index(at + 1));
        }
        self.write(folder, batch)
    }

    /// Drops what is still late.
    pub fn drop_the_rest(&mut self, folder: &Path) -> Result<()> {
        let rest = std::mem::take(&mut self.late);
        if rest.is_empty() { Ok(()) } else { self.write(folder, rest) }
    }

    fn change(&mut self) -> Change {
        let key = match self.random.below(10) {
            0..2 => {
                self.keys += 1;
                self.keys
            }
            // most changes are of rows that are young
            2..7 => self.keys - self.random.below(50) as i64,
            _ => 1 + self.random.below(self.keys as u64) as i64,
        };
        self.made += 1;
        let name = (!self.random.chance(5)).then(|| self.random.pick(&NAMES));
        let amount = 100 * self.random.below(4) as i64 + self.random.below(3) as i64;
        Change { id: key.clamp(1, self.keys.max(1)), seq: self.made, deleted: self.random.chance(8), name, amount }
    }

    fn write(&mut self, folder: &Path, batch: Vec<Change>) -> Result<()> {
        self.files += 1;
        let text: String = batch.iter().map(|change| change.line() + "\n").collect();
        let (part, whole) = (folder.join(format!("{:06}.part", self.files)), folder.join(format!("{:06}.jsonl", self.files)));
        std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, whole)).context("dropping a file of changes")?;
        self.delivered.extend(batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_change_is_delivered_at_least_once_and_some_late_and_some_twice() {
        let folder = std::env::temp_dir().join(format!("tributary-changes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut changes = Changes::new(7);
        (0..20).for_each(|_| changes.drop_file(&folder).unwrap());
        changes.drop_the_rest(&folder).unwrap();
        let files: Vec<String> =
            std::fs::read_dir(&folder).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(files.iter().map(|text| text.lines().count()).sum::<usize>(), changes.delivered.len());
        let mut times: BTreeMap<i64, usize> = BTreeMap::new();
        changes.delivered.iter().for_each(|change| *times.entry(change.seq).or_default() += 1);
        assert_eq!(times.len() as i64, changes.made());
        assert!(times.values().any(|count| *count > 1));
        assert!(changes.delivered.windows(2).any(|pair| pair[0].id == pair[1].id || pair[0].seq > pair[1].seq + 200));
    }
}
