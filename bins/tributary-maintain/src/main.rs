//! Maintenance as one program: the same code and settings as `tributary maintain`.

use std::process::ExitCode;

use tributary_config::Inputs;

fn main() -> ExitCode {
    ExitCode::from(tributary_cli::maintenance(&Inputs::of_process()))
}
