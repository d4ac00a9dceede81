//! `plan`, `run --plan`, `graph` and `show lineage` as a shell sees them, and where OpenLineage events go.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::commands::{PIPELINE, Shop};

/// Takes every right to write away from a folder and all in it, or gives it back.
fn protect(folder: &Path, writable: bool) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            protect(&path, writable);
        } else {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(if writable { 0o644 } else { 0o444 })).unwrap();
        }
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(if writable { 0o755 } else { 0o555 })).unwrap();
}

/// Every file below a folder with its size and time of change.
fn contents(folder: &Path) -> Vec<(String, u64, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, meta) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
        found.push((path.display().to_string(), meta.len(), meta.modified().unwrap()));
        if path.is_dir() {
            found.extend(contents(&path));
        }
    }
    found.sort();
    found
}

#[test]
fn a_plan_of_a_lake_that_is_not_there_makes_nothing_and_one_of_a_read_only_lake_changes_nothing() {
    let shop = Shop::new();
    let said = shop.says(0, &["plan"]);
    assert!(said.contains("gold.by_status") && said.contains("3 created"), "{said}");
    assert!(!shop.path("data/lake").exists());

    shop.says(0, &["run"]);
    shop.write("data/raw/orders/2.jsonl", "{\"id\":2,\"status\":\"paid\",\"seq\":2}\n");
    let lake = shop.path("data/lake");
    protect(&lake, false);
    let before = contents(&lake);
    let said = shop.says(0, &["plan", "--out", "plan.json"]);
    shop.says(0, &["graph", "--out", "graph.html"]);
    shop.says(0, &["graph", "--format", "dot"]);
    let unchanged = contents(&lake) == before;
    protect(&lake, true);
    assert!(unchanged && said.contains("takes up: 1 new file"), "{said}");
    assert!(std::fs::read_to_string(shop.path("graph.html")).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn a_run_of_a_plan_does_it_once_and_is_refused_when_things_have_moved() {
    let shop = Shop::new();
    shop.says(0, &["plan", "--only", "bronze.orders", "--out", "plan.json"]);
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(shop.path("plan.json")).unwrap()).unwrap();
    assert_eq!((plan["only"][0].as_str(), plan["datasets"].as_array().unwrap().len()), (Some("bronze.orders"), 1));
    shop.says(0, &["run", "--plan", "plan.json"]);
    assert_eq!(shop.versions().iter().map(|(table, _)| table.as_str()).collect::<Vec<_>>(), ["bronze.orders"]);
    let refused = shop.says(2, &["run", "--plan", "plan.json"]);
    assert!(refused.contains("TR0020") && refused.contains("main.bronze.orders"), "{refused}");

    shop.says(0, &["plan", "--out", "plan.json"]);
    shop.write("pipeline.yml", &PIPELINE.replace("keys: [id]", "keys: [id, status]"));
    let refused = shop.says(2, &["run", "--plan", "plan.json"]);
    assert!(refused.contains("the definition of silver.orders changed"), "{refused}");
    assert_eq!(shop.versions().len(), 1, "nothing was written");
    shop.write("plan.json", "no plan");
    assert!(shop.says(2, &["run", "--plan", "plan.json"]).contains("CL0030"));
    assert!(shop.says(2, &["run", "--plan", "plan.json", "--stream"]).contains("CL003"));
}

#[test]
fn a_plan_has_a_form_for_people_one_for_programs_and_one_for_spreadsheets() {
    let shop = Shop::new();
    let json: Value = serde_json::from_str(&shop.says(0, &["plan", "-o", "json"])).unwrap();
    assert_eq!(json["datasets"][0]["work"], "takes_up");
    assert_eq!(json["datasets"][0]["inputs"][0]["files"], 1);
    let csv = shop.says(0, &["plan", "-o", "csv"]);
    assert!(csv.starts_with("table,layer,version,work,") && csv.lines().count() == 4, "{csv}");
    shop.says(0, &["run"]);
    shop.write("pipeline.yml", &PIPELINE.replace("sequence_by: [seq]", "sequence_by: [seq]\n    policy: insert_only"));
    assert!(shop.says(2, &["plan"]).contains("stops: its table was made with"), "a person must change something");
}

#[test]
fn lineage_that_runs_have_kept_is_shown_by_table_and_by_column() {
    let shop = Shop::new();
    shop.says(0, &["setup"]);
    let nothing = shop.says(0, &["show", "lineage", "-o", "csv"]);
    assert!(nothing.starts_with("target") && nothing.lines().count() == 1, "{nothing}");
    shop.says(0, &["run"]);
    let tables = shop.json(&["show", "lineage", "-o", "json"]);
    let pairs: Vec<String> =
        tables.iter().map(|row| format!("{} <- {}", row["target"].as_str().unwrap(), row["source"].as_str().unwrap())).collect();
    assert_eq!(
        pairs,
        ["main.bronze.orders <- orders", "main.gold.by_status <- main.silver.orders", "main.silver.orders <- main.bronze.orders"]
    );
    let columns = shop.json(&["show", "lineage", "gold.by_status", "-o", "json"]);
    assert_eq!(columns.len(), 1);
    assert_eq!((columns[0]["column"].as_str(), columns[0]["source_column"].as_str()), (Some("status"), Some("status")));
    for unknown in ["gold.by_statu", "GOLD.by_stat", "main.gold.by_statu"] {
        let said = shop.says(2, &["show", "lineage", unknown]);
        assert!(said.contains("SQ0003") && said.contains(unknown) && said.contains("gold.by_status"), "{said}");
    }
    shop.says(2, &["show", "lineage", "gold.nope"]);
    // what was written is told of a table that is gone, and one without lineage is no mistake
    shop.says(0, &["show", "lineage", "bronze.orders"]);
    std::fs::remove_dir_all(shop.path("data/lake/main/gold/by_status")).unwrap();
    assert_eq!(shop.json(&["show", "lineage", "gold.by_status", "-o", "json"]).len(), 1);
}

#[test]
fn a_graph_is_refused_a_file_of_no_form_by_name_before_anything_is_read() {
    let shop = Shop::new();
    let said = shop.says(2, &["graph", "--out", "graph.png"]);
    assert!(said.contains("CL0046") && said.contains("graph.png") && said.contains(".txt, .dot, .mmd or .html"), "{said}");
    assert!(!shop.path("graph.png").exists());
    for name in ["graph.txt", "graph.dot", "graph.mmd", "graph.html", "graph"] {
        shop.says(0, &["graph", "--out", name]);
    }
    shop.says(0, &["graph", "--out", "graph.png", "--format", "dot"]);
}

/// A server that takes requests one after the other.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Accepts,
    Fails,
    Hangs,
}

impl Server {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let taken = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if manner == Manner::Hangs {
                    open.push(stream);
                    continue;
                }
                let taken = Arc::clone(&taken);
                std::thread::spawn(move || {
                    while let Some((head, body)) = request(&mut stream) {
                        taken.lock().unwrap().push((head, serde_json::from_slice(&body).unwrap()));
                        let status = if manner == Manner::Accepts { "201 Created" } else { "500 Internal Server Error" };
                        if write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }
}

/// Head and body of the next request.
fn request(stream: &mut std::net::TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_string();
            let length =
                head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                return Some((head, bytes[end + 4..end + 4 + length].to_vec()));
            }
        }
        match stream.read(&mut part) {
            Ok(read) if read > 0 => bytes.extend_from_slice(&part[..read]),
            _ => return None,
        }
    }
}

#[test]
fn events_go_to_a_server_and_to_a_file_in_the_order_of_the_run() {
    let (shop, server) = (Shop::new(), Server::start(Manner::Accepts));
    let arguments =
        ["run", "--openlineage-url", &server.address, "--openlineage-file", "out/lineage.jsonl", "--openlineage-api-key", "s3cret"];
    let said = shop.says(0, &arguments);
    assert!(!said.contains("OpenLineage"), "{said}");
    let requests = server.requests.lock().unwrap().clone();
    let kinds: Vec<String> = requests
        .iter()
        .map(|(_, event)| format!("{} {}", event["eventType"].as_str().unwrap(), event["job"]["name"].as_str().unwrap()))
        .collect();
    let expected =
        ["bronze.orders", "silver.orders", "gold.by_status"].map(|table| [format!("START shop.{table}"), format!("COMPLETE shop.{table}")]);
    assert_eq!(kinds, expected.concat());
    let head = &requests[0].0;
    assert!(head.starts_with("POST /api/v1/lineage HTTP/1.1") && head.to_lowercase().contains("authorization: bearer s3cret"), "{head}");
    let file = std::fs::read_to_string(shop.path("out/lineage.jsonl")).unwrap();
    let lines: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, requests.into_iter().map(|(_, event)| event).collect::<Vec<_>>());
}

#[test]
fn a_server_that_fails_hangs_or_is_not_there_is_warned_of_once_and_fails_no_run() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let (failing, hanging) = (Server::start(Manner::Fails), Server::start(Manner::Hangs));
    for (address, why) in
        [(failing.address.as_str(), "it answered 500"), (&hanging.address, "OpenLineage"), (&nobody, "it cannot be reached")]
    {
        let (shop, began) = (Shop::new(), Instant::now());
        let said = shop.says(0, &["run", "--openlineage-url", address]);
        assert!(said.contains(why), "{said}");
        assert_eq!(said.matches("OpenLineage events are not delivered").count(), 1, "{said}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(shop.versions().len(), 3);
    }
    assert!(Shop::new().says(2, &["run", "--openlineage-url", "marquez"]).contains("CL0032"));
}

#[test]
fn a_file_of_events_that_cannot_be_opened_is_warned_of_once_and_fails_no_run() {
    for file in ["/proc/nope/lineage.jsonl", "."] {
        let shop = Shop::new();
        let said = shop.says(0, &["run", "--openlineage-file", file]);
        assert_eq!(said.matches("OpenLineage events cannot be written; the run goes on").count(), 1, "{said}");
        assert_eq!(shop.versions().len(), 3);
    }
}
