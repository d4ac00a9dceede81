//! What a person reads when settings are wrong, kept in `tests/golden/error-texts.txt`.

use std::fmt::Write as _;

use tributary_fault::{Fault, FaultClass};

use crate::golden;
use crate::setup::Setup;

fn wrong_setups() -> Vec<(&'static str, Setup)> {
    vec![
        ("a misspelt key in the file", Setup::new().file("tributary.toml", "catalogue = \"dev\"\nwarehuose = \"x\"\n")),
        ("a key of another program in the file", Setup::new().file("tributary.toml", "frobnicate = 1\n")),
        ("a misspelt variable in the environment", Setup::new().environment("TRIBUTARY_WAREHUOSE", "x")),
        ("a misspelt variable in .env", Setup::new().file(".env", "OTHER=1\nTRIBUTARY_CATALOG_NAME=x\n")),
        ("a duration that is none", Setup::new().arguments(&["--processing-time", "soon"])),
        ("a size that is none", Setup::new().environment("TRIBUTARY_MEMORY_LIMIT", "lots")),
        ("a size that is too small", Setup::new().file(".env", "TRIBUTARY_MEMORY_LIMIT=1\n")),
        ("a count with a fraction in the file", Setup::new().file("tributary.toml", "starting_version = 1.5\n")),
        ("a text where a number belongs in the file", Setup::new().file("tributary.toml", "max_files_per_trigger = \"10\"\n")),
        ("a number where a text belongs in the file", Setup::new().file("tributary.toml", "catalogue = 5\n")),
        ("a list of numbers in the file", Setup::new().file("tributary.toml", "only = [1, 2]\n")),
        ("a switch that is none", Setup::new().environment("TRIBUTARY_STREAM", "maybe")),
        ("a word that is no choice", Setup::new().arguments(&["--layer", "platinum"])),
        ("a name that is no name", Setup::new().arguments(&["--catalogue", "../x"])),
        ("an empty name that must be there", Setup::new().environment("TRIBUTARY_CATALOGUE", "")),
        ("an exit code out of range", Setup::new().arguments(&["--exit-code-if-nothing-new", "300"])),
        ("an instant that is none", Setup::new().arguments(&["--as-of", "yesterday"])),
        ("an empty path on the command line", Setup::new().arguments(&["--warehouse", ""])),
        ("a .env line without =", Setup::new().file(".env", "TRIBUTARY_LAYER=gold\nTRIBUTARY_STREAM\n")),
        ("a .env reference to nothing", Setup::new().file(".env", "TRIBUTARY_LAYER=${NOWHERE}\n")),
        ("a .env quote that is not closed", Setup::new().file(".env", "TRIBUTARY_LAYER=\"gold\nTRIBUTARY_STREAM=true\n")),
        ("a .env escape that is unknown", Setup::new().file(".env", "TRIBUTARY_WAREHOUSE=\"C:\\lake\"\n")),
        ("a named settings file that is missing", Setup::new().arguments(&["--config", "conf/no.toml"])),
        ("a named settings file that is a folder", Setup::new().file("conf/a.toml", "").environment("TRIBUTARY_CONFIG", "conf")),
        ("a named .env file that is missing", Setup::new().arguments(&["--env-file", "no.env"])),
        ("a settings file that is no TOML", Setup::new().file("tributary.toml", "catalogue = \"dev\"\nlayer = gold\n")),
        ("a settings file with a key twice", Setup::new().file("tributary.toml", "layer = \"gold\"\nlayer = \"all\"\n")),
        ("a key with dashes and again with underscores", Setup::new().file("tributary.toml", "db-name = \"a\"\n\ndb_name = \"b\"\n")),
        ("a one-time flag in the environment", Setup::new().environment("TRIBUTARY_CHECK", "true")),
        ("the name of a .env file inside it", Setup::new().file(".env", "TRIBUTARY_ENV_FILE=other.env\n")),
        ("the name of the settings file inside it", Setup::new().file("tributary.toml", "config = \"other.toml\"\n")),
        ("a target that is not in the file", Setup::new().file("tributary.toml", "[targets.dev]\n").arguments(&["--target", "dve"])),
        ("a target without a file", Setup::new().environment("TRIBUTARY_TARGET", "dev")),
        ("a target that is no table", Setup::new().file("tributary.toml", "[targets]\ndev = 1\n")),
        ("a target inside a target", Setup::new().file("tributary.toml", "[targets.dev]\ntarget = \"x\"\n")),
        (
            "several at once",
            Setup::new()
                .arguments(&["--layer", "platinum"])
                .environment("TRIBUTARY_NO_SUCH", "1")
                .file(".env", "H\nTRIBUTARY_DBNAME=x\n")
                .file("tributary.toml", "color = true\n"),
        ),
    ]
}

#[test]
fn every_wrong_setup_is_refused_with_a_text_that_says_where() {
    let mut texts = String::new();
    for (name, setup) in wrong_setups() {
        let refusal = setup.try_load().expect_err(name);
        assert_eq!(refusal.class(), FaultClass::BadInput);
        writeln!(texts, "# {name}").unwrap();
        for (error, line) in refusal.errors().iter().zip(refusal.to_string().lines()) {
            assert!(!line.ends_with('.') && !line.contains(setup.folder().to_str().unwrap()));
            writeln!(texts, "{}: {line}", error.code()).unwrap();
            assert!(error.next_command().is_some());
        }
        assert_eq!(refusal.errors().len(), refusal.to_string().lines().count(), "an error is one line");
        texts.push('\n');
    }
    golden::assert_same("tests/golden/error-texts.txt", &texts);
}

#[test]
fn a_variable_that_is_not_unicode_is_named() {
    use std::os::unix::ffi::OsStringExt;
    let mut setup = Setup::new();
    setup.inputs().environment.push(("TRIBUTARY_WAREHOUSE".into(), std::ffi::OsString::from_vec(vec![0xff, 0xfe])));
    let refusal = setup.try_load().unwrap_err();
    assert_eq!(refusal.to_string(), "the value of TRIBUTARY_WAREHOUSE (environment) is not UTF-8");
}

#[test]
fn the_projects_own_test_variables_are_no_settings() {
    Setup::new().environment("TRIBUTARY_BLESS", "1").load();
}
