//! Continuous runs of the real binary: what they keep current, what they serve, how they end.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::commands::{PIPELINE, Shop, change};
use crate::scrape::{get, samples};

/// A run that goes on, killed when the test is over.
struct Running {
    child: Child,
    lines: Receiver<Value>,
}

impl Running {
    fn start(shop: &Shop, arguments: &[&str]) -> Self {
        Self::start_with(shop, arguments, &[])
    }

    fn start_with(shop: &Shop, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
        command.arg("run").args(arguments).current_dir(shop.path("")).env_clear().envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (tell, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")));
            }
        });
        Self { child, lines }
    }

    /// The next event that is like this.
    fn event(&self, like: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let event = self.lines.recv_timeout(left).expect("the event comes within a minute");
            if like(&event) {
                return event;
            }
        }
    }

    fn committed(&self, table: &str) -> Value {
        self.event(|event| event["report"]["table"] == table && event["report"]["status"] == "committed")
    }

    fn address(&self) -> String {
        self.event(|event| event["event"] == "metrics_served")["address"].as_str().unwrap().to_owned()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// The end, which must come within this time.
    fn ends_within(&mut self, seconds: u64) -> ExitStatus {
        let until = Instant::now() + Duration::from_secs(seconds);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it goes on after {seconds} s");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processor time it has used, in clock ticks of a hundredth of a second.
    #[cfg(target_os = "linux")]
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until this is so.
fn eventually(what: &str, so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < until, "{what} within a minute");
        std::thread::sleep(Duration::from_millis(100));
    }
}

const STREAM: &[&str] = &["--stream", "--processing-time", "300ms", "--metrics-listen", "127.0.0.1:0"];

#[test]
fn a_stream_keeps_every_layer_current_says_so_and_ends_with_0_when_it_is_told_to() {
    let shop = Shop::new();
    let mut run = Running::start(&shop, STREAM);
    let address = run.address();
    run.committed("gold.by_status");
    shop.write("data/raw/orders/2.jsonl", "{\"id\":2,\"status\":\"paid\",\"seq\":2}\nno json\n");
    run.committed("gold.by_status");
    let (status, text) = get(&address, "/metrics");
    let samples = samples(&text);
    assert_eq!(status, 200);
    for (series, value) in [
        ("tributary_rows_total{dataset=\"bronze.orders\",layer=\"bronze\"}", 4.0),
        ("tributary_rows_total{dataset=\"silver.orders\",layer=\"silver\"}", 3.0),
        ("tributary_written_rows_total{dataset=\"silver.orders\",layer=\"silver\",change=\"updated\"}", 1.0),
        ("tributary_commits_total{dataset=\"bronze.orders\",layer=\"bronze\"}", 2.0),
        ("tributary_dataset_failing{dataset=\"gold.by_status\",layer=\"gold\"}", 0.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series}\n{text}");
    }
    let quarantined = samples.iter().find(|(series, _)| series.starts_with("tributary_quarantined_rows_total{dataset=\"bronze.orders\""));
    assert_eq!(quarantined.map(|(_, rows)| *rows), Some(1.0), "{text}");
    assert!(samples["process_resident_memory_bytes"] > 1e6, "{text}");
    let (status, health) = get(&address, "/health");
    let health: Value = serde_json::from_str(&health).unwrap();
    assert_eq!((status, &health["status"], health["datasets"].as_array().unwrap().len()), (200, &Value::from("ok"), 3), "{health}");
    assert_eq!(get(&address, "/").0, 404);

    run.signal("TERM");
    assert_eq!(run.ends_within(10).code(), Some(0));
    let last = run.event(|event| event["event"] == "run_finished");
    assert_eq!((&last["exit_code"], &last["cancelled"]), (&Value::from(0), &Value::from(false)));
    assert_eq!(
        shop.says(0, &["sql", "select status, orders from gold.by_status order by status", "-o", "csv"]),
        "status,orders\nnew,1\npaid,1\n"
    );
    assert!(shop.says(0, &["run", "--log-format", "text"]).ends_with("nothing new in 3 datasets\n"));
    let runs = shop.json(&["show", "runs", "-o", "json"]);
    assert_eq!(runs.len(), 3, "a dataset has one row a minute at most, with the sums: {runs:?}");
    let bronze = runs.iter().find(|run| run["table"] == "bronze.orders").unwrap();
    assert_eq!((&bronze["rows_in"], &bronze["rows_quarantined"]), (&Value::from(4), &Value::from(1)));
}

#[test]
fn layers_in_processes_of_their_own_follow_each_other() {
    let shop = Shop::new();
    let stream = |layer: &'static str| Running::start(&shop, &["--stream", "--processing-time", "300ms", "--layer", layer]);
    let (mut gold, mut silver) = (stream("gold"), stream("silver"));
    let mut bronze = stream("bronze");
    gold.committed("gold.by_status");
    shop.write("data/raw/orders/2.jsonl", "{\"id\":9,\"status\":\"paid\",\"seq\":2}\n");
    let report = gold.committed("gold.by_status");
    let said = ["mode", "rows_inserted", "rows_deleted", "rows_out"].map(|field| report["report"][field].clone());
    assert_eq!(said, [Value::from("incremental"), 1.into(), 0.into(), 1.into()], "{report}");
    for run in [&mut bronze, &mut silver, &mut gold] {
        run.signal("INT");
        assert_eq!(run.ends_within(10).code(), Some(0));
    }
}

/// B5
#[cfg(target_os = "linux")]
#[test]
fn an_idle_stream_writes_nothing_and_costs_next_to_nothing() {
    let shop = Shop::new();
    let run = Running::start(&shop, &["--stream", "--processing-time", "1"]);
    run.committed("gold.by_status");
    std::thread::sleep(Duration::from_secs(2));
    let (versions, ticks) = (shop.versions(), run.ticks());
    std::thread::sleep(Duration::from_secs(5));
    let used = run.ticks() - ticks;
    assert_eq!(shop.versions(), versions);
    // a tenth of a processor, in a build without optimisations and with other tests beside it
    assert!(used <= 50, "{used} hundredths of a second in 5 seconds");
}

#[test]
fn what_a_person_must_mend_stops_alone_with_what_reads_it_and_is_said_at_the_end() {
    let shop = Shop::new();
    let broken =
        PIPELINE.replace("bronze.orders", "bronze.returns").replace("shop_orders", "shop_returns").replace("path: orders", "path: nowhere");
    let broken = broken.replace("silver.orders", "silver.returns").replace("gold.by_status", "gold.returned").replace("name: shop\n", "");
    shop.write("broken.yml", &broken);
    let mut arguments = vec!["-p", "pipeline.yml", "-p", "broken.yml"];
    arguments.extend(STREAM);
    let mut run = Running::start(&shop, &arguments);
    let address = run.address();
    run.committed("gold.by_status");
    eventually("health is bad", || get(&address, "/health").0 == 503);
    let health: Value = serde_json::from_str(&get(&address, "/health").1).unwrap();
    let state = |table: &str| {
        let datasets = health["datasets"].as_array().unwrap();
        datasets.iter().find(|dataset| dataset["dataset"] == table).unwrap()["state"].as_str().unwrap().to_owned()
    };
    assert_eq!([state("bronze.returns"), state("silver.returns"), state("gold.returned")], ["stopped"; 3]);
    assert_eq!([state("bronze.orders"), state("silver.orders"), state("gold.by_status")], ["ok"; 3]);
    shop.write("data/raw/orders/2.jsonl", "{\"id\":9,\"status\":\"paid\",\"seq\":2}\n");
    run.committed("gold.by_status");
    run.signal("TERM");
    assert_eq!(run.ends_within(10).code(), Some(2));
}

#[test]
fn a_stream_of_which_nothing_can_go_on_ends_by_itself() {
    let shop = Shop::new();
    shop.write("pipeline.yml", &PIPELINE.replace("path: orders", "path: nowhere"));
    let mut run = Running::start(&shop, &["--stream", "--report", "report.json"]);
    assert_eq!(run.ends_within(30).code(), Some(2));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(shop.path("report.json")).unwrap()).unwrap();
    let statuses: Vec<&str> = report["datasets"].as_array().unwrap().iter().map(|dataset| dataset["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["failed", "skipped", "skipped"]);
}

#[test]
fn an_address_that_is_taken_is_said_before_anything_runs() {
    let shop = Shop::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let said = shop.says(2, &["run", "--stream", "--metrics-listen", &taken.local_addr().unwrap().to_string()]);
    assert!(said.contains("CL0013"), "{said}");
}

#[test]
fn lag_is_told_in_the_time_of_the_source_also_of_what_was_there_before() {
    let shop = Shop::of_changes();
    let run = Running::start(&shop, STREAM);
    let address = run.address();
    let lags = || {
        let samples = samples(&get(&address, "/metrics").1);
        let of =
            |table: &str, layer: &str| samples.get(&format!("tributary_lag_seconds{{dataset=\"{table}\",layer=\"{layer}\"}}")).copied();
        [of("silver.orders", "silver"), of("gold.orders", "gold")]
    };
    eventually("what was there before is known", || lags() == [Some(0.0), Some(0.0)]);
    shop.write("data/raw/changes/2.jsonl", &change(1, 2, 1_700_000_090));
    run.committed("gold.orders");
    eventually("nothing is behind", || lags() == [Some(0.0), Some(0.0)]);
    let samples = samples(&get(&address, "/metrics").1);
    assert_eq!(samples["tributary_source_time_seconds{dataset=\"bronze.orders\",layer=\"bronze\"}"], 1_700_000_090.0);
}

/// A library that makes every commit of a process slow: the link that puts a log entry in place waits.
fn slow_commits(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("slow.c"), folder.join("slow.so"));
    let text = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void slow(const char *to) {
    const char *marker = getenv("SLOW_MARKER"), *seconds = getenv("SLOW_SECONDS"), *path = getenv("SLOW_PATH");
    if (!marker || !seconds || !path || !strstr(to, path)) return;
    close(open(marker, O_CREAT | O_WRONLY, 0644));
    sleep(atoi(seconds));
}
int link(const char *from, const char *to) {
    slow(to);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link"))(from, to);
}
int linkat(int f, const char *from, int t, const char *to, int flags) {
    slow(to);
    return ((int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat"))(f, from, t, to, flags);
}
"#;
    std::fs::write(&source, text).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status().unwrap();
    assert!(built.success(), "the C compiler that the build needs too");
    library
}

/// A run whose commits to one table take this long, and the file that is there once one has begun.
fn with_slow_commits(shop: &Shop, arguments: &[&str], table: &str, seconds: &str) -> (Running, PathBuf) {
    let library = slow_commits(&shop.path(""));
    let marker = shop.path("slow.marker");
    let environment = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("SLOW_MARKER", marker.to_str().unwrap()),
        ("SLOW_SECONDS", seconds),
        ("SLOW_PATH", &format!("{table}/_delta_log")),
    ];
    (Running::start_with(shop, arguments, &environment), marker)
}

/// A run in the middle of its commit to bronze.
fn in_the_middle_of_a_slow_commit(shop: &Shop, arguments: &[&str], seconds: &str) -> Running {
    shop.says(0, &["setup"]);
    let (run, marker) = with_slow_commits(shop, arguments, "bronze/orders", seconds);
    eventually("a commit begins", || marker.exists());
    run
}

#[cfg(target_os = "linux")]
#[test]
fn a_layer_that_does_not_keep_up_says_by_how_much() {
    let shop = Shop::of_changes();
    let mut arguments = vec!["--layer", "gold"];
    arguments.extend(STREAM);
    let (gold, _) = with_slow_commits(&shop, &arguments, "gold/orders", "5");
    let address = gold.address();
    let lag = || samples(&get(&address, "/metrics").1).get("tributary_lag_seconds{dataset=\"gold.orders\",layer=\"gold\"}").copied();
    eventually("the view is up to date", || lag() == Some(0.0));
    shop.write("data/raw/changes/2.jsonl", &change(1, 2, 1_700_000_090));
    shop.says(0, &["run", "--layer", "bronze"]);
    shop.says(0, &["run", "--layer", "silver"]);
    eventually("the view is behind", || lag() == Some(90.0));
    eventually("the view is up to date again", || lag() == Some(0.0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_stream_told_to_end_in_the_middle_of_a_slow_commit_finishes_it() {
    let shop = Shop::new();
    let mut run = in_the_middle_of_a_slow_commit(&shop, &["--stream", "--processing-time", "300ms"], "4");
    run.signal("TERM");
    assert_eq!(run.ends_within(10).code(), Some(0));
    assert_eq!(shop.says(0, &["sql", "select count(*) as n from bronze.orders", "-o", "csv"]), "n\n2\n");
    let events = shop.json(&["run"]);
    let bronze = events.iter().find(|event| event["report"]["table"] == "bronze.orders").unwrap();
    assert_eq!(bronze["report"]["status"], "nothing_new", "what was read was committed");
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_signal_ends_the_process_at_once_and_the_next_run_does_what_is_left() {
    let shop = Shop::new();
    let mut run = in_the_middle_of_a_slow_commit(&shop, &["--stream", "--processing-time", "300ms"], "30");
    run.signal("TERM");
    std::thread::sleep(Duration::from_millis(500));
    assert!(run.child.try_wait().unwrap().is_none(), "the first signal waits for the commit");
    run.signal("TERM");
    assert_eq!(run.ends_within(2).code(), Some(1));
    shop.says(0, &["run"]);
    assert_eq!(shop.says(0, &["sql", "select count(*) as n from bronze.orders", "-o", "csv"]), "n\n2\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_drain_told_to_end_commits_what_it_read_and_says_that_part_of_the_work_is_left() {
    let shop = Shop::new();
    let mut run = in_the_middle_of_a_slow_commit(&shop, &["--report", "report.json"], "3");
    run.signal("INT");
    assert_eq!(run.ends_within(10).code(), Some(4));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(shop.path("report.json")).unwrap()).unwrap();
    assert_eq!((&report["cancelled"], &report["datasets"][0]["status"]), (&Value::from(true), &Value::from("committed")), "{report}");
    shop.says(0, &["run"]);
    assert_eq!(shop.says(0, &["sql", "select orders from gold.by_status", "-o", "csv"]), "orders\n2\n");
}
