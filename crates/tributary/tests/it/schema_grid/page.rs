//! The page that the table of outcomes makes.

use std::fmt::Write;

use super::entry::{Entry, LAYOUTS, POLICIES, Seen, TABLES, WIRES};

/// The page: its head, a matrix a policy, the particular cases.
pub fn page(head: &str, entries: &[Entry]) -> String {
    let mut page = head.to_owned();
    let (basic, special): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| entry.is_basic);
    page.push_str("\n## The changes\n\n| change | what happens at the source |\n|---|---|\n");
    for entry in &basic {
        writeln!(page, "| {} | {} |", entry.name, entry.says()).expect("text");
    }
    for policy in POLICIES {
        write!(page, "\n## `schema_policy: {policy}`\n\n| change | bronze | append | SCD 1 | SCD 2 |\n|---|---|---|---|---|\n")
            .expect("text");
        basic.iter().for_each(|entry| matrix_row(&mut page, entry, policy));
    }
    page.push_str("\n## Particular cases\n");
    special.iter().for_each(|entry| special_case(&mut page, entry));
    page
}

fn matrix_row(page: &mut String, entry: &Entry, policy: &str) {
    let cells: Vec<String> = TABLES
        .iter()
        .map(|table| {
            let phrases: Vec<String> = WIRES[..2]
                .iter()
                .flat_map(|wire| LAYOUTS.map(|layout| &entry.outcome(policy, wire, layout).tables[*table]))
                .map(|seen| phrase(entry, seen))
                .collect();
            assert!(
                phrases.iter().all(|phrase| *phrase == phrases[0]),
                "{}, {policy}: the matrix has one cell for {phrases:?}",
                entry.name
            );
            phrases[0].clone()
        })
        .collect();
    writeln!(page, "| {} | {} |", entry.name, cells.join(" | ")).expect("text");
}

fn special_case(page: &mut String, entry: &Entry) {
    write!(page, "\n**{}.** {}\n\n", sentence(&entry.name), entry.says()).expect("text");
    let wires = entry.among("wires", &WIRES[1..2]);
    let layout = entry.among("layouts", &LAYOUTS[..1])[0];
    for wire in &wires {
        let alike = entry.policies().iter().all(|policy| {
            let of = |wire: &str| &entry.outcome(policy, wire, layout).tables;
            of(wire) == of(wires[0])
        });
        if *wire != wires[0] && alike {
            continue;
        }
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for policy in entry.policies() {
            let tables = &entry.outcome(policy, wire, layout).tables;
            let of_table = |table: &&str| Some(format!("{}: {}", kind(table), phrase(entry, tables.get(*table)?)));
            let text = TABLES.iter().filter_map(of_table).collect::<Vec<_>>().join("; ");
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, policies)) => policies.push(policy),
                None => lines.push((text, vec![policy])),
            }
        }
        let differs = wires.iter().any(|other| {
            entry.policies().iter().any(|policy| entry.outcome(policy, wire, layout).tables != entry.outcome(policy, other, layout).tables)
        });
        let messages = if differs { format!(" ({})", sentence(wire)) } else { String::new() };
        for (text, policies) in lines {
            let policies = if policies.len() == POLICIES.len() { "any policy".to_owned() } else { format!("`{}`", policies.join("`, `")) };
            writeln!(page, "- {policies}{messages}: {text}.").expect("text");
        }
    }
}

fn sentence(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn kind(table: &str) -> &str {
    match table {
        "current" => "SCD 1",
        "history" => "SCD 2",
        other => other,
    }
}

/// What became of a table, in a few words.
fn phrase(entry: &Entry, seen: &Seen) -> String {
    if *seen == Seen::default() {
        return "no table".to_owned();
    }
    let old: Vec<String> = entry.shape("old").into_iter().map(|(name, data_type)| format!("{name} {}", canonical(data_type))).collect();
    let mut parts = Vec::new();
    for column in &seen.columns {
        let (name, data_type) = column.split_once(' ').expect("name and type");
        if !old.iter().any(|known| known.split(' ').next() == Some(name)) {
            parts.push(format!("+ `{name}` {data_type}"));
        } else if !old.contains(column) {
            parts.push(format!("`{name}` becomes {data_type}"));
        }
    }
    let rescued = seen.rows.iter().filter(|row| row.split('|').nth(seen.columns.len()).is_some_and(|cell| cell.starts_with('{'))).count();
    if rescued > 0 {
        parts.push(format!("values kept in `_rescued_data` of {}", counted(rescued, "row")));
    }
    let mut remarks: Vec<(String, usize)> = Vec::new();
    for remark in seen.remarks.iter().map(|remark| remarked(remark)) {
        match remarks.iter_mut().find(|(known, _)| *known == remark) {
            Some((_, count)) => *count += 1,
            None => remarks.push((remark, 1)),
        }
    }
    parts.extend(remarks.into_iter().map(|(remark, count)| match remark.strip_prefix("quarantine") {
        Some(reason) => format!("{} in quarantine{reason}", counted(count, "record")),
        None => remark,
    }));
    if parts.is_empty() {
        parts.push("columns as they were".to_owned());
    }
    parts.push(counted(seen.rows.len(), "row"));
    parts.join(", ")
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn canonical(data_type: &str) -> String {
    data_type.parse::<tributary_specs::DataType>().map_or_else(|_| data_type.to_owned(), |data_type| data_type.to_string())
}

fn remarked(remark: &str) -> String {
    let words: Vec<&str> = remark.splitn(4, ' ').collect();
    match words.as_slice() {
        ["stops", code, "", ..] => format!("stops with [{code}](../runbooks/{code}.md)"),
        ["stops", code, column, ..] => format!("stops with [{code}](../runbooks/{code}.md), naming `{column}`"),
        ["quarantined", reason, column] => format!("quarantine (`{reason}`, `{column}`)"),
        ["rewritten"] => "the table is rewritten".to_owned(),
        _ => remark.to_owned(),
    }
}
