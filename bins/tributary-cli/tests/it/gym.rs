//! The gym pipeline over sample files: every table equals, value for value, what the records tell, however the files arrive.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use chrono::NaiveDate;
use serde_json::Value;
use tributary::{Lake, OpenOptions};
use tributary_cli::demo::demo_gym;
use tributary_cli::gym::{Compared, Gym, GymOptions, age_group, compare};

use crate::commands::Shop;

/// Sample files beside a bundle of the template, run as of a day.
struct Club {
    shop: Shop,
    gym: Gym,
    as_of: NaiveDate,
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

impl Club {
    fn new(files: u32) -> Self {
        let shop = Shop::new();
        assert!(shop.says(0, &["init", "club", "--template", "gym"]).contains("data: tributary sample gym club/data/raw\n"));
        let gym = Gym::of(GymOptions { users: 45, days: 14, heart_rate_seconds: 90, files, ..GymOptions::default() });
        gym.write_lookup(&shop.path("club/data/raw")).unwrap();
        Self { shop, gym, as_of: day("2024-01-03") }
    }

    fn raw(&self) -> std::path::PathBuf {
        self.shop.path("club/data/raw")
    }

    /// A run, by what it exits with and says.
    fn runs(&self, code: i32, more: &[&str]) -> String {
        let as_of = self.as_of.to_string();
        self.shop.says_in("club", code, &[&["run", "--pipeline", "gym", "--as-of", &as_of, "--report", "report.json"], more].concat())
    }

    fn report(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.shop.path("club/report.json")).unwrap()).unwrap()
    }

    /// Tables that the last run committed to.
    fn committed(&self) -> Vec<String> {
        let report = self.report();
        let datasets = report["datasets"].as_array().unwrap().iter().filter(|it| it["status"] == "committed");
        datasets.map(|it| it["table"].as_str().unwrap().to_owned()).collect()
    }

    fn sql(&self, query: &str) -> String {
        self.shop.says_in("club", 0, &["sql", query, "-o", "csv"])
    }

    /// Every table beside what the records tell.
    fn compared(&self) -> Vec<Compared> {
        let lake = Lake::open(self.shop.path("club/data/lake").to_str().unwrap(), OpenOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compare(&lake, &self.gym.expected(self.as_of))).unwrap()
    }

    fn equals(&self) {
        let compared = self.compared();
        assert_eq!(compared.len(), 14);
        for Compared { table, rows, differences } in compared {
            assert!(differences.is_empty() && rows > 0, "{table}, {rows} rows\n{}", differences.join("\n"));
        }
    }

    fn alter(&self, file: &str, from: &str, to: &str) {
        let path = format!("club/dlt_pipelines/gym/{file}");
        let text = fs::read_to_string(self.shop.path(&path)).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        self.shop.write(&path, &text.replace(from, to));
    }
}

#[test]
fn every_table_equals_what_the_records_tell_after_one_drain_and_after_each_replay() {
    let club = Club::new(2);
    (1..=2).for_each(|file| drop(club.gym.write_files(&club.raw(), file).unwrap()));
    club.runs(0, &[]);
    club.equals();
    assert_eq!(club.report()["as_of"], "2024-01-03T00:00:00Z");
    // times of bronze are those of the run, files those that records came from
    let nulls =
        club.sql("select count(*) as n from bronze.kafka_multiplex_bz where load_time is null or source_file is null or week_part is null");
    assert_eq!(nulls, "n\n0\n");
    let parts = club.sql("select distinct week_part from bronze.kafka_multiplex_bz order by 1");
    assert_eq!(parts, "week_part\n2023-51\n2023-52\n2023-53\n2024-01\n");
    club.runs(0, &[]);
    // ages are computed again by every run, for each may be of another day, and what reads them follows
    assert_eq!(club.committed(), ["silver.user_bins", "gold.workout_bpm_summary"]);
    club.equals();
    club.runs(0, &["--full-refresh-all"]);
    club.equals();
    // the merged tables and what is made of them are lost; bronze is read again from its first version on
    for schema in ["silver", "gold", "_state"] {
        let _ = fs::remove_dir_all(club.shop.path(&format!("club/data/lake/main/{schema}")));
    }
    club.runs(0, &["--starting-version", "0"]);
    club.equals();
}

#[test]
fn files_that_arrive_one_after_the_other_in_any_order_of_kinds_make_the_same_tables() {
    let club = Club::new(5);
    let all = tempfile::tempdir().unwrap();
    let mut drains: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for file in 1..=5 {
        for name in club.gym.write_files(all.path(), file).unwrap() {
            // workouts come before the heart rates of their time, visits after them, profiles from the last to the first
            let drain = match name.as_bytes()[0] {
                b'2' => 6 - file,
                b'3' => (file + 1) % 5 + 1,
                b'5' => (file + 3) % 5 + 1,
                _ => file,
            };
            drains.entry(drain).or_default().push(name);
        }
    }
    for names in drains.values() {
        for name in names {
            fs::copy(all.path().join(name), club.raw().join(name)).unwrap();
        }
        club.runs(0, &["--max-files-per-trigger", "2"]);
    }
    assert_eq!(drains.len(), 5);
    club.equals();
}

/// What a process may take beside its limit.
const BESIDE: u64 = 180 << 20;

#[test]
fn heart_rates_that_do_not_fit_into_memory_make_the_same_tables_within_it() {
    let mut club = Club::new(1);
    club.gym = Gym::of(GymOptions { heart_rate_seconds: 400, ..club.gym.options });
    club.gym.write_files(&club.raw(), 1).unwrap();
    club.runs(0, &["--memory-limit", "48MiB"]);
    club.equals();
    let query = "select max(peak_memory_bytes) as peak, max(rows_in) as rows from system.tributary.runs";
    let said = club.sql(query);
    let (peak, rows) = said.lines().nth(1).and_then(|line| line.split_once(',')).unwrap();
    let (peak, rows): (u64, u64) = (peak.parse().unwrap(), rows.parse().unwrap());
    // an event of a heart rate is planned with half a kilobyte
    assert!(rows * 512 > 48 << 20, "{rows} rows would fit");
    assert!(peak < (48 << 20) + BESIDE, "{} MiB", peak >> 20);
}

#[test]
fn layer_by_layer_is_the_same_as_all_at_once() {
    let club = Club::new(1);
    club.gym.write_files(&club.raw(), 1).unwrap();
    for layer in ["bronze", "silver", "gold"] {
        club.runs(0, &["--layer", layer]);
        let report = club.report();
        let tables: Vec<&str> = report["datasets"].as_array().unwrap().iter().map(|it| it["table"].as_str().unwrap()).collect();
        assert!(!tables.is_empty() && tables.iter().all(|table| table.starts_with(layer)), "--layer {layer}: {tables:?}");
    }
    club.equals();
}

/// The datasets of each layer, by name alone: as the schemas of the SQL tell them, though `--db-name` puts all into one.
#[test]
fn layers_are_those_of_the_sql_though_all_tables_are_in_one_schema() {
    let clubs: [(Club, &[&str]); 2] = [(Club::new(1), &["--db-name", "club"]), (Club::new(1), &[])];
    clubs.iter().for_each(|(club, _)| drop(club.gym.write_files(&club.raw(), 1).unwrap()));
    for layer in ["bronze", "silver", "gold"] {
        let [in_one, by_layer] = clubs.each_ref().map(|(club, more)| {
            club.runs(0, &[&["--layer", layer], *more].concat());
            let report = club.report();
            let tables = report["datasets"].as_array().unwrap().iter().map(|it| it["table"].as_str().unwrap());
            tables.map(|table| table.split_once('.').unwrap().1.to_owned()).collect::<Vec<_>>()
        });
        assert!(!in_one.is_empty() && in_one == by_layer, "--layer {layer}: {in_one:?}, {by_layer:?}");
    }
    let [(club, _), (other, _)] = &clubs;
    let rows = |schema: &str| format!("select count(*) as n, max(num_recordings) as most from {schema}.workout_bpm_summary");
    assert_eq!(club.sql(&rows("club")), other.sql(&rows("gold")));
}

#[test]
fn ages_are_those_of_the_day_that_was_asked_for_and_follow_it_without_new_files() {
    let mut club = Club::new(1);
    club.gym.write_files(&club.raw(), 1).unwrap();
    club.runs(0, &[]);
    for other in ["2034-02-28", "2024-01-03"] {
        club.as_of = day(other);
        club.runs(0, &[]);
        club.equals();
    }
    assert_ne!(age_group(day("1988-02-29"), day("2034-02-28")), age_group(day("1988-02-29"), day("2024-01-03")));
}

/// Tables that differ, with whether the number of rows does.
fn differing(club: &Club) -> Vec<String> {
    club.compared().into_iter().filter(|it| !it.differences.is_empty()).map(|it| it.table).collect()
}

#[test]
fn epochs_of_32_bits_are_noticed_though_their_days_are_right() {
    let club = Club::new(1);
    club.gym.write_files(&club.raw(), 1).unwrap();
    club.alter("workouts.sql", "value:timestamp::DOUBLE", "value:timestamp::FLOAT");
    club.alter("gym_logs.sql", "CAST(login AS TIMESTAMP)", "CAST(CAST(login AS FLOAT) AS TIMESTAMP)");
    club.runs(0, &[]);
    let tables = differing(&club);
    let told = ["gold.gym_summary", "gold.workout_bpm_summary", "silver.completed_workouts", "silver.gym_logs", "silver.workout_bpm"];
    assert!(told.iter().all(|table| tables.contains(&(*table).to_owned())), "{tables:?}");
    assert!(!tables.contains(&"silver.heart_rate".to_owned()), "{tables:?}");
}

#[test]
fn a_unit_that_is_not_the_feeds_and_a_day_that_the_lookup_lacks_stop_the_batch_and_lose_nothing() {
    let club = Club::new(1);
    club.gym.write_files(&club.raw(), 1).unwrap();
    let right = "timestamp_seconds(k.timestamp)";
    club.alter("kafka_multiplex_bz.sql", right, "timestamp_millis(k.timestamp)");
    let said = club.runs(3, &[]);
    assert!(said.contains("SM0009") && said.contains("`bronze.kafka_multiplex_bz` break `day_in_date_lookup`"), "{said}");
    club.alter("kafka_multiplex_bz.sql", "timestamp_millis(k.timestamp)", right);
    let lookup = club.raw().join("6-date-lookup.json");
    let line = r#"{"key":"MQ==","value":"{}","topic":"workout","partition":0,"offset":1,"timestamp":1800003600}"#;
    club.shop.write("club/data/raw/4-workout_2.json", line);
    club.runs(3, &[]);
    assert!(lookup.exists());
    fs::remove_file(club.raw().join("4-workout_2.json")).unwrap();
    club.shop.write(
        "club/data/raw/6-date-lookup_2.json",
        "{\"date\":\"2027-01-15\",\"week\":\"3\",\"year\":\"2027\",\"month\":\"1\",\"dayofweek\":\"6\",\"dayofmonth\":\"15\",\"dayofyear\":\"15\",\"week_part\":\"2027-03\"}\n\
         {\"date\":\"2023-12-20\",\"week\":\"1\",\"year\":\"1\",\"month\":\"1\",\"dayofweek\":\"1\",\"dayofmonth\":\"1\",\"dayofyear\":\"1\",\"week_part\":\"none\"}\n",
    );
    club.runs(0, &[]);
    let rows = club.sql("select count(*) as n from bronze.kafka_multiplex_bz where week_part = '2027-03'");
    assert_eq!(rows, "n\n1\n");
    let there = club.sql("select week_part from bronze.date_lookup where date = '2023-12-20'");
    assert_eq!(there, "week_part\n2023-51\n", "a day that is there stays as it is");
}

#[test]
fn views_of_workouts_follow_what_changed() {
    let club = Club::new(14);
    (1..14).for_each(|file| drop(club.gym.write_files(&club.raw(), file).unwrap()));
    club.runs(0, &[]);
    club.gym.write_files(&club.raw(), 14).unwrap();
    club.runs(0, &[]);
    club.equals();
    let report = club.report();
    for view in ["silver.completed_workouts", "silver.workout_bpm", "gold.workout_bpm_summary", "gold.gym_summary"] {
        let dataset = report["datasets"].as_array().unwrap().iter().find(|it| it["table"] == view).unwrap();
        assert_eq!(dataset["mode"], "incremental", "{dataset}");
    }
}

#[test]
fn the_same_options_give_the_same_files_and_none_is_written_over() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let write = |folder: &Path| Gym::of(GymOptions { users: 9, days: 3, ..GymOptions::default() }).write(folder);
    let names: Vec<Vec<String>> = folders.iter().map(|folder| write(folder.path()).unwrap()).collect();
    assert_eq!((names[0].len(), &names[0]), (11, &names[1]));
    for name in &names[0] {
        let [one, other] = [0, 1].map(|at| fs::read(folders[at].path().join(name)).unwrap());
        assert!(one == other && !one.is_empty(), "{name}");
    }
    assert!(write(folders[0].path()).is_err());
    let shop = Shop::new();
    let said = shop.says(0, &["sample", "gym", "drops", "--users", "3", "--days", "2", "--files", "1"]);
    assert!(said.contains("wrote drops/4-workout_1.json  ") && said.ends_with("--base-data-path drops --as-of 2023-12-22\n"), "{said}");
    assert!(shop.says(1, &["sample", "gym", "drops"]).contains("drops"));
}

#[tokio::test]
async fn the_demo_says_of_each_table_that_it_equals_the_records_whatever_the_seed_and_the_size() {
    let usual = GymOptions { users: 12, days: 5, heart_rate_seconds: 30, ..GymOptions::default() };
    for options in [
        usual,
        // everything on one day: profiles tie, most of them
        GymOptions { seed: 1, users: 30, days: 1, files: 1, ..usual },
        GymOptions { seed: 2, users: 1, days: 40, files: 3, ..usual },
        // over a leap day, with fewer days than files
        GymOptions { seed: 3, days: 4, files: 6, first_day: day("2024-02-27"), ..usual },
        GymOptions { seed: 4, users: 9, heart_rate_seconds: 0, ..usual },
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let code = demo_gym(options, Some(folder.path()), &mut out).await.unwrap();
        let said = String::from_utf8(out).unwrap();
        assert_eq!((code, said.matches("equals what the records tell").count()), (tributary::ExitCode::Done, 14), "{options:?}\n{said}");
    }
}

/// A bundle of the template with these files and no others, run as of 2024-01-03.
fn of_files(files: &[(&str, &str)]) -> Club {
    let shop = Shop::new();
    shop.says(0, &["init", "club", "--template", "gym"]);
    for (name, text) in files {
        shop.write(&format!("club/data/raw/{name}"), text);
    }
    Club { shop, gym: Gym::of(GymOptions::default()), as_of: day("2024-01-03") }
}

const NOVEMBER: &str = r#"{"date":"2023-11-14","week":"46","year":"2023","month":"11","dayofweek":"3","dayofmonth":"14","dayofyear":"318","week_part":"2023-46"}"#;

#[test]
fn file_05_an_epoch_in_seconds_has_its_day_and_its_week_and_a_day_that_is_looked_for_in_vain_is_told() {
    let start = r#"{"key":"YTE=","value":"{\"user_id\":5,\"workout_id\":1,\"timestamp\":1700000000.0,\"action\":\"start\",\"session_id\":1}","topic":"workout","partition":1,"offset":14,"timestamp":1700000000}"#;
    let club = of_files(&[("4-workout_1.json", start), ("6-date-lookup.json", NOVEMBER)]);
    club.runs(0, &[]);
    let rows = club.sql("select date, week_part, topic from bronze.kafka_multiplex_bz");
    assert_eq!(rows, "date,week_part,topic\n2023-11-14,2023-46,workout\n");
    let club = of_files(&[("4-workout_1.json", &start.replace("1700000000}", "1700000}")), ("6-date-lookup.json", NOVEMBER)]);
    let said = club.runs(3, &[]);
    assert!(
        said.contains("1 rows of `bronze.kafka_multiplex_bz` break `day_in_date_lookup`, the first at 4-workout_1.json line 1"),
        "{said}"
    );
}

#[test]
fn file_09_two_profiles_at_one_instant_are_one_row_and_a_delete_takes_it() {
    let told = |kind: &str, city: &str, timestamp: i64| {
        let value = serde_json::json!({"user_id": 4, "update_type": kind, "timestamp": timestamp, "address": {"city": city}});
        format!("{}\n", serde_json::json!({"value": value.to_string(), "topic": "user_info", "timestamp": timestamp}))
    };
    let two = told("new", "A", 1_700_000_000) + &told("update", "B", 1_700_000_000);
    let club = of_files(&[("2-user_info_1.json", &two), ("6-date-lookup.json", NOVEMBER)]);
    club.runs(0, &[]);
    assert_eq!(club.sql("select user_id, city from silver.user_profile"), "user_id,city\n4,B\n");
    assert_eq!(club.sql("select user_id, age from silver.user_bins"), "user_id,age\n4,\n", "nobody's age is told without a birthday");
    let next_day = NOVEMBER.replace("-14", "-15");
    club.shop.write("club/data/raw/6-date-lookup_2.json", &next_day);
    club.shop.write("club/data/raw/2-user_info_2.json", &told("delete", "", 1_700_009_000));
    club.runs(0, &[]);
    assert_eq!(club.sql("select count(*) as n from silver.user_profile"), "n\n0\n");
}

#[test]
fn the_designs_own_settings_put_every_layer_in_one_schema_and_files_in_a_volume() {
    let club = of_files(&[]);
    fs::copy(club.shop.path("club/dlt_pipelines/gym/.env.example"), club.shop.path("club/.env")).unwrap();
    let volume = club.shop.path("club/data/lake/Volumes/main/wearpipe_db/wearpipe_vol/raw");
    let gym = Gym::of(GymOptions { users: 9, days: 4, heart_rate_seconds: 20, ..GymOptions::default() });
    gym.write(&volume).unwrap();
    for layer in [&[][..], &["--layer", "silver"], &["--layer", "gold"]] {
        club.shop.says_in("club", 0, &[&["run"], layer].concat());
    }
    for (table, rows) in gym.expected(club.as_of) {
        let name = table.split_once('.').unwrap().1;
        let counted = club.sql(&format!("select count(*) as n from wearpipe_db.{name}"));
        assert_eq!(counted, format!("n\n{}\n", rows.rows.len()), "{name}");
    }
}
