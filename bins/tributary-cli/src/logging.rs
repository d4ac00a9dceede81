//! Where log events go, and in which of its forms a run speaks.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tributary_config::{LogFormat, Settings};

use crate::failure::{Error, Failure};

/// How a run speaks, after `auto` has looked where it speaks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// Progress bars on the standard error, lines on the standard output.
    Bars,
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}

impl Voice {
    /// The voice of these settings on this process' outputs.
    pub fn of(settings: &Settings) -> Self {
        let terminal = std::io::stderr().is_terminal() && std::io::stdout().is_terminal();
        match settings.log_format {
            LogFormat::Auto if terminal => Self::Bars,
            LogFormat::Auto | LogFormat::Json => Self::Json,
            LogFormat::Progress => Self::Bars,
            LogFormat::Text => Self::Text,
        }
    }
}

/// Sends log events to the standard error. Only binaries do this, once.
pub fn install(settings: &Settings) -> Result<(), Failure> {
    let filter = EnvFilter::builder().parse(&settings.log_filter).map_err(|_| Error::LogFilter { filter: settings.log_filter.clone() })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    // a second call in one process (a test) keeps the first subscriber
    let _ = match Voice::of(settings) {
        Voice::Json => builder.json().try_init(),
        Voice::Bars | Voice::Text => builder.try_init(),
    };
    Ok(())
}
