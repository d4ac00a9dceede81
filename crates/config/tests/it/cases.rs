//! The handed cases of the area `config`, each with its whole kind.

use serde_json::Value;
use tributary_config::{Dotenv, Origin};

use crate::setup::Setup;

fn case(id: &str) -> Value {
    let text = include_str!("../cases/cfg.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.into_iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("{id} is not in the file"))
}

/// The cases speak of the wearable pipeline's prefix.
fn ours(name: &str) -> String {
    name.replace("WEARPIPE_", "TRIBUTARY_")
}

#[test]
fn cfg_01_a_default_never_hides_the_environment() {
    let case = case("CFG-01");
    let mut setup = Setup::new();
    for (name, value) in case["input"]["env"].as_object().unwrap() {
        setup = setup.environment(&ours(name), value.as_str().unwrap());
    }
    let loaded = setup.load();
    assert_eq!(loaded.settings.db_name.as_ref().unwrap().as_str(), case["expected"]["db_name"]);
    assert_eq!(loaded.origin("db_name"), Origin::Environment { variable: "TRIBUTARY_DB_NAME".into() });
}

#[test]
fn cfg_01_a_switch_obeys_false_in_the_environment_and_true_on_the_command_line() {
    let setup = Setup::new().environment("TRIBUTARY_STREAM", "false");
    assert!(!setup.load().settings.stream);
    assert!(setup.arguments(&["--stream"]).load().settings.stream);
    let setup = Setup::new().environment("TRIBUTARY_STREAM", "true");
    assert!(setup.load().settings.stream);
    assert!(!setup.arguments(&["--stream=false"]).load().settings.stream);
}

#[test]
fn cfg_01_a_flag_that_repeats_the_default_still_stands_above_the_environment() {
    let loaded = Setup::new().environment("TRIBUTARY_CATALOGUE", "from_env").arguments(&["--catalogue=main"]).load();
    assert_eq!(loaded.settings.catalogue.as_str(), "main");
    assert_eq!(loaded.origin("catalogue"), Origin::CommandLine);
}

#[test]
fn cfg_04_quotes_hashes_export_blanks_references_and_crlf_are_read_by_the_stated_rules() {
    let case = case("CFG-04");
    let dotenv = Dotenv::parse(case["input"][".env"].as_str().unwrap(), |_| None);
    let value = |name: &str| dotenv.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value.as_str());
    for (name, expected) in case["expected"]["values"].as_object().unwrap() {
        assert_eq!(value(name), expected.as_str(), "{name}");
    }
    assert_eq!(value("A"), Some("2"), "the last line holds");
    assert_eq!(value("F"), Some("10"), "a reference takes the value of the line before it");
    assert_eq!(dotenv.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [8]);
    assert!(dotenv.entries.iter().all(|entry| !entry.value.contains('\r')));
    assert_eq!(value("I"), None);
}

#[test]
fn cfg_04_the_same_file_as_settings_is_refused_with_the_line() {
    let text = case("CFG-04")["input"][".env"].as_str().unwrap().to_owned();
    let refusal = Setup::new().file(".env", &text).try_load().unwrap_err();
    assert_eq!(refusal.to_string(), ".env line 8: expected = after the name H");
}

#[test]
fn cfg_05_a_parent_folder_is_never_looked_into() {
    let setup = Setup::new().file(".env", "TRIBUTARY_LAYER=gold\n").file("tributary.toml", "layer = \"gold\"\n").in_folder("project/sub");
    let loaded = setup.load();
    assert_eq!(loaded.origin("layer"), Origin::Default);
    assert!(!loaded.print_config().contains("gold"));
}

#[test]
fn cfg_05_a_named_env_file_that_is_missing_is_an_error_and_an_unnamed_one_is_not() {
    Setup::new().load();
    let refusal = Setup::new().arguments(&["--env-file", "dev.env"]).try_load().unwrap_err();
    assert!(refusal.to_string().starts_with("cannot read dev.env (named by command line)"), "{refusal}");
    let refusal = Setup::new().environment("TRIBUTARY_ENV_FILE", "dev.env").try_load().unwrap_err();
    assert!(refusal.to_string().contains("environment TRIBUTARY_ENV_FILE"), "{refusal}");
}

#[test]
fn cfg_05_a_named_env_file_is_read_instead_of_the_usual_one() {
    let loaded = Setup::new()
        .file(".env", "TRIBUTARY_LAYER=gold\nTRIBUTARY_CATALOGUE=usual\n")
        .file("conf/dev.env", "TRIBUTARY_LAYER=silver\n")
        .arguments(&["--env_file=conf/dev.env"])
        .load();
    assert_eq!(loaded.settings.layer.word(), "silver");
    assert_eq!(loaded.origin("layer"), Origin::Dotenv { file: "conf/dev.env".into(), line: 1 });
    assert_eq!(loaded.origin("catalogue"), Origin::Default);
}
