//! Which table it is that a recorded version is of.
//!
//! A table that was made again counts its versions from zero once more, so a version alone takes one table for the other. Beside
//! each position in a table the target's commit therefore names that table itself.

use tributary_lake::{Progress, Result, Table};

/// The table that a position was recorded of.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    app_id: String,
    /// None where nothing was consumed yet, or by a release that did not record it.
    recorded: Option<i64>,
}

impl Identity {
    /// As `target` has recorded it.
    ///
    /// # Errors
    /// Store errors.
    pub async fn recorded(target: Option<&Table>, app_id: String) -> Result<Self> {
        let recorded = match target {
            Some(target) => target.progress(&app_id).await?,
            None => None,
        };
        Ok(Self { app_id, recorded })
    }

    /// Whether what was recorded is of another table.
    pub fn is_not(&self, table: &Table) -> bool {
        self.recorded.is_some_and(|recorded| recorded != table.identity())
    }

    /// What the next commit says, where it is not said yet.
    pub fn take_on(&self, table: &Table) -> Option<Progress> {
        let version = table.identity();
        (self.recorded != Some(version)).then(|| Progress { app_id: self.app_id.clone(), expected: self.recorded, version })
    }
}
