//! What a file holds, as one number: the SHA-256 of its content.

use std::collections::BTreeSet;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::content::Content;
use super::listing::{Listed, head};
use super::root::DataRoot;
use crate::Result;
use crate::ledger::ContentId;

/// What was found in a file.
pub(crate) enum Identified {
    Whole(Identity),
    /// The store says something else of the file than before it was read: it is being written.
    Moving,
}

/// A whole file's content.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub id: ContentId,
    /// Bytes of the content (gunzipped).
    pub bytes: u64,
    /// What the first `n` bytes are, for each asked-for `n` that the content reaches.
    pub prefixes: Vec<(u64, ContentId)>,
    /// The content itself, when it is short.
    pub kept: Option<Bytes>,
}

/// Reads a file to its end. `sizes` asks for prefixes; content up to `keep` bytes is handed back.
pub(crate) async fn identify(root: &DataRoot, file: &Listed, sizes: &BTreeSet<u64>, keep: usize) -> Result<Identified> {
    let mut content = Content::open(root, file).await?;
    let mut hash = Hash::new(sizes);
    let mut kept = Some(Vec::new());
    while let Some(bytes) = content.next().await? {
        hash.update(&bytes);
        kept = kept.filter(|kept| kept.len() + bytes.len() <= keep).map(|mut kept| {
            kept.extend_from_slice(&bytes);
            kept
        });
    }
    match head(root, file).await? {
        Some(now) if now.same_as(file) => {
            let (id, bytes, prefixes) = hash.finish();
            Ok(Identified::Whole(Identity { id, bytes, prefixes, kept: kept.map(Bytes::from) }))
        }
        _ => Ok(Identified::Moving),
    }
}

/// A hash that also remembers the hashes of prefixes.
struct Hash<'a> {
    hasher: Sha256,
    bytes: u64,
    sizes: std::collections::btree_set::Iter<'a, u64>,
    next: Option<u64>,
    prefixes: Vec<(u64, ContentId)>,
}

impl<'a> Hash<'a> {
    fn new(sizes: &'a BTreeSet<u64>) -> Self {
        let mut sizes = sizes.iter();
        let next = sizes.next().copied();
        Self { hasher: Sha256::new(), bytes: 0, sizes, next, prefixes: Vec::new() }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        while let Some(size) = self.next
            && let Ok(until) = usize::try_from(size - self.bytes)
            && until <= bytes.len()
        {
            self.take(&bytes[..until]);
            bytes = &bytes[until..];
            self.prefixes.push((size, ContentId(self.hasher.clone().finalize().into())));
            self.next = self.sizes.next().copied();
        }
        self.take(bytes);
    }

    fn take(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn finish(self) -> (ContentId, u64, Vec<(u64, ContentId)>) {
        (ContentId(self.hasher.finalize().into()), self.bytes, self.prefixes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_the_hash_of_a_file_that_ends_there() {
        let content = b"first line\nsecond line\n";
        let sizes = BTreeSet::from([0, 5, 11, 23, 24, 99]);
        for step in 1..=content.len() {
            let mut hash = Hash::new(&sizes);
            content.chunks(step).for_each(|chunk| hash.update(chunk));
            let (id, bytes, prefixes) = hash.finish();
            assert_eq!(bytes, 23);
            let expected: Vec<_> = [0, 5, 11, 23].map(|size| (size as u64, ContentId(Sha256::digest(&content[..size]).into()))).into();
            assert_eq!(prefixes, expected, "step {step}");
            assert_eq!(id, expected[3].1);
        }
    }
}
