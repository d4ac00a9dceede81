//! The wrapper itself.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, RenameOptions, Result,
};

use super::call::{Call, Counts, Rule, Verb};
use super::script::{Answer, Mode, Script, ScriptedFault, Verdict};
use super::upload::FaultyUpload;

/// A store that fails where a test says; clones share counters and script.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    script: Arc<Mutex<Script>>,
}

/// Why a call failed, as the source of the store's error.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("no answer came to {0}")]
    NoAnswer(Call),
    #[error("scripted refusal of {0}")]
    Scripted(Call),
    #[error("the process that used this store was killed")]
    Killed,
}

impl FaultyStore {
    /// Wraps a store; nothing fails yet.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, script: Arc::default() }
    }

    /// The store underneath: what a restarted process finds.
    pub fn inner(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.inner)
    }

    /// The process dies at the n-th mutating call from here (1 = the next one). Replaces an earlier kill.
    pub fn kill_at(&self, n: u64, mode: Mode) {
        self.script().kill_at(n, mode);
    }

    /// The n-th read from here (1 = the next one) fails once as a transient fault.
    pub fn fail_read_at(&self, n: u64) {
        self.fail(Rule::reads(), n, ScriptedFault::NotDone);
    }

    /// From here on the first read of each kind of each path fails as a transient fault; the second goes through.
    pub fn fail_every_read_once(&self) {
        self.script().fail_every_read_once();
    }

    /// The n-th call from here that the rule is about meets this fault; the store lives on.
    pub fn fail(&self, rule: Rule, n: u64, fault: ScriptedFault) {
        self.script().fail(rule, n, fault);
    }

    /// The closure's future runs to its end just before the n-th call from here that the rule is about. It may use this very
    /// store (its calls are counted as any other) or, to stay uncounted, [`FaultyStore::inner`].
    pub fn before<F, Fut>(&self, rule: Rule, n: u64, hook: F)
    where
        F: FnOnce(Call) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.script().before(rule, n, Box::new(|call| hook(call).boxed()));
    }

    /// How many calls there were since the store was wrapped.
    pub fn counts(&self) -> Counts {
        self.script().counts()
    }

    /// Every call that was not refused, in the order they came.
    pub fn calls(&self) -> Vec<Call> {
        self.script().calls()
    }

    /// Whether the kill has happened.
    pub fn killed(&self) -> bool {
        self.script().dead()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_bytes(&self, bytes: usize) {
        self.script().add_bytes(bytes);
    }

    /// Counts the call and sees it through.
    async fn pass<T>(&self, verb: Verb, path: &Path, act: impl Future<Output = Result<T>> + Send) -> Result<T> {
        settle(self.decide(verb, path), path, act).await
    }

    pub(super) fn decide(&self, verb: Verb, path: &Path) -> Verdict {
        self.script().decide(verb, path)
    }

    /// A stream that exists only if the read of it goes through.
    fn pass_stream<T: Send + 'static>(
        &self,
        verb: Verb,
        path: Path,
        open: impl FnOnce(Arc<dyn ObjectStore>) -> BoxStream<'static, Result<T>> + Send + 'static,
    ) -> BoxStream<'static, Result<T>> {
        let this = self.clone();
        async move {
            let inner = this.inner();
            match this.pass(verb, &path, async { Ok(open(inner)) }).await {
                Ok(stream) => stream,
                Err(error) => futures::stream::once(async { Err(error) }).boxed(),
            }
        }
        .into_stream()
        .flatten()
        .boxed()
    }
}

/// Runs the hooks of a decided call, carries it out or not, and answers or not.
pub(super) async fn settle<T>(verdict: Verdict, path: &Path, act: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let (call, carry_out, answer, hooks) = match verdict {
        Verdict::Refused => return Err(killed(path)),
        Verdict::Call { call, carry_out, answer, hooks } => (call, carry_out, answer, hooks),
    };
    for hook in hooks {
        hook(call.clone()).await;
    }
    let result = if carry_out { Some(act.await) } else { None };
    match (answer, result) {
        (Answer::True, Some(result)) => result,
        (Answer::Denied, _) => Err(denied(path, Cause::Scripted(call))),
        (Answer::True | Answer::Lost, _) => Err(Error::Generic { store: "FaultyStore", source: Box::new(Cause::NoAnswer(call)) }),
    }
}

fn killed(path: &Path) -> Error {
    denied(path, Cause::Killed)
}

fn denied(path: &Path, cause: Cause) -> Error {
    Error::PermissionDenied { path: path.to_string(), source: Box::new(cause) }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.add_bytes(payload.content_length());
        self.pass(Verb::Put, location, self.inner.put_opts(location, payload, opts)).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        if self.killed() {
            return Err(killed(location));
        }
        let upload = self.inner.put_multipart_opts(location, opts).await?;
        Ok(Box::new(FaultyUpload::new(self.clone(), location.clone(), upload)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.pass(Verb::Get, location, self.inner.get_opts(location, options)).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.pass(Verb::Get, location, self.inner.get_ranges(location, ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        locations
            .then(move |location| {
                let this = this.clone();
                async move {
                    let location = location?;
                    let one = futures::stream::once(futures::future::ready(Ok(location.clone()))).boxed();
                    let mut deleted = this.inner.delete_stream(one);
                    this.pass(Verb::Delete, &location, async { deleted.next().await.unwrap_or(Ok(location.clone())) }).await
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = prefix.cloned();
        self.pass_stream(Verb::List, prefix.clone().unwrap_or_default(), move |inner| inner.list(prefix.as_ref()))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let (prefix, offset) = (prefix.cloned(), offset.clone());
        self.pass_stream(Verb::List, prefix.clone().unwrap_or_default(), move |inner| inner.list_with_offset(prefix.as_ref(), &offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.cloned().unwrap_or_default();
        self.pass(Verb::List, &path, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.pass(Verb::Copy, to, self.inner.copy_opts(from, to, options)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.pass(Verb::Rename, to, self.inner.rename_opts(from, to, options)).await
    }
}
