//! Offsets by partition: `orders:0=1200,orders:1=900`.

use std::collections::BTreeMap;

use super::{Field, Kind, NotOfKind, Raw};

/// An offset for each of some partitions of topics, given as `topic:partition=offset`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offsets(BTreeMap<(String, i32), i64>);

impl Offsets {
    /// The offsets by topic and partition.
    pub fn by_partition(&self) -> &BTreeMap<(String, i32), i64> {
        &self.0
    }
}

impl Field for Offsets {
    const KIND: Kind = Kind::List(&Kind::Offset);

    fn read(raw: Option<&Raw>) -> Result<Self, NotOfKind> {
        let texts: &[String] = match raw {
            None => &[],
            Some(Raw::One(text)) => std::slice::from_ref(text),
            Some(Raw::Many(texts)) => texts,
        };
        let mut offsets = BTreeMap::new();
        for part in texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|part| !part.is_empty()) {
            let (partition, offset) = one(part).ok_or(NotOfKind)?;
            // two offsets of one partition: which of them is meant?
            if offsets.insert(partition, offset).is_some() {
                return Err(NotOfKind);
            }
        }
        Ok(Self(offsets))
    }

    fn show(&self) -> Option<String> {
        let shown = self.0.iter().map(|((topic, partition), offset)| super::quoted(&format!("{topic}:{partition}={offset}")));
        (!self.0.is_empty()).then(|| format!("[{}]", shown.collect::<Vec<_>>().join(", ")))
    }
}

fn one(text: &str) -> Option<((String, i32), i64)> {
    let (place, offset) = text.split_once('=')?;
    let (topic, partition) = place.rsplit_once(':')?;
    let (partition, offset): (i32, i64) = (partition.trim().parse().ok()?, offset.trim().parse().ok()?);
    (!topic.trim().is_empty() && partition >= 0 && offset >= 0).then(|| ((topic.trim().to_owned(), partition), offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<String>, NotOfKind> {
        Offsets::read(Some(&Raw::One(text.into()))).map(|offsets| offsets.show())
    }

    #[test]
    fn offsets_are_cut_at_commas_whichever_way_they_come() {
        let shown = "[\"shop.orders:0=1200\", \"shop.orders:1=0\"]";
        assert_eq!(read("shop.orders:1=0, shop.orders:0=1200"), Ok(Some(shown.into())));
        let parts = Raw::Many(vec!["shop.orders:0=1200,shop.orders:1=0".into()]);
        assert_eq!(Offsets::read(Some(&parts)).map(|offsets| offsets.show()), Ok(Some(shown.into())));
        assert_eq!(read(""), Ok(None));
    }

    #[test]
    fn what_is_no_partition_or_no_offset_and_a_partition_named_twice_are_refused() {
        for wrong in ["orders", "orders=5", "orders:0", ":0=5", "orders:x=5", "orders:0=x", "orders:-1=5", "orders:0=-5", "a:0=1,a:0=2"] {
            assert_eq!(read(wrong), Err(NotOfKind), "{wrong}");
        }
    }
}
