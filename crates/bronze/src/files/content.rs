//! The content of a file as a stream of bytes, gunzipped where the name says so.

use std::fs::File;
use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tributary_lake::object_store::{self, GetResultPayload, ObjectStoreExt};

use super::listing::Listed;
use super::root::DataRoot;
use crate::{Error, Result};

/// Compressed bytes handed to the inflater at a time, so that a file that inflates a thousandfold stays in bounds.
const INFLATE_STEP: usize = 16 << 10;
/// Bytes of a local file read at a time.
const READ_STEP: u64 = 1 << 20;

/// A file being read.
pub(crate) struct Content {
    name: String,
    stream: BoxStream<'static, Result<Bytes, object_store::Error>>,
    inflater: Option<MultiGzDecoder<Vec<u8>>>,
    compressed: Bytes,
    ended: bool,
}

impl Content {
    pub(crate) async fn open(root: &DataRoot, file: &Listed) -> Result<Self> {
        let answer = root.store().get(&file.path).await.map_err(|source| Error::Read { path: file.name.clone(), source })?;
        let bytes = answer.range.end - answer.range.start;
        Ok(Self::new(
            file,
            match answer.payload {
                GetResultPayload::File(local, _) => in_steps(local, bytes),
                GetResultPayload::Stream(stream) => stream,
            },
        ))
    }

    /// Content that was kept when the file was identified, already gunzipped.
    pub(crate) fn kept(file: &Listed, content: Bytes) -> Self {
        let stream = stream::iter([Ok(content)]).boxed();
        Self { name: file.name.clone(), stream, inflater: None, compressed: Bytes::new(), ended: false }
    }

    fn new(file: &Listed, stream: BoxStream<'static, Result<Bytes, object_store::Error>>) -> Self {
        let inflater = file.is_gzip().then(|| MultiGzDecoder::new(Vec::new()));
        Self { name: file.name.clone(), stream, inflater, compressed: Bytes::new(), ended: false }
    }

    /// The next bytes of the content; never empty.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        while !self.ended {
            if self.compressed.is_empty() {
                match self.stream.try_next().await.map_err(|source| Error::Read { path: self.name.clone(), source })? {
                    Some(bytes) => self.compressed = bytes,
                    None => {
                        self.ended = true;
                        return self.finish();
                    }
                }
            }
            let bytes = match &mut self.inflater {
                None => std::mem::take(&mut self.compressed),
                Some(inflater) => {
                    let step = self.compressed.split_to(INFLATE_STEP.min(self.compressed.len()));
                    let inflated = inflater.write_all(&step).and_then(|()| inflater.flush());
                    inflated.map_err(|_| damaged(&self.name, "it is no gzip stream, or a damaged one"))?;
                    std::mem::take(inflater.get_mut()).into()
                }
            };
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<Option<Bytes>> {
        let Some(inflater) = &mut self.inflater else { return Ok(None) };
        inflater.try_finish().map_err(|_| damaged(&self.name, "its gzip stream ends early or fails its checksum"))?;
        let rest = std::mem::take(inflater.get_mut());
        Ok((!rest.is_empty()).then(|| rest.into()))
    }
}

/// The first so many bytes of a local file. The store's own stream of it takes a turn of another thread for every few kilobytes.
fn in_steps(file: File, bytes: u64) -> BoxStream<'static, Result<Bytes, object_store::Error>> {
    let step = |mut file: io::Take<File>| async {
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            file.by_ref().take(READ_STEP).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>((Bytes::from(bytes), file))
        });
        let (bytes, file) = read.await?.map_err(|source| object_store::Error::Generic { store: "local", source: Box::new(source) })?;
        Ok((!bytes.is_empty()).then_some((bytes, file)))
    };
    stream::try_unfold(file.take(bytes), step).boxed()
}

fn damaged(path: &str, reason: &str) -> Error {
    Error::Damaged { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use tributary_lake::object_store::memory::InMemory;
    use tributary_lake::object_store::path::Path;

    use super::super::listing::{Pattern, list};
    use super::*;

    async fn read(name: &str, stored: Vec<u8>) -> Result<Vec<u8>> {
        let store = std::sync::Arc::new(InMemory::new());
        store.put(&Path::from(name), stored.into()).await.unwrap();
        let root = DataRoot::wrap(store, "");
        let files = list(&root, &root.place("").unwrap(), "f", "", &Pattern::new("f", None).unwrap()).await.unwrap().files;
        let mut content = Content::open(&root, &files[0]).await?;
        let mut all = Vec::new();
        while let Some(bytes) = content.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn members_of_a_gzip_file_follow_each_other() {
        let long = vec![b'x'; 3_000_000];
        let stored = [gzip(b"first "), gzip(&long), gzip(b" last")].concat();
        assert_eq!(read("a.jsonl.gz", stored).await.unwrap(), [b"first ".as_slice(), &long, b" last"].concat());
    }

    #[tokio::test]
    async fn a_gzip_file_cut_anywhere_is_damaged_never_short() {
        let stored = gzip(b"{\"id\":1}\n{\"id\":2}\n");
        for length in 1..stored.len() {
            let error = read("a.jsonl.gz", stored[..length].to_vec()).await.unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "cut at {length}: {error}");
        }
    }

    #[tokio::test]
    async fn a_flipped_bit_in_a_gzip_file_is_found() {
        let whole = b"{\"id\":1}\n{\"id\":2}\n".repeat(20);
        let stored = gzip(&whole);
        for at in 10..stored.len() {
            let mut bad = stored.clone();
            bad[at] ^= 4;
            assert!(read("a.gz", bad).await.is_err(), "bit at {at}");
        }
    }
}
