//! Who still needs earlier versions of a table.
//!
//! Every target of the lake keeps in its own commits which version of each source it has taken up: that is the registry, and nobody can
//! forget to enter it. A reader at version `p` needs the rows of `p`, and every commit after it. Readers that are no table of the lake are
//! declared: by a property of the table, `tributary.reader.<name>` = a version or a time such as `7 days`, or where maintenance is called.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tributary_lake::{Lake, Table};
use tributary_specs::TableName;

use crate::interval;
use crate::{Error, Result};

/// How the property of a declared reader begins.
pub const READER_PROPERTY: &str = "tributary.reader.";

const SOURCE: (&str, &str) = ("tributary:source:", "tributary:source-id:");
const FLOW: (&str, &str) = ("tributary:flow:", "tributary:flow-id:");
const STATE: (&str, &str) = ("tributary:state:", "tributary:state-id:");
/// The position kept by a source's name was given to a flow with a name of its own.
const TAKEN: &str = "tributary:taken:";

/// What a reader needs of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// The rows of this version, and every commit after it.
    Version(u64),
    /// The versions of so many seconds.
    Seconds(u64),
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "version {version}"),
            Self::Seconds(seconds) => write!(f, "the versions of {seconds} seconds"),
        }
    }
}

impl std::str::FromStr for Needs {
    type Err = String;

    /// A whole number is a version, everything else a time.
    fn from_str(text: &str) -> Result<Self, String> {
        let version = text.trim().parse().ok().map(Self::Version);
        let seconds = || interval::seconds(text).map(Self::Seconds);
        version.or_else(seconds).ok_or_else(|| format!("`{text}` is neither a version (a whole number) nor a time such as `7 days`"))
    }
}

/// Who reads a table, and what they need of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reader {
    /// The table that reads, with the flow where it has a name of its own; or as it was declared.
    pub name: String,
    /// What it needs.
    pub needs: Needs,
    /// Whether it was declared; else its position stands in its own commits.
    pub declared: bool,
}

/// The readers of the tables of a lake.
#[derive(Debug, Clone, Default)]
pub struct Readers {
    by_source: BTreeMap<TableName, Vec<Position>>,
}

/// A position as a target has it.
#[derive(Debug, Clone)]
struct Position {
    name: String,
    version: u64,
    /// Which table was meant.
    identity: Option<i64>,
}

impl Readers {
    /// As the commits of every table of the lake have them.
    ///
    /// # Errors
    /// [`Error::Lake`] when a table cannot be read whose positions might be lost.
    pub async fn of(lake: &Lake) -> Result<Self> {
        let mut readers = Self::default();
        let lake_name = TableName::new("*", "*");
        for name in lake.tables().await.map_err(Error::lake("looking for readers in", &lake_name))? {
            match lake.table(&name).await {
                Ok(Some(table)) => readers.enter(&table).await?,
                // What we cannot read was not written by us, and has no position of ours.
                Ok(None) | Err(tributary_lake::Error::Unsupported { .. }) => {}
                Err(error) => return Err(Error::lake("reading the positions of", &name)(error)),
            }
        }
        Ok(readers)
    }

    async fn enter(&mut self, target: &Table) -> Result<()> {
        let positions = target.progress_with_prefix("tributary:").await.map_err(Error::lake("reading the positions of", target.name()))?;
        for (source, position) in of_target(target.name(), &positions) {
            self.by_source.entry(source).or_default().push(position);
        }
        Ok(())
    }

    /// The readers of a table: targets of the lake that read this very table, and those its properties or `outside` declare.
    ///
    /// # Errors
    /// [`Error::Reader`] for a declaration that says nothing.
    pub fn of_table(&self, table: &Table, outside: &[Reader]) -> Result<Vec<Reader>> {
        let is_meant = |position: &&Position| position.identity.is_none_or(|identity| identity == table.identity());
        let targets = self.by_source.get(table.name()).into_iter().flatten().filter(is_meant);
        let targets =
            targets.map(|position| Reader { name: position.name.clone(), needs: Needs::Version(position.version), declared: false });
        let mut readers: Vec<Reader> = targets.chain(outside.iter().cloned()).collect();
        for (property, value) in table.properties() {
            let Some(name) = property.strip_prefix(READER_PROPERTY) else { continue };
            let refused = |reason| Error::Reader { table: table.name().clone(), property: property.clone(), reason };
            readers.push(Reader { name: name.to_owned(), needs: value.parse().map_err(refused)?, declared: true });
        }
        readers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(readers)
    }

    /// The same without those that nobody is to wait for.
    ///
    /// # Errors
    /// As [`Self::of_table`].
    pub(crate) fn waited_for(&self, table: &Table, outside: &[Reader], ignored: &[String]) -> Result<Vec<Reader>> {
        let mut readers = self.of_table(table, outside)?;
        readers.retain(|reader| !ignored.contains(&reader.name));
        Ok(readers)
    }
}

/// The sources of a target's positions.
fn of_target(target: &TableName, positions: &BTreeMap<String, i64>) -> Vec<(TableName, Position)> {
    let mut found = Vec::new();
    for (app_id, version) in positions {
        // Below zero: it is to begin anew, with what there is then.
        let Ok(version) = u64::try_from(*version) else { continue };
        let identity = |prefix: &str, rest: &str| positions.get(&format!("{prefix}{rest}")).copied();
        let position = |name: String, identity| Position { name, version, identity };
        if let Some(source) = app_id.strip_prefix(SOURCE.0) {
            if let Ok(table) = source.parse::<TableName>()
                && !positions.contains_key(&format!("{TAKEN}{source}"))
            {
                found.push((table, position(target.to_string(), identity(SOURCE.1, source))));
            }
        } else if let Some(rest) = app_id.strip_prefix(FLOW.0) {
            if let Some((flow, source)) = rest.rsplit_once(':')
                && let Ok(table) = source.parse::<TableName>()
            {
                found.push((table, position(format!("{target} (flow {flow})"), identity(FLOW.1, rest))));
            }
        } else if let Some(owner) = app_id.strip_prefix(STATE.0)
            && let Ok(owner) = owner.parse::<TableName>()
        {
            let state = TableName::new("_state", &owner.name);
            found.push((state, position(target.to_string(), identity(STATE.1, &owner.to_string()))));
        }
    }
    found
}

/// The sources of positions that a target is to have, and which version of each it goes on after.
pub(crate) fn sources_of(target: &TableName, positions: &BTreeMap<String, i64>) -> Vec<(TableName, u64)> {
    of_target(target, positions).into_iter().map(|(source, position)| (source, position.version)).collect()
}

/// The earliest version that readers need, and who needs it; `version_at` is what a time so many seconds ago stands for.
pub(crate) fn slowest(readers: &[Reader], version_at: &BTreeMap<u64, Option<u64>>) -> Option<(u64, String)> {
    let needed = readers.iter().map(|reader| match reader.needs {
        Needs::Version(version) => (version, reader.name.clone()),
        // Before the first commit that is there: all of them.
        Needs::Seconds(seconds) => (version_at.get(&seconds).copied().flatten().unwrap_or(0), reader.name.clone()),
    });
    needed.min()
}

/// The slowest of these readers of a table.
pub(crate) async fn slowest_of(table: &Table, readers: &[Reader]) -> Result<Option<(u64, String)>> {
    let mut version_at = BTreeMap::new();
    for reader in readers {
        if let Needs::Seconds(seconds) = reader.needs {
            let instant = interval::before(table.lake().clock().now(), seconds);
            version_at.insert(seconds, table.version_at(instant).await.map_err(Error::lake("reading the log of", table.name()))?);
        }
    }
    Ok(slowest(readers, &version_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(of: &[(&str, i64)]) -> BTreeMap<String, i64> {
        of.iter().map(|(app_id, version)| ((*app_id).to_owned(), *version)).collect()
    }

    fn told(of: &[(&str, i64)]) -> Vec<(String, String, u64, Option<i64>)> {
        let found = of_target(&TableName::new("gold", "t"), &positions(of));
        found.into_iter().map(|(source, at)| (source.to_string(), at.name, at.version, at.identity)).collect()
    }

    #[test]
    fn every_kind_of_position_in_a_table_of_the_lake_is_that_of_a_reader() {
        let of = |source: &str, name: &str, version, identity| (source.to_owned(), name.to_owned(), version, identity);
        assert_eq!(
            told(&[("tributary:source:silver.a", 7), ("tributary:source-id:silver.a", 99)]),
            [of("silver.a", "gold.t", 7, Some(99))]
        );
        assert_eq!(told(&[("tributary:flow:f:bronze.b", 3)]), [of("bronze.b", "gold.t (flow f)", 3, None)]);
        assert_eq!(told(&[("tributary:state:gold.t", 4), ("tributary:state-id:gold.t", 5)]), [of("_state.t", "gold.t", 4, Some(5))]);
    }

    #[test]
    fn what_is_no_position_in_a_table_of_the_lake_holds_nothing() {
        assert_eq!(told(&[("tributary:source:silver.a", -1), ("tributary:kafka:f:t:0", 9), ("tributary:once:f", 1), ("spark", 3)]), []);
        assert_eq!(told(&[("tributary:source:silver.a", 7), ("tributary:taken:silver.a", 0)]), [], "the flow's own position counts");
    }

    #[test]
    fn the_slowest_reader_is_the_one_that_needs_the_earliest_version() {
        let reader = |name: &str, needs| Reader { name: name.to_owned(), needs, declared: true };
        let readers = [reader("a", Needs::Version(9)), reader("b", Needs::Seconds(60)), reader("c", Needs::Version(5))];
        let at = |version| BTreeMap::from([(60, version)]);
        assert_eq!(slowest(&readers, &at(Some(7))), Some((5, "c".to_owned())));
        assert_eq!(slowest(&readers, &at(Some(2))), Some((2, "b".to_owned())));
        assert_eq!(slowest(&readers, &at(None)), Some((0, "b".to_owned())), "the log does not reach back so far");
        assert_eq!(slowest(&[], &at(None)), None);
    }

    #[test]
    fn a_need_is_a_version_or_a_time() {
        assert_eq!("12".parse(), Ok(Needs::Version(12)));
        assert_eq!("interval 7 days".parse(), Ok(Needs::Seconds(604_800)));
        assert!("soon".parse::<Needs>().is_err());
    }
}
