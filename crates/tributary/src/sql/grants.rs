//! Privileges: `system.tributary.grants`, a row each, and what follows from them.
//!
//! As Unity Catalog has it: a privilege on a catalogue holds for everything in it, one on a schema for its tables; `ALL PRIVILEGES` is
//! every privilege that can be given there, `MANAGE` and those of external use left out, also those that come later; what is not granted is
//! denied. `account users` is everybody.

use std::collections::BTreeSet;

use tributary_fault::nearest;
use tributary_lake::Lake;
use tributary_spark_sql::Privilege;
use tributary_specs::TableName;

use super::Error;
use super::kept::KeptTable;
use super::listing::{Cell, Of};

/// Everybody.
pub const EVERYBODY: &str = "account users";

/// A privilege that was given.
///
/// ```
/// let granted = tributary::sql::Granted {
///     securable: tributary::sql::Securable::Schema("prod".to_owned(), "bronze".to_owned()),
///     principal: "ann@example.com".to_owned(),
///     privilege: "USE SCHEMA".to_owned(),
///     granted_by: None,
/// };
/// assert_eq!(granted.securable.to_string(), "prod.bronze");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// On what.
    pub securable: Securable,
    /// Whose: an e-mail address, a group, the id of an application.
    pub principal: String,
    /// In capitals, words parted by blanks: `USE SCHEMA`.
    pub privilege: String,
    /// Who gave it, where that is known.
    pub granted_by: Option<String>,
}

impl Granted {
    /// Whether it is the same privilege, whoever gave it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.principal == other.principal && self.securable == other.securable && self.privilege == other.privilege
    }
}

/// Something that privileges are given on; names as they are spelled.
///
/// ```
/// use tributary::sql::Securable;
/// let table = Securable::Table("prod".to_owned(), "bronze".to_owned(), "events".to_owned());
/// assert_eq!((table.kind(), table.to_string()), ("TABLE", "prod.bronze.events".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Securable {
    /// The lake.
    Metastore,
    /// A catalogue.
    Catalogue(String),
    /// A schema of a catalogue.
    Schema(String, String),
    /// A table, or what is kept like one, of a schema of a catalogue.
    Table(String, String, String),
    /// A function of a schema of a catalogue.
    Function(String, String, String),
}

impl Securable {
    /// `METASTORE`, `CATALOG`, `SCHEMA`, `TABLE` or `FUNCTION`.
    ///
    /// ```
    /// assert_eq!(tributary::sql::Securable::Catalogue("prod".to_owned()).kind(), "CATALOG");
    /// ```
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Metastore => "METASTORE",
            Self::Catalogue(_) => "CATALOG",
            Self::Schema(..) => "SCHEMA",
            Self::Table(..) => "TABLE",
            Self::Function(..) => "FUNCTION",
        }
    }

    /// It and what it is in, the inmost first.
    fn lineage(&self) -> Vec<Self> {
        let mut lineage = vec![self.clone()];
        if let Self::Table(catalogue, schema, _) | Self::Function(catalogue, schema, _) = self {
            lineage.push(Self::Schema(catalogue.clone(), schema.clone()));
        }
        if let Self::Table(catalogue, ..) | Self::Function(catalogue, ..) | Self::Schema(catalogue, _) = self {
            lineage.push(Self::Catalogue(catalogue.clone()));
        }
        lineage
    }

    /// The catalogue and the name below it.
    fn parts(&self) -> (Option<&str>, Option<String>) {
        match self {
            Self::Metastore => (None, None),
            Self::Catalogue(catalogue) => (Some(catalogue), None),
            Self::Schema(catalogue, schema) => (Some(catalogue), Some(schema.clone())),
            Self::Table(catalogue, schema, name) | Self::Function(catalogue, schema, name) => {
                (Some(catalogue), Some(TableName::new(schema, name).to_string()))
            }
        }
    }
}

impl std::fmt::Display for Securable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parts() {
            (None, _) => f.write_str("metastore"),
            (Some(catalogue), None) => f.write_str(catalogue),
            (Some(catalogue), Some(name)) => write!(f, "{catalogue}.{name}"),
        }
    }
}

const OF_TABLES: &[&str] = &["SELECT", "MODIFY", "REFRESH", "APPLY TAG", "MANAGE", "ALL PRIVILEGES"];
const OF_FUNCTIONS: &[&str] = &["EXECUTE", "MANAGE", "ALL PRIVILEGES"];
const OF_SCHEMAS: &[&str] = &[
    "USE SCHEMA",
    "SELECT",
    "MODIFY",
    "REFRESH",
    "EXECUTE",
    "CREATE TABLE",
    "CREATE FUNCTION",
    "CREATE MATERIALIZED VIEW",
    "CREATE MODEL",
    "CREATE VOLUME",
    "READ VOLUME",
    "WRITE VOLUME",
    "APPLY TAG",
    "EXTERNAL USE SCHEMA",
    "MANAGE",
    "ALL PRIVILEGES",
];
const OF_CATALOGUES: &[&str] = &["USE CATALOG", "CREATE SCHEMA", "BROWSE"];
const OF_METASTORES: &[&str] = &["CREATE CATALOG", "CREATE EXTERNAL LOCATION", "CREATE STORAGE CREDENTIAL", "CREATE CONNECTION", "MANAGE"];

/// Privileges that can be given on a kind of thing.
fn grantable(kind: &str) -> Vec<&'static str> {
    match kind {
        "METASTORE" => OF_METASTORES.to_vec(),
        "CATALOG" => OF_CATALOGUES.iter().chain(OF_SCHEMAS).copied().collect(),
        "SCHEMA" => OF_SCHEMAS.to_vec(),
        "FUNCTION" => OF_FUNCTIONS.to_vec(),
        _ => OF_TABLES.to_vec(),
    }
}

/// Whether `ALL PRIVILEGES` leaves a privilege out.
fn is_apart(privilege: &str) -> bool {
    matches!(privilege, "MANAGE" | "ALL PRIVILEGES") || privilege.starts_with("EXTERNAL USE")
}

/// The privilege as it is kept.
pub(super) fn known(privilege: &Privilege, kind: &str) -> Result<&'static str, Error> {
    let written = match privilege.words.as_str() {
        "ALL" => "ALL PRIVILEGES",
        "USAGE" if kind == "SCHEMA" => "USE SCHEMA",
        "USAGE" if kind == "CATALOG" => "USE CATALOG",
        words => words,
    };
    let known = grantable(kind);
    known.iter().find(|known| **known == written).copied().ok_or_else(|| Error::Privilege {
        privilege: privilege.words.clone(),
        kind: kind.to_lowercase(),
        nearest: nearest(written, known.iter().copied()).map(str::to_owned),
        span: privilege.span,
    })
}

/// `tributary.grants` in the catalogue `system`.
pub(super) const TABLE: KeptTable = KeptTable {
    name: "grants",
    comment: "One row for each privilege that was granted and not revoked",
    columns: &[
        ("catalogue", Of::Text),
        ("securable_type", Of::Text),
        ("name", Of::Text),
        ("principal", Of::Text),
        ("privilege", Of::Text),
        ("granted_at", Of::Instant),
        ("granted_by", Of::Text),
    ],
};

/// Every privilege that was given and not taken back.
pub(crate) async fn load(lake: &Lake) -> Result<Vec<Granted>, Error> {
    let rows = TABLE.rows(lake).await?;
    let granted = rows.into_iter().filter_map(|row| {
        let text = |name: &str| row.text(name);
        let catalogue = text("catalogue");
        let name: Option<TableName> = text("name").and_then(|name| name.parse().ok());
        let securable = match (text("securable_type")?.as_str(), catalogue) {
            ("METASTORE", _) => Securable::Metastore,
            ("CATALOG", Some(catalogue)) => Securable::Catalogue(catalogue),
            ("SCHEMA", Some(catalogue)) => Securable::Schema(catalogue, text("name")?),
            ("FUNCTION", Some(catalogue)) => name.map(|name| Securable::Function(catalogue, name.schema, name.name))?,
            (_, Some(catalogue)) => name.map(|name| Securable::Table(catalogue, name.schema, name.name))?,
            (_, None) => return None,
        };
        Some(Granted { securable, principal: text("principal")?, privilege: text("privilege")?, granted_by: text("granted_by") })
    });
    let mut granted: Vec<Granted> = granted.collect();
    granted.sort_by(|a, b| (&a.principal, &a.securable, &a.privilege).cmp(&(&b.principal, &b.securable, &b.privilege)));
    granted.dedup_by(|a, b| a.is_same(b));
    Ok(granted)
}

/// Writes what is given.
pub(crate) async fn append(lake: &Lake, given: &[Granted]) -> Result<(), Error> {
    let row = |granted: &Granted| {
        let (catalogue, name) = granted.securable.parts();
        [
            catalogue.map(str::to_owned).into(),
            granted.securable.kind().into(),
            name.into(),
            granted.principal.clone().into(),
            granted.privilege.clone().into(),
            Cell::Instant(Some(lake.clock().now())),
            granted.granted_by.clone().into(),
        ]
    };
    TABLE.append(lake, given.iter().map(row).collect()).await
}

/// The statement that takes privileges back; none of `privileges` = all on the thing.
pub(crate) fn deletion(securable: &Securable, principal: Option<&str>, privileges: &[&str]) -> String {
    let (catalogue, name) = securable.parts();
    let mut holding = vec![("catalogue", catalogue), ("name", name.as_deref()), ("securable_type", Some(securable.kind()))];
    holding.extend(principal.map(|principal| ("principal", Some(principal))));
    let all = TABLE.deletion(&holding);
    if privileges.is_empty() {
        return all;
    }
    let privileges: Vec<String> = privileges.iter().map(|one| super::ddl::literal(one)).collect();
    format!("{all} AND privilege IN ({})", privileges.join(", "))
}

/// What of the grants holds on a thing: those on it, then those on what it is in.
pub(super) fn on<'g>(grants: &'g [Granted], securable: &Securable) -> Vec<&'g Granted> {
    let lineage = securable.lineage();
    lineage.iter().flat_map(|on| grants.iter().filter(move |granted| granted.securable == *on)).collect()
}

/// The privileges that somebody has on a thing, inherited ones among them; `ALL PRIVILEGES` is told as what it stands for.
///
/// `groups` are those that the principal is of. Pure; [`grants`] reads the list.
///
/// ```
/// use tributary::sql::{Granted, Securable, effective};
/// let granted = |securable, privilege: &str| Granted {
///     securable, principal: "ann".to_owned(), privilege: privilege.to_owned(), granted_by: None,
/// };
/// let table = Securable::Table("prod".to_owned(), "bronze".to_owned(), "events".to_owned());
/// let grants = [granted(Securable::Catalogue("prod".to_owned()), "USE CATALOG"), granted(table.clone(), "SELECT")];
/// let has = effective(&grants, "ann", &[], &table);
/// assert!(has.contains("SELECT") && has.contains("USE CATALOG") && !has.contains("MODIFY"));
/// assert!(effective(&grants, "bob", &[], &table).is_empty());
/// ```
pub fn effective(grants: &[Granted], principal: &str, groups: &[String], securable: &Securable) -> BTreeSet<String> {
    let is_theirs =
        |granted: &&Granted| granted.principal == principal || granted.principal == EVERYBODY || groups.contains(&granted.principal);
    let mut has = BTreeSet::new();
    for granted in on(grants, securable).into_iter().filter(is_theirs) {
        match granted.privilege.as_str() {
            "ALL PRIVILEGES" => {
                has.extend(grantable(granted.securable.kind()).iter().filter(|one| !is_apart(one)).map(|one| (*one).to_owned()));
            }
            privilege => drop(has.insert(privilege.to_owned())),
        }
    }
    has
}

/// Whether somebody may do something with a thing: it takes the privilege, and the use of the catalogue and the schema that it is in.
///
/// ```
/// use tributary::sql::{Granted, Securable, may};
/// let granted = |securable, privilege: &str| Granted {
///     securable, principal: "app".to_owned(), privilege: privilege.to_owned(), granted_by: None,
/// };
/// let table = Securable::Table("prod".to_owned(), "bronze".to_owned(), "events".to_owned());
/// let mut grants = vec![granted(table.clone(), "MODIFY"), granted(Securable::Catalogue("prod".to_owned()), "USE CATALOG")];
/// assert!(!may(&grants, "app", &[], "MODIFY", &table));
/// grants.push(granted(Securable::Schema("prod".to_owned(), "bronze".to_owned()), "USE SCHEMA"));
/// assert!(may(&grants, "app", &[], "MODIFY", &table));
/// ```
pub fn may(grants: &[Granted], principal: &str, groups: &[String], privilege: &str, securable: &Securable) -> bool {
    let has = effective(grants, principal, groups, securable);
    let uses = match securable {
        Securable::Metastore => [].as_slice(),
        Securable::Catalogue(_) => &["USE CATALOG"],
        Securable::Schema(..) | Securable::Table(..) | Securable::Function(..) => &["USE CATALOG", "USE SCHEMA"],
    };
    has.contains(privilege) && uses.iter().all(|needed| has.contains(*needed))
}

/// Every privilege that was given in this lake and not taken back.
///
/// # Errors
/// [`Error::Lake`] when the table of grants cannot be read.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lake = tributary::Lake::open("memory://", Default::default())?;
/// assert!(tributary::sql::grants(&lake).await?.is_empty());
/// # Ok(()) }
/// ```
pub async fn grants(lake: &crate::Lake) -> Result<Vec<Granted>, Error> {
    load(lake.inner()).await
}
