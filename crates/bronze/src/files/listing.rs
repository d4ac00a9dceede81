//! Which files there are.

use futures::TryStreamExt;
use globset::{GlobBuilder, GlobMatcher};
use sha2::{Digest, Sha256};
use tributary_lake::object_store::{self, ObjectMeta, ObjectStoreExt, path::Path};

use super::root::{DataRoot, Place, store_path};
use super::walk::walk;
use crate::ledger::QUICK_BITS;
use crate::{Error, Result};

/// A file as a listing or a head names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub path: Path,
    /// What `_file` holds: the feed's path, then the file's own below it.
    pub name: String,
    /// Bytes as stored.
    pub size: u64,
    /// Microseconds since the epoch.
    pub modified_us: i64,
    etag: Option<String>,
}

impl Listed {
    fn new(meta: ObjectMeta, name: String) -> Self {
        Self { path: meta.location, name, size: meta.size, modified_us: meta.last_modified.timestamp_micros(), etag: meta.e_tag }
    }

    /// The quick test: where it is and what the store says of it, without reading it.
    pub(crate) fn quick(&self) -> i64 {
        let etag = self.etag.as_deref().unwrap_or_default();
        let all = fingerprint(&[self.name.as_bytes(), &self.size.to_le_bytes(), &self.modified_us.to_le_bytes(), etag.as_bytes()]);
        all & ((1 << QUICK_BITS) - 1)
    }

    /// The file's path as the ledger keeps it. Not negative.
    pub(crate) fn path_mark(&self) -> i64 {
        fingerprint(&[self.name.as_bytes()])
    }

    /// Whether the store still says the same of it.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.size == other.size && self.modified_us == other.modified_us && self.etag == other.etag
    }

    pub(crate) fn is_gzip(&self) -> bool {
        self.name.len() > 3 && self.name[self.name.len() - 3..].eq_ignore_ascii_case(".gz")
    }
}

/// The first 63 bits of the SHA-256 of the parts, each with its length.
fn fingerprint(parts: &[&[u8]]) -> i64 {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut first = [0_u8; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first) & i64::MAX
}

/// Which files below a folder are the feed's.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Option<GlobMatcher>);

impl Pattern {
    /// A glob over the path below the folder; `*` stays inside one folder, `**` does not. A glob without a slash is about the file's name.
    pub(crate) fn new(feed: &str, glob: Option<&str>) -> Result<Self> {
        let Some(glob) = glob else { return Ok(Self(None)) };
        let whole = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
        let glob = GlobBuilder::new(&whole)
            .literal_separator(true)
            .build()
            .map_err(|error| Error::Feed { feed: feed.to_owned(), reason: format!("glob: {}", error.kind()) })?;
        Ok(Self(Some(glob.compile_matcher())))
    }

    fn takes(&self, below: &str) -> bool {
        let hidden = |part: &str| part.starts_with('.') || part.starts_with('_');
        let unfinished = |name: &str| [".tmp", ".part"].iter().any(|end| name.ends_with(end));
        !below.split('/').any(hidden) && !unfinished(below) && self.0.as_ref().is_none_or(|glob| glob.is_match(below))
    }
}

/// What a listing found.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The feed's files, sorted by name.
    pub files: Vec<Listed>,
    /// Paths that cannot be read.
    pub faults: Vec<Error>,
}

/// Lists the feed's files. `feed_path` is the feed's own spelling of the place.
pub(crate) async fn list(root: &DataRoot, place: &Place, feed: &str, feed_path: &str, pattern: &Pattern) -> Result<Listing> {
    let read = |source| Error::Read { path: place.shown.clone(), source };
    let folder = feed_path.trim_end_matches('/');
    if !root.is_folder(place).await? {
        return match root.store().head(&place.path).await {
            Ok(meta) => Ok(Listing { files: vec![Listed::new(meta, folder.to_owned())], faults: Vec::new() }),
            Err(object_store::Error::NotFound { .. }) => Err(Error::PathMissing { feed: feed.to_owned(), path: place.shown.clone() }),
            Err(source) => Err(read(source)),
        };
    }
    let (mut files, mut faults) = (Vec::new(), Vec::new());
    let listed: Result<Vec<ObjectMeta>, _> = root.store().list(Some(&place.path)).try_collect().await;
    let listed = match (listed, &place.local) {
        (Ok(listed), _) => listed,
        (Err(source), Some(local)) => reached(root, local, &mut faults).await?.ok_or_else(|| read(source))?,
        (Err(source), None) => return Err(read(source)),
    };
    for meta in listed {
        let Some(below) = meta.location.prefix_match(&place.path) else { continue };
        let below = below.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
        if below.is_empty() {
            files.push(Listed::new(meta, folder.to_owned()));
        } else if pattern.takes(&below) {
            let name = if folder.is_empty() || folder == "." { below } else { format!("{folder}/{below}") };
            files.push(Listed::new(meta, name));
        }
    }
    if files.is_empty()
        && let Ok(meta) = root.store().head(&place.path).await
    {
        files.push(Listed::new(meta, folder.to_owned()));
    }
    files.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(Listing { files, faults })
}

/// What of a folder of this machine can be reached, where the store cannot list it to the end; none where no path is why.
async fn reached(root: &DataRoot, folder: &std::path::Path, faults: &mut Vec<Error>) -> Result<Option<Vec<ObjectMeta>>> {
    let folder = folder.to_owned();
    // A walk does not panic; one that is given up found nothing.
    let reached = tokio::task::spawn_blocking(move || walk(&folder)).await.unwrap_or_default();
    if reached.faults.is_empty() {
        return Ok(None);
    }
    faults.extend(reached.faults.into_iter().map(|(path, reason)| Error::Unreachable { path: path.display().to_string(), reason }));
    let mut listed = Vec::new();
    for path in reached.files {
        let location = store_path(&path)?;
        match root.store().head(&location).await {
            Ok(meta) => listed.push(meta),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(source) => faults.push(Error::Read { path: path.display().to_string(), source }),
        }
    }
    Ok(Some(listed))
}

/// What the store says of a file now; none when it is gone.
pub(crate) async fn head(root: &DataRoot, file: &Listed) -> Result<Option<Listed>> {
    match root.store().head(&file.path).await {
        Ok(meta) => Ok(Some(Listed::new(meta, file.name.clone()))),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(source) => Err(Error::Read { path: file.name.clone(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_unfinished_files_are_never_taken() {
        let all = Pattern::new("f", None).unwrap();
        for (below, taken) in
            [("a.csv", true), ("d/a.csv", true), (".a.csv", false), ("_tmp/a.csv", false), ("a.csv.tmp", false), ("a.part", false)]
        {
            assert_eq!(all.takes(below), taken, "{below}");
        }
    }

    #[test]
    fn a_glob_without_a_slash_is_about_the_name_in_any_folder() {
        let names = Pattern::new("f", Some("*.csv")).unwrap();
        assert!(names.takes("a.csv") && names.takes("d/e/a.csv") && !names.takes("a.jsonl"));
        let one = Pattern::new("f", Some("d/*.csv")).unwrap();
        assert!(one.takes("d/a.csv") && !one.takes("d/e/a.csv") && !one.takes("a.csv"));
    }
}
