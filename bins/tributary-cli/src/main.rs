//! The umbrella `tributary`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tributary_cli::umbrella(&tributary_config::Inputs::of_process()))
}
