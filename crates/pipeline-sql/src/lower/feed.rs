//! Files and topics that become tables.

use std::str::FromStr;

use tributary_fault::nearest;
use tributary_specs::{
    CsvOptions, Decode, Encoding, FileFormat, FileSource, KafkaSource, KafkaStart, Place, ReplicaIdentity, SchemaPolicy, Source,
    SourceFeed, TableName,
};

use super::properties::{Said, list};
use super::{Lowering, table_of};
use crate::call::{Argument, Call, Value};
use crate::error::Error;
use crate::origin::Origin;
use crate::parsed::Definition;
use crate::portability::rules;
use crate::query::Query;

/// Options that say nothing to be done here.
const NOT_APPLIED: &[(&str, &str)] = &[
    ("inferColumnTypes", "types come from the declared columns or the first batch"),
    ("schemaHints", "declare the columns in the table's definition"),
    ("schemaLocation", "the schema is the table's"),
    ("partitionColumns", "folders named k=v are not read as columns"),
    ("rescuedDataColumn", "it is always called _rescued_data"),
    ("recursiveFileLookup", "folders below the path are always read"),
    ("ignoreCorruptFiles", "bad lines go to quarantine"),
    ("ignoreMissingFiles", "a file that is gone before it is read is not missed"),
    ("maxFilesPerTrigger", "the run's setting --max-files-per-trigger decides"),
    ("maxBytesPerTrigger", "the run's setting --max-bytes-per-trigger decides"),
    ("maxOffsetsPerTrigger", "the run's setting --max-records-per-trigger decides"),
    ("minPartitions", "partitions are the topic's"),
    ("backfillInterval", "every run lists all files"),
    ("useStrictGlobber", "`*` never crosses a folder"),
    ("useNotifications", "files are found by listing"),
    ("allowOverwrites", "a file with other content is another file"),
    ("mode", "bad lines go to quarantine"),
    ("columnNameOfCorruptRecord", "bad lines go to quarantine"),
    ("ignoreLeadingWhiteSpace", "blanks of a value are kept"),
    ("ignoreTrailingWhiteSpace", "blanks of a value are kept"),
    ("includeHeaders", "headers are always there"),
    ("escape", "a quote in a value is doubled (RFC 4180)"),
];
/// Options whose value is refused unless it is what is done anyway.
const FIXED: &[(&str, &str, &str)] = &[
    ("multiLine", "false", "a record is a line"),
    ("encoding", "utf-8", "files are UTF-8"),
    ("charset", "utf-8", "files are UTF-8"),
    ("wholeText", "false", "a record is a line"),
    ("includeExistingFiles", "true", "all files are read"),
    ("primitivesAsString", "false", "declare the columns"),
    ("failOnDataLoss", "true", "the run's setting --on-gap decides"),
];
/// Options that are executed.
const FILE_OPTIONS: &[&str] = &[
    "format",
    "schema",
    "schemaEvolutionMode",
    "pathGlobFilter",
    "fileNamePattern",
    "header",
    "sep",
    "delimiter",
    "quote",
    "nullValue",
    "topics",
    "decode",
    "feed",
    "keys",
    "encodings",
    "replicaIdentity",
    "settleSeconds",
];
const KAFKA_OPTIONS: &[&str] = &[
    "bootstrapServers",
    "subscribe",
    "subscribePattern",
    "startingOffsets",
    "schemaEvolutionMode",
    "schema",
    "decode",
    "feed",
    "keys",
    "encodings",
    "replicaIdentity",
    "group",
    "schemaRegistry",
];

impl Lowering<'_> {
    /// A streaming table that is a feed.
    pub(super) fn feed(&mut self, definition: &Definition, call: &Call, said: Said) {
        let table = table_of(&definition.name);
        let name = format!("{}_{}", table.schema, table.name);
        let Some(mut feed) = self.source(definition, call, name, table) else { return };
        let columns = self.schema(definition);
        if !columns.is_empty() {
            feed.columns = columns;
        }
        self.encodings(&definition.name.to_string(), call, &mut feed);
        feed.partition_by.clone_from(&definition.partition_by.value);
        feed.cluster_by.clone_from(&definition.cluster_by.value);
        feed.quarantine = said.quarantine;
        feed.comment.clone_from(&definition.comment);
        feed.properties = said.table;
        self.add_feed(feed, definition.into(), definition.place.clone());
    }

    /// A feed of its own for a table that does more with its rows than keep them; gives the feed's table. `flow`: of a further flow.
    pub(super) fn own_feed(
        &mut self,
        definition: &Definition,
        query: &Query,
        call: &Call,
        place: &Place,
        flow: Option<&str>,
    ) -> Option<TableName> {
        let target = table_of(&definition.name);
        let of_flow = flow.map(|flow| format!("_{flow}")).unwrap_or_default();
        let table = TableName::new(&target.schema, format!("{}{of_flow}_input", target.name));
        let mut feed = self.source(definition, call, format!("{}_{}", table.schema, table.name), table.clone())?;
        self.encodings(&definition.name.to_string(), call, &mut feed);
        if let Source::Files(files) = &mut feed.source {
            files.with_metadata = query.asks_of_files();
        }
        let message = format!("what {} reads is kept in the table {table}, from which it is made", definition.name);
        self.report.notice(place.clone(), "extra_table", message);
        self.add_feed(feed, Origin { of: definition.name.to_string(), place: place.clone(), ..Origin::default() }, place.clone());
        Some(table)
    }

    /// A feed of its own that mirrors a folder, for a view of its files.
    pub(super) fn folder(&mut self, definition: &Definition, query: &Query, call: &Call, place: &Place) -> Option<TableName> {
        let table = self.own_feed(definition, query, call, place, None)?;
        if let Some(Source::Files(files)) = self.out.pipeline.feeds.last_mut().map(|feed| &mut feed.source) {
            files.mirrors = true;
        }
        Some(table)
    }

    fn add_feed(&mut self, feed: SourceFeed, origin: Origin, place: Place) {
        self.origins.feeds.push(origin);
        self.out.places.insert(feed.table.clone(), place);
        self.out.pipeline.feeds.push(feed);
    }

    fn source(&mut self, definition: &Definition, call: &Call, name: String, table: TableName) -> Option<SourceFeed> {
        let of = definition.name.to_string();
        let faults = self.report.faults.len();
        let mut feed = match call.function.as_str() {
            "read_files" | "cloud_files" => self.files(&of, call, name, table),
            "read_kafka" => self.kafka(&of, call, name, table),
            other => {
                let near = nearest(other, ["read_files", "read_kafka", "cloud_files"]).map(|near| format!("{near}(…)"));
                let what = format!("the function {other}(…) in FROM");
                self.report.fault(&call.place, &Error::NotExecuted { of, what, instead: near });
                return None;
            }
        }?;
        self.common(&of, call, &mut feed);
        (self.report.faults.len() == faults).then_some(feed)
    }

    fn option_fault(&mut self, of: &str, call: &Call, place: &Place, reason: String) {
        self.report.fault(place, &Error::SourceOption { of: of.to_owned(), function: call.function.clone(), reason });
    }

    /// The value of an option; none, and told, where it is no such thing.
    fn parsed<T: FromStr>(&mut self, of: &str, call: &Call, name: &str, expected: &str) -> Option<T> {
        let given = option(call, name)?;
        // What is no constant is told with the other options.
        let parsed = as_text(&given.value)?.to_lowercase().parse();
        if parsed.is_err() {
            self.option_fault(of, call, &given.place, format!("the option {name} is {expected}"));
        }
        parsed.ok()
    }

    fn files(&mut self, of: &str, call: &Call, name: String, table: TableName) -> Option<SourceFeed> {
        let path = match call.unnamed.first().map(|argument| &argument.value) {
            Some(Value::Text(path)) => path.clone(),
            _ => {
                self.option_fault(of, call, &call.place, "the first argument is the path, a text in quotes".to_owned());
                return None;
            }
        };
        let mut options = call.options.clone();
        if call.function == "cloud_files" {
            options = self.cloud_options(of, call)?;
        } else if let Some(extra) = call.unnamed.get(1) {
            let reason = "options are written name => value".to_owned();
            self.option_fault(of, call, &extra.place, reason);
        }
        let call = &Call { options, ..call.clone() };
        self.check_options(of, call, FILE_OPTIONS, &[]);
        let format = match text(call, "format").as_deref().map(str::to_lowercase).as_deref() {
            Some("csv") => FileFormat::Csv,
            Some("json" | "jsonl" | "ndjson") => FileFormat::Jsonl,
            Some("kafka_jsonl" | "kafka-jsonl") => FileFormat::KafkaJsonl,
            Some(other) => {
                let place = option(call, "format").map_or(&call.place, |argument| &argument.place);
                let reason = format!("the format {other:?} is not read by this release; it is one of csv, json, kafka_jsonl");
                self.option_fault(of, call, place, reason);
                return None;
            }
            None => guessed(&path).or_else(|| {
                let reason = "the format cannot be told from the path; give format => 'csv' | 'json' | 'kafka_jsonl'".to_owned();
                self.option_fault(of, call, &call.place, reason);
                None
            })?,
        };
        let (path, glob) = path_and_glob(&path);
        let filter = text(call, "pathGlobFilter").or_else(|| text(call, "fileNamePattern"));
        let glob = match (glob, filter) {
            (Some(_), Some(_)) => {
                self.option_fault(of, call, &call.place, "a glob in the path and pathGlobFilter exclude each other".to_owned());
                return None;
            }
            (glob, filter) => glob.or(filter.map(|filter| format!("**/{filter}"))),
        };
        let mut source = FileSource::new(path, format);
        source.glob = glob;
        source.topics = text(call, "topics").map(|topics| list(&topics)).unwrap_or_default();
        source.settle_seconds = self.parsed(of, call, "settleSeconds", "a whole number of seconds").unwrap_or_default();
        if format == FileFormat::Csv {
            source.csv = self.csv(of, call);
        }
        let mut feed = SourceFeed::new(name, table, source);
        feed.decode = decode(call).unwrap_or(match format {
            FileFormat::Csv => Decode::Csv,
            FileFormat::Jsonl => Decode::Json,
            FileFormat::KafkaJsonl => Decode::Debezium,
        });
        Some(feed)
    }

    /// `cloud_files('path', 'format', map('cloudFiles.option', 'value'))` as options of `read_files`.
    fn cloud_options(&mut self, of: &str, call: &Call) -> Option<Vec<Argument>> {
        let mut options = call.options.clone();
        let place = call.unnamed.get(1).map_or(&call.place, |argument| &argument.place);
        match call.unnamed.get(1).map(|argument| &argument.value) {
            Some(Value::Text(format)) => {
                options.push(Argument { name: "format".to_owned(), value: Value::Text(format.clone()), place: place.clone() });
            }
            _ => {
                self.option_fault(of, call, place, "the second argument is the format, a text in quotes".to_owned());
                return None;
            }
        }
        match call.unnamed.get(2) {
            None => {}
            Some(Argument { value: Value::Map(pairs), place, .. }) => options.extend(pairs.iter().map(|(name, value)| {
                let name = name.strip_prefix("cloudFiles.").unwrap_or(name).to_owned();
                Argument { name, value: Value::Text(value.clone()), place: place.clone() }
            })),
            Some(other) => {
                let reason = "the third argument is map('option', 'value', …)".to_owned();
                self.option_fault(of, call, &other.place, reason);
            }
        }
        Some(options)
    }

    fn csv(&mut self, of: &str, call: &Call) -> CsvOptions {
        let mut csv = CsvOptions { header: self.parsed(of, call, "header", "true or false").unwrap_or(true), ..CsvOptions::default() };
        if let Some(text) = text(call, "sep").or_else(|| text(call, "delimiter")) {
            csv.delimiter = one_sign(&text).unwrap_or('\0');
        }
        if let Some(text) = text(call, "quote") {
            csv.quote = one_sign(&text).unwrap_or('\0');
        }
        for (name, sign) in [("sep", csv.delimiter), ("quote", csv.quote)] {
            if sign == '\0' {
                self.option_fault(of, call, &call.place, format!("the option {name} is one sign"));
            }
        }
        csv.null_text = text(call, "nullValue");
        csv
    }

    fn kafka(&mut self, of: &str, call: &Call, name: String, table: TableName) -> Option<SourceFeed> {
        if let Some(extra) = call.unnamed.first() {
            self.option_fault(of, call, &extra.place, "options are written name => value".to_owned());
        }
        self.check_options(of, call, KAFKA_OPTIONS, &["kafka."]);
        let mut source = KafkaSource { bootstrap: text(call, "bootstrapServers"), ..KafkaSource::default() };
        match (text(call, "subscribe"), text(call, "subscribePattern")) {
            (Some(topics), None) => source.topics = list(&topics),
            (None, Some(pattern)) => source.pattern = Some(pattern),
            _ => {
                self.option_fault(of, call, &call.place, "exactly one of subscribe and subscribePattern is given".to_owned());
                return None;
            }
        }
        match text(call, "startingOffsets").as_deref() {
            None | Some("earliest") => {}
            Some("latest") => source.starting = KafkaStart::Latest,
            Some(_) => {
                let place = option(call, "startingOffsets").map_or(&call.place, |argument| &argument.place);
                self.option_fault(of, call, place, "startingOffsets is 'earliest' or 'latest'".to_owned());
            }
        }
        source.group = text(call, "group");
        source.registry = text(call, "schemaRegistry");
        for argument in &call.options {
            if let (Some(property), Some(value)) = (argument.name.strip_prefix("kafka."), as_text(&argument.value)) {
                source.properties.insert(property.to_owned(), value);
            }
        }
        let mut feed = SourceFeed::new(name, table, source);
        feed.decode = decode(call).unwrap_or(Decode::Raw);
        Some(feed)
    }

    /// Options that all sources have.
    fn common(&mut self, of: &str, call: &Call, feed: &mut SourceFeed) {
        let place = |name: &str| option(call, name).map_or(call.place.clone(), |argument| argument.place.clone());
        if let Some(name) = text(call, "feed") {
            feed.name = name;
        }
        feed.keys = text(call, "keys").map(|keys| list(&keys)).unwrap_or_default();
        if option(call, "decode").is_some() && decode(call).is_none() {
            let reason = "decode is one of debezium, debezium_flattened, json, csv, avro, raw".to_owned();
            self.option_fault(of, call, &place("decode"), reason);
        }
        match text(call, "replicaIdentity").as_deref() {
            None | Some("default") => {}
            Some("full") => feed.replica_identity = ReplicaIdentity::Full,
            Some(_) => self.option_fault(of, call, &place("replicaIdentity"), "replicaIdentity is 'default' or 'full'".to_owned()),
        }
        let declared = text(call, "schema");
        feed.schema_policy = match text(call, "schemaEvolutionMode").as_deref() {
            Some("addNewColumns") => SchemaPolicy::Add,
            Some("addNewColumnsWithTypeWidening") => SchemaPolicy::Widen,
            Some("rescue" | "none") => SchemaPolicy::Rescue,
            Some("failOnNewColumns") => SchemaPolicy::Freeze,
            Some("quarantine") => SchemaPolicy::Quarantine,
            None if declared.is_some() => SchemaPolicy::Rescue,
            None => SchemaPolicy::default(),
            Some(_) => {
                let reason = "schemaEvolutionMode is one of addNewColumns, addNewColumnsWithTypeWidening, rescue, failOnNewColumns, none, quarantine";
                self.option_fault(of, call, &place("schemaEvolutionMode"), reason.to_owned());
                SchemaPolicy::default()
            }
        };
        if let Some(schema) = declared {
            match columns(&schema) {
                Ok(columns) => feed.columns = columns,
                Err(reason) => self.option_fault(of, call, &place("schema"), format!("the schema cannot be read: {reason}")),
            }
        }
    }

    /// How messages write the values of some columns: `encodings => 'amount unscaled, placed_at iso'`.
    fn encodings(&mut self, of: &str, call: &Call, feed: &mut SourceFeed) {
        let place = option(call, "encodings").map_or(&call.place, |argument| &argument.place);
        for entry in text(call, "encodings").map(|text| list(&text)).unwrap_or_default() {
            let (name, word) = entry.split_once(char::is_whitespace).unwrap_or((&entry, ""));
            let column = feed.columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(name.trim_matches('`')));
            let reason = match (column, encoding(word.trim())) {
                (Some(column), Some(encoding)) => {
                    column.encoding = Some(encoding);
                    continue;
                }
                (None, _) => format!("encodings names {name}, which is no declared column"),
                (_, None) => format!("{entry:?} is not a column and one of {}", ENCODINGS.map(|(word, _)| word).join(", ")),
            };
            self.option_fault(of, call, place, reason);
        }
    }

    /// Tells options that are not known, not applied or fixed.
    fn check_options(&mut self, of: &str, call: &Call, known: &[&str], prefixes: &[&str]) {
        for argument in &call.options {
            let name = argument.name.as_str();
            let is = |other: &str| other.eq_ignore_ascii_case(name);
            if as_text(&argument.value).is_none() {
                self.option_fault(of, call, &argument.place, format!("the option {name} is a constant"));
            } else if known.iter().any(|other| is(other)) || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            } else if let Some((_, reason)) = NOT_APPLIED.iter().find(|(other, _)| is(other)) {
                self.report.uses_one(argument.place.clone(), &rules::OPTION_NOT_APPLIED, Some(of), name);
                self.report.not_applied(argument.place.clone(), &format!("the option {name}"), Some(of), reason);
            } else if let Some((_, fixed, reason)) = FIXED.iter().find(|(other, ..)| is(other)) {
                if !as_text(&argument.value).is_some_and(|value| value.eq_ignore_ascii_case(fixed)) {
                    self.option_fault(of, call, &argument.place, format!("the option {name} can only be {fixed}: {reason}"));
                }
            } else {
                let all = known.iter().chain(NOT_APPLIED.iter().map(|(name, _)| name)).chain(FIXED.iter().map(|(name, ..)| name));
                let near = nearest(name, all.copied()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                self.option_fault(of, call, &argument.place, format!("there is no option {name}{near}"));
            }
        }
    }
}

fn option<'a>(call: &'a Call, name: &str) -> Option<&'a Argument> {
    call.options.iter().find(|argument| argument.name.eq_ignore_ascii_case(name))
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) | Value::Number(text) => Some(text.clone()),
        Value::Boolean(value) => Some(value.to_string()),
        Value::Map(_) | Value::Null | Value::Other(_) => None,
    }
}

fn text(call: &Call, name: &str) -> Option<String> {
    as_text(&option(call, name)?.value)
}

fn decode(call: &Call) -> Option<Decode> {
    Some(match text(call, "decode")?.to_lowercase().as_str() {
        "debezium" => Decode::Debezium,
        "debezium_flattened" => Decode::DebeziumFlattened,
        "json" => Decode::Json,
        "csv" => Decode::Csv,
        "avro" => Decode::Avro,
        "raw" => Decode::Raw,
        _ => return None,
    })
}

fn one_sign(text: &str) -> Option<char> {
    let text = if text == "\\t" { "\t" } else { text };
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// The format that a path's ending tells.
fn guessed(path: &str) -> Option<FileFormat> {
    let path = path.trim_end_matches(".gz").to_lowercase();
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("csv") => Some(FileFormat::Csv),
        Some("json" | "jsonl" | "ndjson") => Some(FileFormat::Jsonl),
        _ => None,
    }
}

/// The folder before the first part with a glob, and the glob.
fn path_and_glob(path: &str) -> (String, Option<String>) {
    let Some(first) = path.find(['*', '?', '[', '{']) else { return (path.to_owned(), None) };
    let cut = path[..first].rfind('/').map_or(0, |slash| slash + 1);
    let folder = path[..cut].trim_end_matches('/');
    (if folder.is_empty() { ".".to_owned() } else { folder.to_owned() }, Some(path[cut..].to_owned()))
}

/// `a INT, b STRING` as columns.
fn columns(text: &str) -> Result<Vec<tributary_specs::Column>, String> {
    match format!("struct<{text}>").parse() {
        Ok(tributary_specs::DataType::Struct(columns)) => Ok(columns),
        Ok(_) => Err("it is not a list of columns".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// How values are written, by the words of specs.
const ENCODINGS: [(&str, Encoding); 11] = [
    ("millis", Encoding::Millis),
    ("micros", Encoding::Micros),
    ("nanos", Encoding::Nanos),
    ("iso", Encoding::Iso),
    ("text", Encoding::Text),
    ("unscaled", Encoding::Unscaled),
    ("unsigned", Encoding::Unsigned),
    ("base64", Encoding::Base64),
    ("base64_url", Encoding::Base64Url),
    ("hex", Encoding::Hex),
    ("bits", Encoding::Bits),
];

fn encoding(word: &str) -> Option<Encoding> {
    ENCODINGS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, encoding)| *encoding)
}
