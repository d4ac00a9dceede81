//! How rows of a file came to lie as they do: the tags of an `add` that Delta's own clustering writes and reads.

use std::collections::BTreeMap;

use serde_json::Value;

/// The clustering that we and Delta's own engine take part in: each goes on where the other stopped.
pub(crate) const PROVIDER: &str = "liquid";

const CUBE_ID: &str = "ZCUBE_ID";
const CUBE_COLUMNS: &str = "ZCUBE_ZORDER_BY";
const CUBE_CURVE: &str = "ZCUBE_ZORDER_CURVE";
const FULL_AT: &str = "OPTIMIZE_TARGET_SIZE";

type Tags = BTreeMap<String, Option<String>>;

/// How rows of a file came to lie as they do. Nothing of it changes what the rows are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arranged {
    /// The files among which its rows are sorted.
    pub cube: Option<Cube>,
    /// The bytes that its writer aimed at, where they were reached.
    pub full_at: Option<u64>,
}

/// Files whose rows were sorted together along a curve through the space of some columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cube {
    /// The same in each of its files, and in no other.
    pub id: String,
    /// The columns.
    pub columns: Vec<String>,
    /// The curve.
    pub curve: Curve,
}

/// A way through all cells of a space of several columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// Of clustered tables: neighbours on it are neighbours in space.
    Hilbert,
    /// Bits of the columns in turn (Z-order).
    ZOrder,
}

impl Curve {
    const fn word(self) -> &'static str {
        match self {
            Self::Hilbert => "hilbert",
            Self::ZOrder => "zorder",
        }
    }
}

impl Arranged {
    /// The tags; none where there is nothing to say.
    pub(crate) fn tags(&self) -> Option<Tags> {
        let mut tags = Tags::new();
        if let Some(cube) = &self.cube {
            tags.insert(CUBE_ID.to_owned(), Some(cube.id.clone()));
            tags.insert(CUBE_COLUMNS.to_owned(), Some(Value::from(cube.columns.clone()).to_string()));
            tags.insert(CUBE_CURVE.to_owned(), Some(cube.curve.word().to_owned()));
        }
        if let Some(bytes) = self.full_at {
            tags.insert(FULL_AT.to_owned(), Some(bytes.to_string()));
        }
        (!tags.is_empty()).then_some(tags)
    }

    /// Who clustered the file, where it was clustered.
    pub(crate) fn provider(&self) -> Option<String> {
        self.cube.as_ref().filter(|cube| cube.curve == Curve::Hilbert).map(|_| PROVIDER.to_owned())
    }
}

/// What tags say. A cube that is not told whole is none.
pub(crate) fn of_tags(tags: &Tags) -> Arranged {
    let text = |name: &str| tags.get(name)?.as_deref();
    let cube = || {
        let columns: Vec<String> = serde_json::from_str(text(CUBE_COLUMNS)?).ok()?;
        // Delta's own engine left the curve out before it had two.
        let curve = if text(CUBE_CURVE).is_none_or(|word| word == Curve::Hilbert.word()) { Curve::Hilbert } else { Curve::ZOrder };
        Some(Cube { id: text(CUBE_ID)?.to_owned(), columns, curve })
    };
    Arranged { cube: cube(), full_at: text(FULL_AT).and_then(|bytes| bytes.parse().ok()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_again() {
        for curve in [Curve::Hilbert, Curve::ZOrder] {
            let cube = Some(Cube { id: "c".to_owned(), columns: vec!["a \"quoted\"".to_owned(), "b".to_owned()], curve });
            let arranged = Arranged { cube, full_at: Some(32 << 20) };
            assert_eq!(of_tags(&arranged.tags().unwrap()), arranged);
            assert_eq!(arranged.provider().is_some(), curve == Curve::Hilbert);
        }
        assert_eq!(Arranged::default().tags(), None);
    }

    #[test]
    fn a_cube_that_is_not_told_whole_is_none() {
        let tags = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, text)| ((*name).to_owned(), Some((*text).to_owned()))).collect();
        assert_eq!(of_tags(&tags(&[(CUBE_ID, "c")])), Arranged::default());
        assert_eq!(of_tags(&tags(&[(CUBE_ID, "c"), (CUBE_COLUMNS, "a")])), Arranged::default());
        assert_eq!(of_tags(&tags(&[(FULL_AT, "many")])), Arranged::default());
        assert_eq!(of_tags(&tags(&[(CUBE_ID, "c"), (CUBE_COLUMNS, r#"["a"]"#)])).cube.unwrap().curve, Curve::Hilbert);
    }
}
