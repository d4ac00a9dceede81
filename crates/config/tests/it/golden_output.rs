//! What a person reads: help and `--print-config`. `just bless` accepts a difference.

use tributary_config::{Program, arguments};

use crate::golden;
use crate::setup::Setup;

#[test]
fn help_is_what_the_registry_says() {
    for (program, name) in [(Program::Run, "run"), (Program::Bronze, "bronze"), (Program::Show, "show")] {
        let mut command = clap::Command::new(program.command()).args(arguments(program)).term_width(100);
        golden::assert_same(format!("tests/golden/help-{name}.txt"), &command.render_help().to_string());
    }
    let mut command = clap::Command::new("tributary run").args(arguments(Program::Run)).term_width(100);
    golden::assert_same("tests/golden/help-run-long.txt", &command.render_long_help().to_string());
}

#[test]
fn print_config_shows_every_value_and_its_origin_and_no_secret() {
    let loaded = Setup::new()
        .arguments(&["--warehouse", "s3://key:hunter2@bucket/lake", "--only", "silver.orders,gold.x", "--print-config"])
        .environment("TRIBUTARY_MEMORY_LIMIT", "512MiB")
        .file(".env", "\nTRIBUTARY_DB_NAME=shop\n")
        .file("tributary.toml", "target = \"dev\"\n[targets.dev]\nprocessing_time = 90\n")
        .load();
    let printed = loaded.print_config();
    assert!(loaded.settings.print_config);
    assert!(!printed.contains("hunter2"));
    golden::assert_same("tests/golden/print-config.txt", &printed);
}
