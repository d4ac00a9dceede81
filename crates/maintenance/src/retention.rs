//! How long a table keeps what its latest version does not need.

use std::time::Duration;

use tributary_lake::Table;

use crate::{Error, Result, interval};

/// Where a table says how long it keeps something, and who deletes it.
pub(crate) struct Retention {
    /// The table's property.
    pub property: &'static str,
    /// Of a table without it.
    pub default: Duration,
    /// The verb of `tributary maintain`.
    pub verb: &'static str,
}

impl Retention {
    /// The table's own, which is the shortest that needs nobody's consent.
    ///
    /// # Errors
    /// [`Error::Property`] when the property is no length of time.
    pub(crate) fn own(&self, table: &Table) -> Result<Duration> {
        let Some(value) = table.properties().get(self.property) else { return Ok(self.default) };
        let seconds = interval::seconds(value).ok_or_else(|| Error::Property {
            table: table.name().clone(),
            property: self.property,
            value: value.clone(),
        })?;
        Ok(Duration::from_secs(seconds))
    }

    /// What was asked for, else the table's own.
    ///
    /// # Errors
    /// As [`Self::own`]; [`Error::UnsafeRetention`] when it is shorter than that and nobody accepted it.
    pub(crate) fn agreed(&self, table: &Table, asked: Option<Duration>, accepts_shorter: bool) -> Result<Duration> {
        let own = self.own(table)?;
        let retention = asked.unwrap_or(own);
        if retention < own && !accepts_shorter {
            return Err(Error::UnsafeRetention {
                table: table.name().clone(),
                verb: self.verb,
                asked: retention.as_secs(),
                safe: own.as_secs(),
            });
        }
        Ok(retention)
    }
}
