//! Registries that outlive one run, so that a schema is asked for once.

use std::fmt::{Debug, Formatter};

/// The registries of a process, one an address, kept from round to round.
#[derive(Default)]
pub struct Registries {
    #[cfg(feature = "kafka")]
    open: std::sync::Mutex<std::collections::BTreeMap<String, std::sync::Arc<super::Registry>>>,
}

impl Debug for Registries {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registries").finish_non_exhaustive()
    }
}

#[cfg(feature = "kafka")]
impl Registries {
    /// The registry at an address; nothing is asked of it yet.
    ///
    /// # Errors
    /// [`crate::Error::RegistrySettings`] for an address or credentials that cannot be used.
    pub fn at(&self, url: &str, options: &crate::KafkaOptions) -> crate::Result<std::sync::Arc<super::Registry>> {
        use std::sync::{Arc, PoisonError};
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.get(url) {
            return Ok(Arc::clone(known));
        }
        let registry = Arc::new(super::Registry::new(url, options.registry_auth.as_deref(), options.patience)?);
        open.insert(url.to_owned(), Arc::clone(&registry));
        Ok(registry)
    }
}
