//! The generated faces are the registry's: page, examples, help, `--print-config`.

use tributary_config::{Origin, REGISTRY, Reach, env_example, settings_page, toml_example};

use crate::golden;
use crate::setup::Setup;

#[test]
fn the_reference_page_is_what_the_registry_says() {
    golden::assert_same("../../docs/reference/settings.md", &settings_page());
}

#[test]
fn the_example_files_are_what_the_registry_says() {
    golden::assert_same("../../tributary.example.toml", &toml_example());
    golden::assert_same("../../.env.example", &env_example());
}

/// The example with its values switched on.
fn switched_on(example: &str) -> String {
    let on = |line: &str| match line.strip_prefix('#') {
        Some(value) if value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[') => value.to_owned(),
        _ => line.to_owned(),
    };
    example.lines().map(|line| on(line) + "\n").collect()
}

#[test]
fn the_example_settings_file_is_accepted_with_every_line_switched_on() {
    let file = switched_on(&toml_example());
    let loaded = Setup::new().file("tributary.toml", &file).load();
    for setting in REGISTRY.iter().filter(|setting| setting.reach == Reach::Everywhere) {
        assert!(matches!(loaded.origin(setting.name), Origin::File { .. }), "{}", setting.name);
    }
}

#[test]
fn the_example_of_variables_is_accepted_with_every_line_switched_on() {
    let variables = switched_on(&env_example());
    let files = ("conf/tributary.toml", "[targets.dev]\n");
    let loaded = Setup::new().file(".env", &variables).file(files.0, files.1).load();
    for setting in REGISTRY.iter().filter(|setting| matches!(setting.reach, Reach::Everywhere | Reach::BeforeFile)) {
        assert!(matches!(loaded.origin(setting.name), Origin::Dotenv { .. }), "{}", setting.name);
    }
}

#[test]
fn the_examples_as_they_stand_change_nothing() {
    let loaded = Setup::new().file(".env", &env_example()).file("tributary.toml", &toml_example()).load();
    assert!(REGISTRY.iter().all(|setting| loaded.origin(setting.name) == Origin::Default));
}

#[test]
fn what_print_config_prints_is_a_settings_file_with_the_same_values() {
    let first = Setup::new().arguments(&["--db-name", "shop", "--processing-time", "2m", "--only=a,b", "--as-of=2024-05-01"]).load();
    let second = Setup::new().file("tributary.toml", &first.print_config()).load();
    assert_eq!(second.settings, first.settings);
}
