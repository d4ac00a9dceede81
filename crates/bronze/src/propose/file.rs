//! Samples from a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tributary_cdc_decode::{Header, Record, propose_csv};
use tributary_specs::{CsvOptions, FileFormat, FileSource};

use super::{name_of, none, of_records};
use crate::Result;
use crate::files::{CsvCutter, Dialect, Field, KafkaLine, Piece, split};
use crate::headers::lent;

/// No more of a file is looked at.
const BYTES_MAX: u64 = 64 << 20;
/// What may stand between the fields of CSV, the most usual first.
const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];
/// Bytes and records that tell which of them it is.
const FIRST_BYTES: usize = 1 << 20;
const FIRST_RECORDS: usize = 100;

/// Feeds for a file's first records, as items of a pipeline's `feeds:`: one, or one a topic of recorded Kafka records. `format`
/// `None` = told by the file's name and first line. `.gz` is gunzipped.
///
/// # Errors
/// [`crate::Error::NoProposal`] when the file cannot be read or holds no row.
pub fn propose_from_file(path: &Path, format: Option<FileFormat>, records_max: usize) -> Result<String> {
    let shown = path.display().to_string();
    let bytes = read(path).map_err(|error| none(&shown, &error.to_string()))?;
    let format = format.unwrap_or_else(|| format_of(path, &bytes));
    let source = FileSource::new(shown.clone(), format);
    let name = name_of(&stem(path));
    let text = match format {
        FileFormat::Csv => of_csv(&name, &source, &bytes, records_max)?,
        FileFormat::Jsonl => {
            let lines = lines(&bytes).take(records_max).zip(1..);
            let records: Vec<Record<'_>> = lines.map(|(line, number)| Record::line_of_file(&shown, number, line)).collect();
            of_records(&name, source.into(), &records)?.unwrap_or_default()
        }
        FileFormat::KafkaJsonl => of_topics(&source, &bytes, records_max)?,
    };
    if text.is_empty() { Err(none(&shown, "none of the first records is a row")) } else { Ok(text) }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
        MultiGzDecoder::new(file).take(BYTES_MAX).read_to_end(&mut bytes)?;
    } else {
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The name without folder and endings.
fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').find(|part| !part.is_empty()).unwrap_or("feed").to_owned()
}

fn format_of(path: &Path, bytes: &[u8]) -> FileFormat {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if name.trim_end_matches(".gz").ends_with(".csv") {
        return FileFormat::Csv;
    }
    let recorded = lines(bytes).next().is_some_and(|line| KafkaLine::parse(line).is_ok());
    if recorded { FileFormat::KafkaJsonl } else { FileFormat::Jsonl }
}

/// Lines that are not blank.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// The pieces of a CSV text, records and what is none.
fn pieces(dialect: Dialect, bytes: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut cutter = CsvCutter::new(dialect, usize::MAX, 0);
    cutter.push(bytes, &mut pieces);
    cutter.finish(&mut pieces);
    pieces
}

/// What stands between the fields: the sign that cuts the header and every one of the first rows into the same number of fields, the
/// most of them; a comma where none does.
fn delimiter_of(bytes: &[u8]) -> char {
    let fields = |sign: char| -> Option<usize> {
        let dialect = Dialect::new(&CsvOptions { delimiter: sign, ..CsvOptions::default() }).ok()?;
        let pieces = pieces(dialect, &bytes[..bytes.len().min(FIRST_BYTES)]);
        // the last one may be cut off
        let whole = if bytes.len() > FIRST_BYTES { &pieces[..pieces.len().saturating_sub(1)] } else { &pieces[..] };
        let counts =
            whole.iter().take(FIRST_RECORDS).map(|piece| Some(split(std::str::from_utf8(&piece.bytes).ok()?, dialect).ok()?.len()));
        let counts = counts.collect::<Option<Vec<usize>>>()?;
        let first = counts.first().copied().filter(|count| *count > 1)?;
        counts.iter().all(|count| *count == first).then_some(first)
    };
    let told = DELIMITERS.into_iter().filter_map(|sign| Some((fields(sign)?, sign)));
    // of several with as many fields it is the first
    told.rev().max_by_key(|(fields, _)| *fields).map_or(',', |(_, sign)| sign)
}

fn of_csv(name: &str, source: &FileSource, bytes: &[u8], records_max: usize) -> Result<String> {
    let refused = |reason: &str| none(&source.path, reason);
    let mut source = source.clone();
    source.csv.delimiter = delimiter_of(bytes);
    let dialect = Dialect::new(&source.csv).map_err(|reason| refused(&reason))?;
    let pieces = pieces(dialect, bytes);
    let texts = pieces.iter().filter(|piece| piece.fault.is_none()).filter_map(|piece| std::str::from_utf8(&piece.bytes).ok());
    let mut records = texts.map(|text| split(text.trim_start_matches('\u{feff}'), dialect));
    let Some(Ok(header)) = records.next() else { return Err(refused("there is no header line")) };
    let header: Vec<String> = header.into_iter().map(|field| field.text.into_owned()).collect();
    let row = |fields: Vec<Field<'_>>| {
        let text = |field: Field<'_>| (field.quoted || !field.text.is_empty()).then(|| field.text.into_owned());
        fields.into_iter().map(text).collect::<Vec<_>>()
    };
    let rows: Vec<_> = records.take(records_max).filter_map(|fields| Some(row(fields.ok()?))).collect();
    Ok(propose_csv(&header, &rows).to_yaml(name, &format!("bronze.{name}"), &source.into()))
}

/// A recorded record and its headers.
type Recorded = (KafkaLine, Vec<(String, Vec<u8>)>);

fn of_topics(source: &FileSource, bytes: &[u8], records_max: usize) -> Result<String> {
    let mut topics: BTreeMap<String, Vec<Recorded>> = BTreeMap::new();
    for line in lines(bytes).take(records_max) {
        let mut line = KafkaLine::parse(line).map_err(|reason| none(&source.path, &reason))?;
        let headers = line.take_headers();
        topics.entry(line.topic.clone()).or_default().push((line, headers));
    }
    let mut text = String::new();
    for (topic, lines) in &topics {
        let headers: Vec<Vec<Header<'_>>> = lines.iter().map(|(_, headers)| lent(headers)).collect();
        let records: Vec<Record<'_>> = lines.iter().zip(&headers).map(|((line, _), headers)| record(line, headers)).collect();
        let source = source.clone().with_topics([topic.as_str()]);
        text.extend(of_records(&name_of(topic), source.into(), &records)?);
    }
    Ok(text)
}

fn record<'a>(line: &'a KafkaLine, headers: &'a [Header<'a>]) -> Record<'a> {
    Record {
        topic: &line.topic,
        partition: line.partition,
        offset: line.offset,
        key: line.key.as_ref().map(String::as_bytes),
        value: line.value.as_ref().map(String::as_bytes),
        headers,
        timestamp_ms: line.timestamp_ms(),
        file: None,
        line: None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::Error;

    /// Why nothing can be proposed.
    fn reason(error: &Error) -> &str {
        match error {
            Error::NoProposal { reason, .. } => reason,
            other => panic!("{other}"),
        }
    }

    fn proposed(name: &str, content: &[u8]) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        propose_from_file(&path, None, 100).map(|text| text.replace(&folder.path().display().to_string(), "in"))
    }

    #[test]
    fn the_format_is_told_by_name_and_first_line() {
        let csv = proposed("Daily sales.csv", b"\xef\xbb\xbfid,\"a \"\"name\"\"\",note\n1,x,\n2,\"y,\nz\",\n").unwrap();
        assert_eq!(
            csv,
            "- name: daily_sales\n  table: bronze.daily_sales\n  source:\n    files: { path: \"in/Daily sales.csv\", format: csv }\n  \
             decode: csv\n  columns: # of 2 rows; comments say what these cannot tell\n    \
             - { name: id, type: long } # every value is a whole number\n    - { name: \"a \\\"name\\\"\", type: string }\n    \
             # - { name: note } # null in every sample: its type is not known\n"
        );
        let jsonl = proposed("7.jsonl", b"{\"id\":1}\n\n{\"id\":2}\n").unwrap();
        assert!(jsonl.starts_with("- name: feed_7\n") && jsonl.contains("format: jsonl") && jsonl.contains("decode: json"), "{jsonl}");
        let recorded = br#"{"topic":"shop.public.orders","partition":0,"offset":0,"key":"{\"id\":1}","value":"{\"op\":\"c\",\"before\":null,\"after\":{\"id\":1},\"source\":{}}"}
{"topic":"__debezium-heartbeat.shop","partition":0,"offset":0,"value":"{\"ts_ms\":1}"}
"#;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(recorded).unwrap();
        let text = proposed("drop.jsonl.gz", &packed.finish().unwrap()).unwrap();
        assert!(text.starts_with("- name: shop_public_orders\n") && text.matches("- name: ").count() == 1, "{text}");
        assert!(
            text.contains("topics: [shop.public.orders]") && text.contains("keys: [id]") && text.contains("decode: debezium\n"),
            "{text}"
        );
    }

    #[test]
    fn what_stands_between_fields_is_told_by_the_first_records() {
        for (text, sign) in [
            ("a,b\n1,2\n", ','),
            ("a;b\n1,5;2,5\n", ';'),
            ("a\tb\n1,5\t2;5\n", '\t'),
            ("a|b|c\n1|2,3|4\n", '|'),
            ("a;b,c\n1;2,3\n", ','),
            ("\"a;b;c\",d\n\"1;2\",3\n", ','),
            ("a\n1;2\n", ','),
            ("name\nAnn\n", ','),
            ("a;b\n1\n", ','),
            ("", ','),
        ] {
            assert_eq!(delimiter_of(text.as_bytes()), sign, "{text:?}");
        }
        let text = proposed("sums.csv", b"id;sum\n1;2,5\n2;3,5\n").unwrap();
        assert!(text.contains("format: csv, csv: { delimiter: \";\" } }") && text.contains("- { name: id, type: long }"), "{text}");
    }

    #[test]
    fn what_holds_no_rows_says_so() {
        for (name, content, reason) in [
            ("a.jsonl", &b""[..], "none of the first records is a row"),
            ("a.jsonl", b"not json\n", "none of the first records is a row"),
            ("a.csv", b"", "there is no header line"),
        ] {
            assert_eq!(self::reason(&proposed(name, content).unwrap_err()), reason, "{name}");
        }
        assert!(reason(&propose_from_file(Path::new("/nowhere/a.jsonl"), None, 1).unwrap_err()).contains("o such file"));
    }
}
