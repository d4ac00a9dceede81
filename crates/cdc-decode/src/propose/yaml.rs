//! A proposal as the item of a pipeline's `feeds:`.

use std::fmt::Write;

use tributary_specs::{Decode, FileFormat, Source};

use crate::propose::{Proposal, Proposed};

impl Proposal {
    /// The item of a pipeline's `feeds:` list, with a comment beside each column of which something is not known.
    pub fn to_yaml(&self, name: &str, table: &str, source: &Source) -> String {
        let mut text = format!("- name: {}\n  table: {}\n", scalar(name), scalar(table));
        let _ = writeln!(text, "  source:\n    {}", source_line(source));
        let _ = writeln!(text, "  decode: {}", decode_word(self.decode));
        if !self.keys.is_empty() {
            let _ = writeln!(text, "  keys: {}", list(&self.keys));
        }
        if self.columns.iter().any(|column| column.data_type.is_some()) {
            let _ = writeln!(text, "  columns: # of {} rows; comments say what these cannot tell", self.rows);
        }
        for column in &self.columns {
            let _ = writeln!(text, "    {}", column_line(column));
        }
        text
    }
}

fn column_line(column: &Proposed) -> String {
    let remark = column.remark.as_ref().map(|remark| format!(" # {remark}")).unwrap_or_default();
    let Some(data_type) = &column.data_type else {
        return format!("# - {{ name: {} }}{remark}", scalar(&column.name));
    };
    let encoding = column.encoding.map(encoding_word).unwrap_or_default();
    let encoding = if encoding.is_empty() { String::new() } else { format!(", encoding: {encoding}") };
    format!("- {{ name: {}, type: {}{encoding} }}{remark}", scalar(&column.name), scalar(&data_type.to_string()))
}

fn source_line(source: &Source) -> String {
    match source {
        Source::Files(files) => {
            let format = match files.format {
                FileFormat::Csv => "csv",
                FileFormat::Jsonl => "jsonl",
                FileFormat::KafkaJsonl => "kafka_jsonl",
            };
            let glob = files.glob.as_ref().map(|glob| format!(", glob: {}", scalar(glob))).unwrap_or_default();
            let topics = if files.topics.is_empty() { String::new() } else { format!(", topics: {}", list(&files.topics)) };
            let sign = files.csv.delimiter;
            let csv = if sign == ',' { String::new() } else { format!(", csv: {{ delimiter: {} }}", scalar(&sign.to_string())) };
            format!("files: {{ path: {}, format: {format}{glob}{topics}{csv} }}", scalar(&files.path))
        }
        Source::Kafka(kafka) => {
            let bootstrap = kafka.bootstrap.as_ref().map(|bootstrap| format!(", bootstrap: {}", scalar(bootstrap))).unwrap_or_default();
            let registry = kafka.registry.as_ref().map(|registry| format!(", registry: {}", scalar(registry))).unwrap_or_default();
            format!("kafka: {{ topics: {}{bootstrap}{registry} }}", list(&kafka.topics))
        }
        Source::Custom(name) => format!("custom: {}", scalar(name)),
    }
}

const fn decode_word(decode: Decode) -> &'static str {
    match decode {
        Decode::Debezium => "debezium",
        Decode::DebeziumFlattened => "debezium_flattened",
        Decode::Json => "json",
        Decode::Csv => "csv",
        Decode::Avro => "avro",
        Decode::Raw => "raw",
    }
}

fn encoding_word(encoding: tributary_specs::Encoding) -> &'static str {
    use tributary_specs::Encoding as E;
    match encoding {
        E::Millis => "millis",
        E::Micros => "micros",
        E::Nanos => "nanos",
        E::Iso => "iso",
        E::Text => "text",
        E::Unscaled => "unscaled",
        E::Unsigned => "unsigned",
        E::Base64 => "base64",
        E::Base64Url => "base64_url",
        E::Hex => "hex",
        E::Bits => "bits",
    }
}

fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| scalar(item)).collect();
    format!("[{}]", items.join(", "))
}

/// Words that YAML reads as something else than text.
const OTHERS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A text in a flow mapping: quoted unless it is a plain word.
fn scalar(text: &str) -> String {
    let word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-'))
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && !OTHERS.contains(&text.to_ascii_lowercase().as_str());
    if word {
        return text.to_owned();
    }
    let mut quoted = Vec::new();
    crate::json::write_text(text.as_bytes(), &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}
