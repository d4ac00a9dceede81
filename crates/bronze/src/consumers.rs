//! Consumers that outlive one round of a continuous run.

use std::fmt::{Debug, Formatter};

/// The consumers of a continuous run, one a cluster, kept from round to round so that their groups stay joined. Dropping it leaves the groups.
#[derive(Default)]
pub struct Consumers {
    #[cfg(feature = "kafka")]
    live: std::sync::Mutex<std::collections::BTreeMap<crate::kafka::Cluster, std::sync::Arc<Live>>>,
}

impl Debug for Consumers {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumers").finish_non_exhaustive()
    }
}

#[cfg(feature = "kafka")]
pub(crate) use joined::{Live, Settled};

#[cfg(feature = "kafka")]
mod joined {
    use std::collections::BTreeMap;
    use std::sync::{Arc, PoisonError};

    use super::Consumers;
    use crate::kafka::{Client, Cluster, Place};

    /// A consumer that stays joined.
    pub(crate) struct Live {
        pub client: Client,
        /// Where partitions are, by topic and partition. One round of a group runs at a time.
        pub settled: tokio::sync::Mutex<BTreeMap<Place, Settled>>,
    }

    /// Where a partition is between two rounds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Settled {
        /// The table's position then.
        pub table: Option<i64>,
        /// The next offset that the poller hands over; what lies between holds no record.
        pub next: i64,
    }

    impl Consumers {
        /// The cluster's consumer, when there is one.
        pub(crate) fn get(&self, cluster: &Cluster) -> Option<Arc<Live>> {
            self.live.lock().unwrap_or_else(PoisonError::into_inner).get(cluster).filter(|live| live.client.is_alive()).cloned()
        }

        /// Keeps a consumer for the rounds to come.
        pub(crate) fn keep(&self, client: Client) -> Arc<Live> {
            let live = Arc::new(Live { settled: tokio::sync::Mutex::default(), client });
            self.live.lock().unwrap_or_else(PoisonError::into_inner).insert(live.client.cluster.clone(), Arc::clone(&live));
            live
        }
    }
}
