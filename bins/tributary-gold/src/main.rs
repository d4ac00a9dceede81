//! The gold layer as one program: the same code and settings as `tributary run --layer gold`.

use std::process::ExitCode;

use tributary_config::{Inputs, Program};

fn main() -> ExitCode {
    ExitCode::from(tributary_cli::layer(Program::Gold, &Inputs::of_process()))
}
