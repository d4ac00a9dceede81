//! Files that are made to hurt: refused, quickly and with little memory.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::folder::Folder;

/// The faults of a bundle, which end whatever is in it.
fn refused(folder: &Folder) -> Vec<String> {
    folder.faults(&folder.load(None))
}

fn root(text: impl AsRef<[u8]>) -> Vec<String> {
    let folder = Folder::with(&[]);
    folder.write("databricks.yml", text);
    refused(&folder)
}

fn has(faults: &[String], part: &str) -> bool {
    faults.iter().any(|fault| fault.contains(part))
}

#[test]
fn aliases_of_aliases_are_refused() {
    let mut text = "x0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        writeln!(text, "x{level}: &a{level} [{}]", [before.as_str(); 10].join(", ")).unwrap();
    }
    assert!(has(&root(&text), "more than 200000 values"));
    let long = format!("x0: &a {}\nx1: [{}]\n", "y".repeat(1_000_000), ["*a"; 1000].join(", "));
    assert!(has(&root(&long), "stand for more than 16777216 bytes"));
    assert!(has(&root("x0: &a [*a]"), "inside what it stands for"));
}

#[test]
fn references_of_references_are_refused() {
    let mut text = "bundle: {name: t}\nvariables:\n  v0: {default: xxxxxxxxxx}\n".to_owned();
    for level in 1..11 {
        let before = format!("${{var.v{}}}", level - 1);
        writeln!(text, "  v{level}: {{default: \"{}\"}}", before.repeat(10)).unwrap();
    }
    assert!(has(&root(&text), "more than 1048576 bytes"));
    let mut deep = "bundle: {name: t}\nvariables:\n  v0: {type: complex, default: [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}\n".to_owned();
    for level in 1..200 {
        writeln!(deep, "  w{level:03}: {{type: complex, default: [[[[[[[[\"${{var.w{:03}}}\"]]]]]]]]}}", level - 1).unwrap();
    }
    assert!(has(&root(deep.replace("v0", "w000")), "BU0004"));
    let mut wide = "bundle: {name: t}\nvariables:\n  v0: {type: complex, default: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\n".to_owned();
    for level in 1..10 {
        let before = format!("\"${{var.v{}}}\"", level - 1);
        writeln!(wide, "  v{level}: {{type: complex, default: [{}]}}", [before.as_str(); 10].join(", ")).unwrap();
    }
    assert!(has(&root(&wide), "more than 200000 values"));
}

#[test]
fn a_long_chain_of_references_is_refused() {
    let mut text = "bundle: {name: t}\nvariables:\n  v0: {default: x}\n".to_owned();
    for level in 1..5_000 {
        writeln!(text, "  v{level}: {{default: \"${{var.v{}}}\"}}", level - 1).unwrap();
    }
    assert!(has(&root(&text), "a chain of more than 12 references"));
}

#[test]
fn nesting_is_bounded() {
    assert!(has(&root(format!("x: {}{}", "[".repeat(100), "]".repeat(100))), "nest deeper than 64 levels"));
    assert!(!root(format!("x: {}", "[".repeat(100_000))).is_empty());
    assert!(!root("{a: ".repeat(50_000)).is_empty());
    let mut stairs = String::new();
    (0..2_000).for_each(|level| writeln!(stairs, "{}a:", " ".repeat(level)).unwrap());
    assert!(!root(&stairs).is_empty());
}

#[test]
fn bytes_that_are_no_text_are_refused_at_their_place() {
    assert_eq!(
        root(b"bundle:\n  name: \xff\xfe\n"),
        ["databricks.yml:2:9: databricks.yml cannot be read: it is not text in UTF-8 (BU0029)"]
    );
    assert_eq!(root(b"a: \0b"), ["databricks.yml:1:4: databricks.yml cannot be read: it is not text in UTF-8 (BU0029)"]);
    assert!(!root((0..200_000_u32).map(|at| (at * 7919 % 256) as u8).collect::<Vec<u8>>()).is_empty());
}

#[test]
fn large_files_are_refused_unread() {
    let folder = Folder::with(&[]);
    let file = std::fs::File::create(folder.path().join("databricks.yml")).unwrap();
    file.set_len(40 << 30).unwrap();
    assert!(has(&refused(&folder), "databricks.yml is too large: more than 4194304 bytes"));
}

#[test]
fn many_keys_and_many_mistakes_take_no_time() {
    let mut text = "bundle: {name: t}\nresources:\n  jobs:\n".to_owned();
    for at in 0..3_000 {
        writeln!(text, "    j{at}: {{nmae: \"${{var.catlog{at}}}\", max_retries: x}}").unwrap();
    }
    assert!(root(&text).len() > 1_000);
    let mut tasks = "bundle: {name: t}\nresources:\n  jobs:\n    j:\n      tasks:\n".to_owned();
    for at in 0..3_000 {
        writeln!(
            tasks,
            "        - {{task_key: t{at}, depends_on: [{{task_key: t{}}}], notebook_task: {{notebook_path: /x}}}}",
            (at + 1) % 3_000
        )
        .unwrap();
    }
    assert!(has(&root(&tasks), "tasks wait for each other in a circle"));
    assert!(!root("$".repeat(2_000_000)).is_empty());
    let dollars = format!("bundle: {{name: t}}\nx-a: \"{}}}{}}}}}\"\n", "${".repeat(700_000), "{{".repeat(700_000));
    root(dollars);
}

#[test]
fn what_leads_out_of_the_bundle_is_refused() {
    let outside = Folder::with(&[("secret.yml", "resources: {}\n"), ("secret.sql", "SELECT 1\n")]);
    let folder = Folder::with(&[
        ("databricks.yml", "bundle: {name: t}\ninclude: [\"in/*.yml\", \"in/deep/*.yml\", ../x.yml, /etc/x.yml]\n"),
        ("in/a.yml", "x-a: 1\n"),
    ]);
    std::os::unix::fs::symlink(outside.path().join("secret.yml"), folder.path().join("in/b.yml")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("in/deep")).unwrap();
    let expected = [
        "databricks.yml:2:11: the path \"in/b.yml\" leads out of the bundle through a symbolic link (BU0027)",
        "databricks.yml:2:23: the path \"in/deep/secret.yml\" leads out of the bundle through a symbolic link (BU0027)",
        "databricks.yml:2:40: the path \"../x.yml\" leads out of the bundle (BU0027)",
        "databricks.yml:2:50: include \"/etc/x.yml\": it is absolute; paths count from the root file's folder (BU0026)",
    ];
    assert_eq!(refused(&folder), expected);
}

#[test]
fn folders_in_a_circle_are_walked_once() {
    let pipeline = "resources: {pipelines: {p: {libraries: [{glob: {include: src/**}}]}}}\n";
    let folder = Folder::with(&[("databricks.yml", &format!("bundle: {{name: t}}\n{pipeline}")), ("src/a.sql", "")]);
    std::os::unix::fs::symlink(folder.path().join("src"), folder.path().join("src/again")).unwrap();
    assert_eq!(refused(&folder), Vec::<String>::new());
    assert_eq!(folder.load(None).bundle.pipelines["p"].files, ["src/a.sql"]);
}

#[test]
fn files_that_include_each_other_are_read_once() {
    let folder = Folder::with(&[
        ("databricks.yml", "bundle: {name: t}\ninclude: [databricks.yml, a.yml, \"*.yml\", a.yml]\n"),
        ("a.yml", "include: [databricks.yml, a.yml]\nx-a: [1]\n"),
    ]);
    assert_eq!(refused(&folder), ["a.yml:1:1: warning: include \"include\": only the root file includes others; this is ignored (BU0026)"]);
    assert_eq!(folder.load(None).bundle.resolved["x-a"], serde_json::json!([1]));
}

#[test]
fn a_pipe_is_not_read() {
    let folder = Folder::with(&[("databricks.yml", "bundle: {name: t}\ninclude: [\"*.yaml\"]\n")]);
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("p.yaml")).status().unwrap();
    assert!(made.success());
    assert_eq!(refused(&folder), ["p.yaml:1:1: p.yaml cannot be read: it is not a file (BU0029)"]);
}

/// A bundle that uses most of what there is.
const WHOLE: &str = include_str!("whole.yml");

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn law_no_text_makes_a_bundle_panic(text in "[-a-z{}\\[\\]:,&*<$.\"' \\n|>!#0-9é]{0,300}") {
        root(text);
    }

    #[test]
    fn law_no_damage_makes_a_bundle_panic(cuts in proptest::collection::vec((0usize..WHOLE.len(), 0usize..40, "[-a-z{}\\[\\]:,&*<$.\" \\n]{0,12}"), 1..6)) {
        let mut text = WHOLE.to_owned();
        for (at, length, new) in cuts {
            let begin = at.min(text.len());
            let end = (begin + length).min(text.len());
            if text.is_char_boundary(begin) && text.is_char_boundary(end) {
                text.replace_range(begin..end, &new);
            }
        }
        let folder = Folder::with(&[("databricks.yml", &text)]);
        let (first, again) = (folder.load(None), folder.load(None));
        prop_assert_eq!(first, again);
    }
}
