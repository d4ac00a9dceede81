//! JSON as block-style YAML.

use serde_json::Value as Json;

/// `value` as YAML; reading it gives the same value back.
pub(crate) fn write(value: &Json) -> String {
    let mut text = String::new();
    match value {
        Json::Object(fields) if !fields.is_empty() => write_fields(&mut text, value, 0, ""),
        _ => {
            write_inline(&mut text, value);
            text.push('\n');
        }
    }
    text
}

/// The fields of a mapping, one a line; `lead` stands before the first instead of its indentation.
fn write_fields(text: &mut String, value: &Json, indent: usize, lead: &str) {
    let Json::Object(fields) = value else { return };
    for (at, (name, field)) in fields.iter().enumerate() {
        if at == 0 && !lead.is_empty() {
            text.push_str(lead);
        } else {
            text.push_str(&" ".repeat(indent));
        }
        write_text(text, name);
        text.push(':');
        match field {
            Json::Object(inner) if !inner.is_empty() => {
                text.push('\n');
                write_fields(text, field, indent + 2, "");
            }
            Json::Array(items) if items.iter().any(|item| !is_scalar(item)) => {
                text.push('\n');
                items.iter().for_each(|item| write_item(text, item, indent));
            }
            _ => {
                text.push(' ');
                write_inline(text, field);
                text.push('\n');
            }
        }
    }
}

fn write_item(text: &mut String, item: &Json, indent: usize) {
    let lead = format!("{}- ", " ".repeat(indent));
    match item {
        Json::Object(fields) if !fields.is_empty() => write_fields(text, item, indent + 2, &lead),
        _ => {
            text.push_str(&lead);
            write_inline(text, item);
            text.push('\n');
        }
    }
}

fn is_scalar(value: &Json) -> bool {
    !matches!(value, Json::Object(_) | Json::Array(_))
}

fn write_inline(text: &mut String, value: &Json) {
    match value {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => text.push_str(&number.to_string()),
        Json::String(value) => write_text(text, value),
        Json::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                write_inline(text, item);
            }
            text.push(']');
        }
        Json::Object(fields) => {
            text.push('{');
            for (at, (name, field)) in fields.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                write_text(text, name);
                text.push_str(": ");
                write_inline(text, field);
            }
            text.push('}');
        }
    }
}

/// Without quotes where no reader can take it for anything but text.
fn write_text(text: &mut String, value: &str) {
    let plain = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/'))
        && !matches!(value.to_ascii_lowercase().as_str(), "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n");
    if plain {
        text.push_str(value);
        return;
    }
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            ' '..='~' => text.push(c),
            '\u{a1}'..='\u{d7ff}' if !c.is_whitespace() && !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}') => text.push(c),
            _ if u32::from(c) <= 0xffff => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => text.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    text.push('"');
}
