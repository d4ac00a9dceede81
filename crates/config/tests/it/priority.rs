//! Which source wins, and what each of them may say.

use std::time::Duration;

use proptest::prelude::*;
use tributary_config::{Kind, Origin, Program, REGISTRY, Reach, Setting, Warning};

use crate::setup::Setup;

/// A text that fits the setting, different for each of the sources 0 (command line) to 3 (file).
fn fitting(kind: Kind, source: usize) -> String {
    match kind {
        Kind::Text | Kind::Name | Kind::Path | Kind::Location => format!("value{source}"),
        Kind::Count { .. } => (40 + source).to_string(),
        Kind::Size => format!("{}MiB", 100 + source),
        Kind::Duration => format!("{}s", 61 + source),
        Kind::Instant => format!("2024-05-0{}", source + 1),
        Kind::Switch => source.is_multiple_of(2).to_string(),
        Kind::Choice(words) => words[source % words.len()].to_owned(),
        Kind::Listen => format!("127.0.0.1:{}", 9000 + source),
        Kind::Property => format!("name=value{source}"),
        Kind::Offset => format!("orders:0={source}"),
        Kind::List(of) => fitting(*of, source),
    }
}

fn toml(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Count { .. } | Kind::Switch => text.to_owned(),
        Kind::List(_) => format!("[\"{text}\"]"),
        _ => format!("\"{text}\""),
    }
}

fn everywhere() -> Vec<&'static Setting> {
    let takes_any_value = |setting: &&Setting| setting.reach == Reach::Everywhere && setting.name != "target";
    REGISTRY.iter().filter(takes_any_value).collect()
}

proptest! {
    #[test]
    fn of_the_sources_that_give_a_setting_the_first_wins_for_every_setting(
        setting in prop::sample::select(everywhere()),
        given in prop::array::uniform4(any::<bool>()),
    ) {
        let program = setting.programs[0];
        let text = |source| fitting(setting.kind, source);
        let mut setup = Setup::new().program(program);
        if given[0] {
            setup = setup.arguments(&[&format!("--{}={}", setting.flag(), text(0))]);
        }
        if given[1] {
            setup = setup.environment(&setting.variable(), &text(1));
        }
        if given[2] {
            setup = setup.file(".env", &format!("{}={}\n", setting.variable(), text(2)));
        }
        if given[3] {
            setup = setup.file("tributary.toml", &format!("{} = {}\n", setting.name, toml(setting.kind, &text(3))));
        }
        let loaded = setup.load();
        let winner = given.iter().position(|given| *given);
        let expected = match winner {
            Some(0) => Origin::CommandLine,
            Some(1) => Origin::Environment { variable: setting.variable() },
            Some(2) => Origin::Dotenv { file: ".env".into(), line: 1 },
            Some(_) => Origin::File { file: "tributary.toml".into(), line: 1, target: None },
            None => Origin::Default,
        };
        prop_assert_eq!(loaded.origin(setting.name), expected);
        if let Some(winner) = winner {
            let shown = loaded.print_config();
            let line = shown.lines().find(|line| line.starts_with(&format!("{} = ", setting.name))).unwrap_or("no line");
            if setting.secret {
                prop_assert!(!shown.contains(&text(winner)) && shown.contains(&format!("# {} = \"***\"", setting.name)), "{}", shown);
                return Ok(());
            }
            let unit_free = text(winner).trim_end_matches("MiB").trim_end_matches('s').to_owned();
            prop_assert!(line.contains(&unit_free), "{}", line);
        }
    }
}

#[test]
fn a_target_stands_above_the_rest_of_the_file_and_below_every_variable() {
    let file =
        "target = \"dev\"\nwarehouse = \"a\"\ncatalogue = \"a\"\n[targets.dev]\nwarehouse = \"b\"\n[targets.prod]\nwarehouse = \"c\"\n";
    let setup = Setup::new().file("tributary.toml", file);
    let loaded = setup.load();
    assert_eq!(loaded.settings.warehouse.as_str(), "b");
    assert_eq!(loaded.origin("warehouse"), Origin::File { file: "tributary.toml".into(), line: 5, target: Some("dev".into()) });
    assert_eq!(loaded.settings.catalogue.as_str(), "a");
    let setup = setup.arguments(&["--target", "prod"]);
    assert_eq!(setup.load().settings.warehouse.as_str(), "c");
    let setup = setup.environment("TRIBUTARY_WAREHOUSE", "d");
    assert_eq!(setup.load().settings.warehouse.as_str(), "d");
}

#[test]
fn an_empty_variable_counts_as_not_set_and_says_so_unless_the_setting_is_a_text() {
    let loaded = Setup::new()
        .environment("TRIBUTARY_PROCESSING_TIME", "")
        .environment("TRIBUTARY_DB_NAME", "")
        .file(".env", "TRIBUTARY_MEMORY_LIMIT=\nTRIBUTARY_DB_NAME=below\nTRIBUTARY_PROCESSING_TIME=7\n")
        .load();
    assert_eq!(loaded.settings.processing_time, Duration::from_secs(7), "the next source is asked");
    assert_eq!(loaded.settings.db_name, None, "the empty text takes the lower value back");
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "TRIBUTARY_PROCESSING_TIME (environment TRIBUTARY_PROCESSING_TIME) is empty and counts as not set",
            "TRIBUTARY_MEMORY_LIMIT (.env line 1) is empty and counts as not set"
        ]
    );
}

#[test]
fn a_bare_number_is_seconds_wherever_it_stands() {
    for setup in [
        Setup::new().arguments(&["--processing_time", "30"]),
        Setup::new().environment("TRIBUTARY_PROCESSING_TIME", "30"),
        Setup::new().file(".env", "TRIBUTARY_PROCESSING_TIME=30"),
        Setup::new().file("tributary.toml", "processing-time = 30"),
        Setup::new().arguments(&["--processing-time", "30 seconds"]),
    ] {
        assert_eq!(setup.load().settings.processing_time, Duration::from_secs(30));
    }
}

#[test]
fn catalog_is_another_name_of_catalogue() {
    assert_eq!(Setup::new().arguments(&["--catalog", "dev"]).load().settings.catalogue.as_str(), "dev");
}

#[test]
fn lists_come_from_repeated_flags_commas_and_arrays() {
    let only = |setup: Setup| setup.load().settings.only;
    assert_eq!(only(Setup::new().arguments(&["--only", "a,b", "--only", "c"])), ["a", "b", "c"]);
    assert_eq!(only(Setup::new().environment("TRIBUTARY_ONLY", "a, b")), ["a", "b"]);
    assert_eq!(only(Setup::new().file("tributary.toml", "only = [\"a\", \"b\"]")), ["a", "b"]);
    let pipeline = Setup::new().arguments(&["-p", "a,b.yml", "-p", "c.yml"]).load().settings.pipeline;
    assert_eq!(pipeline, [std::path::PathBuf::from("a,b.yml"), "c.yml".into()]);
}

#[test]
fn files_may_carry_settings_that_only_other_programs_use() {
    let loaded = Setup::new().program(Program::Gold).file(".env", "TRIBUTARY_ON_GAP=latest\n").load();
    assert!(!loaded.print_config().contains("on_gap"));
}

#[test]
fn other_programs_lines_in_a_dotenv_file_serve_references_only() {
    let loaded = Setup::new().file(".env", "PROJECT=shop\nTRIBUTARY_DB_NAME=${PROJECT}_dev\n").load();
    assert_eq!(loaded.settings.db_name.unwrap().as_str(), "shop_dev");
}

#[test]
fn the_environment_stands_above_the_file_in_references_too() {
    let setup = Setup::new().environment("PROJECT", "outer").file(".env", "PROJECT=shop\nTRIBUTARY_DB_NAME=${PROJECT}_dev\n");
    assert_eq!(setup.load().settings.db_name.unwrap().as_str(), "outer_dev");
}

#[test]
fn a_volume_takes_relative_data_paths_under_the_warehouse() {
    let root = |arguments: &[&str]| Setup::new().arguments(arguments).load().settings.data_root().as_str().to_owned();
    assert_eq!(root(&[]), "data/raw");
    assert_eq!(root(&["--volume", "land", "--base-data-path", "raw"]), "data/lake/Volumes/main/bronze/land/raw");
    assert_eq!(root(&["--volume=land", "--db-name=gym", "-w", "s3://b"]), "s3://b/Volumes/main/gym/land/data/raw");
    assert_eq!(root(&["--volume=land", "--base-data-path=/drop"]), "/drop");
    assert_eq!(root(&["--volume=land", "--base-data-path=s3://b/drop"]), "s3://b/drop");
}

#[test]
fn a_checkpoint_path_is_accepted_with_a_word_and_a_name_given_twice_too() {
    let loaded = Setup::new().file(".env", "TRIBUTARY_BASE_CHECKPOINT_PATH=a\nTRIBUTARY_BASE_CHECKPOINT_PATH=b\n").load();
    assert_eq!(
        loaded.warnings,
        [
            Warning::GivenTwice { variable: "TRIBUTARY_BASE_CHECKPOINT_PATH".into(), file: ".env".into(), holds: 2, earlier: 1 },
            Warning::NoCheckpoints
        ]
    );
}

#[test]
fn the_wearable_design_s_command_line_runs() {
    let arguments = [
        "--catalogue=dev",
        "--layer=all",
        "--base-checkpoint-path=chkpnt",
        "--volume=wearpipe_vol",
        "--base-data-path=raw",
        "--db-name=wearpipe_db",
        "--max-files-per-trigger=1000",
        "--stream",
        "--processing-time",
        "30 seconds",
        "--starting_version=0",
    ];
    let settings = Setup::new().arguments(&arguments).load().settings;
    assert!(settings.stream);
    assert_eq!(settings.data_root().as_str(), "data/lake/Volumes/dev/wearpipe_db/wearpipe_vol/raw");
}

#[test]
fn a_standards_variable_gives_a_setting_where_ours_does_not() {
    let loaded = |variables: &[(&str, &str)]| {
        let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let inputs = tributary_config::Inputs { environment, ..tributary_config::Inputs::default() };
        let command = clap::Command::new("run").args(tributary_config::arguments(tributary_config::Program::Run));
        let matches = command.try_get_matches_from(["run"]).unwrap();
        tributary_config::load(tributary_config::Program::Run, &matches, &inputs).unwrap()
    };
    let standard = ("OPENLINEAGE_URL", "http://marquez:5000");
    let of = |variables: &[(&str, &str)]| loaded(variables).settings.openlineage_url.map(|url| url.as_str().to_owned());
    assert_eq!(of(&[standard]).as_deref(), Some("http://marquez:5000"));
    assert_eq!(of(&[standard, ("TRIBUTARY_OPENLINEAGE_URL", "http://ours:1")]).as_deref(), Some("http://ours:1"));
    assert_eq!(of(&[("OPENLINEAGE_URL", " ")]), None);
}

#[test]
fn who_started_the_program_is_who_its_environment_says_else_who_it_runs_as() {
    let user = |variables: &[(&str, &str)], login: Option<&str>| {
        let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let login = login.map(str::to_owned);
        tributary_config::Inputs { environment, login, ..tributary_config::Inputs::default() }.user().map(str::to_owned)
    };
    assert_eq!(user(&[("LOGNAME", "bob"), ("USER", "ann")], Some("1001")).as_deref(), Some("ann"));
    assert_eq!(user(&[("USER", ""), ("LOGNAME", "bob")], Some("1001")).as_deref(), Some("bob"));
    assert_eq!(user(&[], Some("1001")).as_deref(), Some("1001"));
    assert_eq!(user(&[], None), None);
}
