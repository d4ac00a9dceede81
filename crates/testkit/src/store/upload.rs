//! Multipart uploads: every part, the completion and the abort are mutating calls.

use async_trait::async_trait;
use futures::FutureExt;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::call::Verb;
use super::faulty::{FaultyStore, settle};

#[derive(Debug)]
pub(super) struct FaultyUpload {
    store: FaultyStore,
    path: Path,
    inner: Box<dyn MultipartUpload>,
}

impl FaultyUpload {
    pub(super) fn new(store: FaultyStore, path: Path, inner: Box<dyn MultipartUpload>) -> Self {
        Self { store, path, inner }
    }
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (store, path) = (self.store.clone(), self.path.clone());
        store.add_bytes(data.content_length());
        let verdict = store.decide(Verb::PutPart, &path);
        let part = if verdict.carries_out() { self.inner.put_part(data) } else { std::future::ready(Ok(())).boxed() };
        async move { settle(verdict, &path, part).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        settle(self.store.decide(Verb::CompleteUpload, &self.path), &self.path, self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        settle(self.store.decide(Verb::AbortUpload, &self.path), &self.path, self.inner.abort()).await
    }
}
