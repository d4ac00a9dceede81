//! What both programs do alike: take a stack of services, and end with a code and a word.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::services::Services;

/// Runs all of a program; it ends well only when everything held.
pub fn end(name: &str, all: impl FnOnce(&Services) -> Result<bool>) -> ExitCode {
    let held = Services::up().and_then(|mut services| {
        let held = all(&services);
        if !matches!(held, Ok(true)) {
            services.keep();
        }
        held
    });
    match held {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{name} failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// An argument as a number, or what it is when there is none.
pub fn number<N: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    text: Option<&String>,
    name: &str,
    otherwise: N,
) -> Result<N> {
    text.map_or(Ok(otherwise), |text| text.parse().with_context(|| format!("{name} is a number, not {text:?}")))
}
