//! The law spec to YAML to spec.

use std::collections::BTreeMap;

use crate::yaml::files::read_form;
use crate::{
    Check, Column, ColumnSelection, CsvOptions, DataType, Decode, Deletes, Encoding, Expectation, ExpectationAction, FileFormat,
    FileSource, Flow, GoldSpec, GrowthPolicy, IgnoreNullUpdates, KafkaSource, KafkaStart, LateRows, MergePolicy, NullKeys, Pipeline,
    Refresh, ReplicaIdentity, SchemaPolicy, SetExpectation, SetRule, SilverSpec, Source, SourceFeed, StreamRead, StreamedTable, TableName,
    Watermark,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use tributary_testkit::Law;

/// Text as people write it and text that YAML readers stumble over.
fn text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "null",
        "~",
        "true",
        "no",
        "12",
        "-1.5",
        "0x1f",
        ".inf",
        "2026-02-01",
        "- a",
        "a: b",
        "# c",
        "'",
        "\"",
        "\\",
        "{",
        "[",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%",
        "@",
        "`",
        "line\nline\n",
        "tab\tx",
        " lead",
        "trail ",
        "\u{85}\u{2028}\u{feff}",
        "é",
        "😀",
        "a\r\nb",
        "\u{7f}\u{1}",
        "---",
        "...",
        "<<",
        "=",
    ]);
    prop_oneof![3 => "[a-z_][a-z0-9_]{0,8}", 1 => odd.prop_map(str::to_owned), 1 => ".{1,12}"]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn maybe_text() -> impl Strategy<Value = Option<String>> {
    option::of(text())
}

fn table_name() -> impl Strategy<Value = TableName> {
    (text(), text()).prop_map(|(schema, name)| TableName { schema, name })
}

fn data_type() -> impl Strategy<Value = DataType> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            DataType::Boolean,
            DataType::Byte,
            DataType::Short,
            DataType::Integer,
            DataType::Long,
            DataType::Float,
            DataType::Double,
            DataType::String,
            DataType::Binary,
            DataType::Date,
            DataType::Timestamp,
            DataType::TimestampNtz,
        ]),
        (1_u8..=38).prop_flat_map(|precision| (0..=precision).prop_map(move |scale| DataType::Decimal { precision, scale })),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let field = (text(), inner.clone(), any::<bool>(), maybe_text()).prop_map(|(name, data_type, nullable, comment)| {
            let mut field = Column::new(name, data_type);
            field.nullable = nullable;
            field.comment = comment;
            field
        });
        prop_oneof![
            inner.clone().prop_map(|element| DataType::Array(Box::new(element))),
            (inner.clone(), inner).prop_map(|(key, value)| DataType::Map(Box::new(key), Box::new(value))),
            vec(field, 0..3).prop_map(DataType::Struct),
        ]
    })
}

fn column() -> impl Strategy<Value = Column> {
    let encoding = option::of(prop::sample::select(vec![Encoding::Millis, Encoding::Base64Url, Encoding::Unscaled]));
    (text(), data_type(), any::<bool>(), maybe_text(), maybe_text(), maybe_text(), encoding).prop_map(
        |(name, data_type, nullable, comment, default, generated, encoding)| Column {
            name,
            data_type,
            nullable,
            comment,
            default,
            generated,
            encoding,
        },
    )
}

fn selection() -> impl Strategy<Value = ColumnSelection> {
    prop_oneof![Just(ColumnSelection::All), texts().prop_map(ColumnSelection::Only), texts().prop_map(ColumnSelection::Except)]
}

fn properties() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(text(), text(), 0..3)
}

fn expectations() -> impl Strategy<Value = Vec<Expectation>> {
    let action = prop::sample::select(vec![
        ExpectationAction::Warn,
        ExpectationAction::Drop,
        ExpectationAction::Quarantine,
        ExpectationAction::Fail,
    ]);
    vec((text(), text(), action).prop_map(|(name, expression, action)| Expectation { name, expression, action }), 0..3)
}

fn source() -> impl Strategy<Value = Source> {
    let format = prop::sample::select(vec![FileFormat::Csv, FileFormat::Jsonl, FileFormat::KafkaJsonl]);
    let csv = (any::<bool>(), any::<char>(), any::<char>(), maybe_text()).prop_map(|(header, delimiter, quote, null_text)| CsvOptions {
        header,
        delimiter,
        quote,
        null_text,
    });
    let flags = (any::<bool>(), any::<bool>());
    let files = (text(), format, maybe_text(), texts(), csv, any::<u64>(), flags).prop_map(
        |(path, format, glob, topics, csv, settle_seconds, (mirrors, with_metadata))| FileSource {
            path,
            format,
            glob,
            topics,
            csv,
            settle_seconds,
            mirrors,
            with_metadata,
        },
    );
    prop_oneof![4 => files.prop_map(Source::Files), 1 => text().prop_map(Source::Custom), 2 => kafka().prop_map(Source::Kafka)]
}

fn kafka() -> impl Strategy<Value = KafkaSource> {
    let starting = prop::sample::select(vec![KafkaStart::Earliest, KafkaStart::Latest]);
    (texts(), maybe_text(), maybe_text(), maybe_text(), starting, maybe_text(), properties()).prop_map(
        |(topics, pattern, bootstrap, group, starting, registry, properties)| KafkaSource {
            topics,
            pattern,
            bootstrap,
            group,
            starting,
            registry,
            properties,
        },
    )
}

/// Where the rows that a dataset refuses are kept, what catalogues show, and properties.
fn notes() -> impl Strategy<Value = (Option<TableName>, Option<String>, BTreeMap<String, String>)> {
    (option::of(table_name()), maybe_text(), properties())
}

fn feed() -> impl Strategy<Value = SourceFeed> {
    let decode =
        prop::sample::select(vec![Decode::Debezium, Decode::DebeziumFlattened, Decode::Json, Decode::Csv, Decode::Avro, Decode::Raw]);
    let policy = prop::sample::select(vec![SchemaPolicy::Freeze, SchemaPolicy::Add, SchemaPolicy::Widen, SchemaPolicy::Rescue]);
    let identity = prop::sample::select(vec![ReplicaIdentity::Default, ReplicaIdentity::Full]);
    let head = (text(), table_name(), source(), decode, vec(column(), 0..3), texts());
    let tail = (policy, identity, texts(), texts(), notes());
    (head, tail).prop_map(|((name, table, source, decode, columns, keys), tail)| {
        let (schema_policy, replica_identity, partition_by, cluster_by, (quarantine, comment, properties)) = tail;
        SourceFeed {
            name,
            table,
            source,
            decode,
            columns,
            keys,
            schema_policy,
            replica_identity,
            partition_by,
            cluster_by,
            quarantine,
            comment,
            properties,
        }
    })
}

fn policy() -> impl Strategy<Value = MergePolicy> {
    prop_oneof![
        Just(MergePolicy::Append),
        any::<bool>().prop_map(|exact| MergePolicy::InsertOnly { exact }),
        Just(MergePolicy::LastWriterWins),
        Just(MergePolicy::ScdType1),
        selection().prop_map(|track_history| MergePolicy::ScdType2 { track_history }),
        texts().prop_map(|columns| MergePolicy::MonotonicAdvance { columns }),
    ]
}

fn stream_read() -> impl Strategy<Value = StreamRead> {
    let changes = (0..9_u64, prop::option::of(9..20_u64)).prop_map(|(from, to)| StreamRead::Changes { from, to });
    prop_oneof![prop::sample::select(vec![StreamRead::Auto, StreamRead::SkipChangeCommits, StreamRead::ChangeFeed]), changes]
}

fn flow() -> impl Strategy<Value = Flow> {
    (text(), vec(table_name(), 0..3), maybe_text(), any::<bool>(), stream_read(), maybe_text(), maybe_text()).prop_map(
        |(name, sources, select, once, stream, apply_as_delete_when, apply_as_truncate_when)| Flow {
            name,
            sources,
            select,
            once,
            stream,
            apply_as_delete_when,
            apply_as_truncate_when,
        },
    )
}

fn set_expectations() -> impl Strategy<Value = Vec<SetExpectation>> {
    let rule = prop_oneof![
        texts().prop_map(SetRule::Unique),
        (prop::option::of(0..9_u64), prop::option::of(0..9_u64)).prop_map(|(min, max)| SetRule::RowCount { min, max }),
        (text(), 0..9_u64).prop_map(|(column, max_age_seconds)| SetRule::Freshness { column, max_age_seconds }),
    ];
    let action = prop::sample::select(vec![ExpectationAction::Warn, ExpectationAction::Fail]);
    vec((text(), rule, action).prop_map(|(name, rule, action)| SetExpectation { name, rule, action }), 0..2)
}

fn silver() -> impl Strategy<Value = SilverSpec> {
    let deletes = (maybe_text(), maybe_text(), any::<bool>(), maybe_text()).prop_map(
        |(apply_as_delete_when, apply_as_truncate_when, implicit, soft_delete_column)| Deletes {
            apply_as_delete_when,
            apply_as_truncate_when,
            implicit,
            soft_delete_column,
        },
    );
    let ignore = prop_oneof![Just(IgnoreNullUpdates::Off), Just(IgnoreNullUpdates::All), texts().prop_map(IgnoreNullUpdates::Columns)];
    let null_keys = prop::sample::select(vec![NullKeys::Refuse, NullKeys::Quarantine, NullKeys::NullSafe]);
    let checks = vec((text(), text()).prop_map(|(name, expression)| Check { name, expression }), 0..2);
    let head = (table_name(), vec(table_name(), 0..3), maybe_text(), texts(), texts(), policy(), deletes, selection(), ignore, null_keys);
    let middle = (maybe_text(), maybe_text(), maybe_text(), vec(column(), 0..2), expectations(), checks);
    let growth = prop::sample::select(vec![GrowthPolicy::Freeze, GrowthPolicy::Add, GrowthPolicy::Widen]);
    let tail = (texts(), texts(), notes(), growth);
    let late = prop::sample::select(vec![LateRows::Apply, LateRows::Drop]);
    let flows = (maybe_text(), any::<bool>(), stream_read(), option::of(watermark()), late, vec(flow(), 0..2), set_expectations());
    (head, middle, tail, flows).prop_map(|(head, middle, tail, flows)| {
        let (flow, once, stream, watermark, late, flows, set_expectations) = flows;
        let (table, sources, select, keys, sequence_by, policy, deletes, columns, ignore_null_updates, null_keys) = head;
        let (update_when, delete_when, insert_when, schema, expectations, checks) = middle;
        let (partition_by, cluster_by, (quarantine, comment, properties), schema_policy) = tail;
        SilverSpec {
            table,
            sources,
            select,
            flow,
            once,
            stream,
            watermark,
            late,
            flows,
            keys,
            sequence_by,
            policy,
            deletes,
            columns,
            ignore_null_updates,
            null_keys,
            update_when,
            delete_when,
            insert_when,
            schema,
            schema_policy,
            expectations,
            set_expectations,
            checks,
            partition_by,
            cluster_by,
            quarantine,
            comment,
            properties,
        }
    })
}

fn watermark() -> impl Strategy<Value = Watermark> {
    (text(), 0..1_000_000_000_u64).prop_map(|(column, delay_millis)| Watermark { column, delay_millis })
}

fn streamed() -> impl Strategy<Value = StreamedTable> {
    (table_name(), option::of(watermark())).prop_map(|(table, watermark)| StreamedTable { table, watermark })
}

fn gold() -> impl Strategy<Value = GoldSpec> {
    let refresh = prop::sample::select(vec![Refresh::Auto, Refresh::Incremental, Refresh::Full]);
    let head = (table_name(), text(), vec(table_name(), 0..3), refresh, vec(column(), 0..2), expectations());
    let tail = (texts(), texts(), texts(), notes(), vec(streamed(), 0..2));
    (head, tail, set_expectations()).prop_map(|((table, query, sources, refresh, schema, expectations), tail, set_expectations)| {
        let (partition_by, cluster_by, zorder_by, (quarantine, comment, properties), streams) = tail;
        GoldSpec {
            table,
            query,
            sources,
            streams,
            refresh,
            schema,
            expectations,
            set_expectations,
            partition_by,
            cluster_by,
            zorder_by,
            quarantine,
            comment,
            properties,
        }
    })
}

fn pipeline() -> impl Strategy<Value = Pipeline> {
    (text(), vec(feed(), 0..3), vec(silver(), 0..3), vec(gold(), 0..3), vec(table_name(), 0..3))
        .prop_map(|(name, feeds, silver, gold, external)| Pipeline { name, feeds, silver, gold, external })
}

#[test]
fn law_a_pipeline_survives_its_yaml() {
    Law::new("a pipeline survives its yaml").holds(&pipeline(), |pipeline, tried| {
        let yaml = pipeline.to_yaml();
        tried.add("lines", yaml.lines().count());
        match read_form(&yaml) {
            Ok(read) => prop_assert_eq!(read, pipeline),
            Err(problems) => prop_assert!(false, "{problems:?}\n{yaml}"),
        }
        Ok(())
    });
}

#[test]
fn law_the_reader_never_panics() {
    let text = "[-a-z0-9:{}\\[\\]#&*!|>'\"%@`, \n]{0,200}";
    Law::new("the reader never panics").holds(&text, |text, tried| {
        tried.add("characters", text.len());
        let _ = Pipeline::from_yaml("p.yml", &text);
        Ok(())
    });
}

#[test]
fn law_validation_never_panics() {
    Law::new("validation never panics").holds(&pipeline(), |pipeline, tried| {
        tried.add("problems", pipeline.validate().len());
        let _ = pipeline.phases();
        Ok(())
    });
}
