//! What SIGINT and SIGTERM do to a run.
//!
//! They are waited for in a thread of its own, so that a run that computes cannot hide them: the first asks the run to end, the
//! second ends the process at once. To the tables a kill is as safe.

use std::io;

use tokio_util::sync::CancellationToken;
use tributary::ExitCode;

use crate::failure::{Error, Failure};

/// From now on the first signal cancels, and the second exits.
pub fn end_with(cancel: &CancellationToken) -> Result<(), Failure> {
    let failed = |source| Error::Io { action: "waiting for signals".to_owned(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let cancel = cancel.clone();
    let mut signals = {
        let _guard = runtime.enter();
        Signals::new().map_err(failed)?
    };
    let wait = move || {
        runtime.block_on(async {
            signals.next().await;
            cancel.cancel();
            signals.next().await;
            std::process::exit(ExitCode::Failed.code().into());
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
    Ok(())
}

#[cfg(unix)]
struct Signals {
    interrupts: tokio::signal::unix::Signal,
    terminations: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupts: signal(SignalKind::interrupt())?, terminations: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupts.recv() => {}
            _ = self.terminations.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
