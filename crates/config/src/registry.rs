//! The list. Adding a setting is adding one entry here, then rewriting the generated pages.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::error::Error;
use crate::resolve::Resolved;
use crate::setting::{Group, Program, Reach, Setting};
use crate::value::{ByteSize, Field, Layer, Location, LogFormat, Name, Offsets, OnGap, Output, Properties};

/// Declares every setting: a field of [`Settings`], an entry of [`REGISTRY`], and how one fills the other.
macro_rules! settings {
    ($( $(#[doc = $doc:literal])+ $name:ident: $type:ty = { $($key:ident: $value:expr),+ $(,)? } )+) => {
        /// Every setting with its type, after all sources have been weighed.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $( $(#[doc = $doc])+ pub $name: $type, )+
        }

        /// Every setting's name, default and words, in the order of help and reference page.
        pub static REGISTRY: &[Setting] = &[
            $( Setting {
                name: stringify!($name),
                kind: <$type as Field>::KIND,
                doc: &[$($doc),+],
                $($key: $value,)+
                ..Setting::BLANK
            }, )+
        ];

        impl Settings {
            /// Gives each field its text; every text that does not fit is reported, and then there are no settings.
            pub(crate) fn read(resolved: &Resolved, errors: &mut Vec<Error>) -> Option<Self> {
                $( let $name = resolved.field::<$type>(stringify!($name), errors); )+
                Some(Self { $( $name: $name?, )+ })
            }

            /// Every setting's value as `tributary.toml` would have it; `None` when it is not set.
            pub(crate) fn shown(&self) -> Vec<(&'static str, Option<String>)> {
                vec![ $( (stringify!($name), Field::show(&self.$name)), )+ ]
            }
        }
    };
}

settings! {
    /// Name of the catalogue, the first of a table's three names and the first folder below the warehouse.
    ///
    /// It must exist unless the filesystem catalogue is used, which creates its folder.
    catalogue: Name = {
        default: Some("main"),
        value_name: "NAME",
        aliases: &["catalog"],
        group: Group::Places,
        differs: Some(("none, required", "a laptop needs no catalogue service; `main` is what the platform calls its first one")),
    }

    /// Root of the tables: a folder, or a URL of an object store.
    ///
    /// A table lies at `<warehouse>/<catalogue>/<schema>/<table>`.
    warehouse: Location = {
        default: Some("data/lake"),
        value_name: "PATH|URL",
        short: Some('w'),
        group: Group::Places,
    }

    /// One schema for every layer, instead of one schema a layer (`bronze`, `silver`, `gold`).
    ///
    /// An empty text takes back a value that a source of lower priority gives.
    db_name: Option<Name> = {
        example: "shop",
        value_name: "NAME",
        group: Group::Places,
        programs: Program::DATA,
        differs: Some(("wearpipe_db", "one schema a layer is how most lakes are laid out")),
    }

    /// Root of file drops: relative paths of feeds begin here.
    base_data_path: Location = {
        default: Some("data/raw"),
        value_name: "PATH|URL",
        group: Group::Places,
        programs: Program::DATA,
        differs: Some(("raw", "tables and raw files share one folder `data`")),
    }

    /// Volume that holds the file drops: a relative `--base-data-path` then begins at `<warehouse>/Volumes/<catalogue>/<schema>/<volume>/`.
    ///
    /// The schema is `--db-name`, or `bronze` without one. An empty text takes back a value that a source of lower priority gives.
    volume: Option<Name> = {
        example: "landing",
        value_name: "NAME",
        group: Group::Places,
        programs: Program::DATA,
        differs: Some(("wearpipe_vol", "a laptop has folders, not volumes")),
    }

    /// Accepted so that command lines of the wearable pipeline run: positions ride in the tables' own commits, so no checkpoint is written there.
    ///
    /// Spill files go to `spill` below it when it is a folder of this machine. A run with it says so once.
    base_checkpoint_path: Option<Location> = {
        example: "data/checkpoints",
        value_name: "PATH|URL",
        group: Group::Places,
        programs: &[Program::Run, Program::Job, Program::Doctor, Program::Maintain, Program::Bronze, Program::Silver, Program::Gold],
        differs: Some(("chkpnt", "there is nothing to keep outside the tables")),
    }

    /// The pipeline: the key of one of the bundle around the working folder, a folder of SQL files, a `.sql` file, or a YAML file.
    ///
    /// May be repeated for files and folders, which together are one pipeline: all of them SQL, or all of them YAML. A bundle is the
    /// nearest folder, going up, that holds a `databricks.yml`; where it has no pipeline of the name, a folder of that name is taken.
    pipeline: Vec<PathBuf> = {
        default: Some("pipeline.yml"),
        value_name: "KEY|FOLDER|FILE",
        short: Some('p'),
        group: Group::Places,
        programs: Program::PIPELINES,
    }

    /// Kafka brokers to begin with, `host:port` separated by commas, for feeds that name none.
    kafka_bootstrap: Option<String> = {
        example: "broker-1:9092,broker-2:9092",
        value_name: "HOST:PORT",
        group: Group::Places,
        programs: Program::TOPICS,
    }

    /// Consumer group of continuous runs, for feeds that name none; otherwise `tributary-<pipeline>`. A drain joins no group.
    kafka_group: Option<String> = {
        example: "lakehouse",
        value_name: "GROUP",
        group: Group::Places,
        programs: Program::SOURCES,
    }

    /// Property of the Kafka client as librdkafka names it, for example `security.protocol=SASL_SSL`. May be repeated.
    ///
    /// Passwords belong in `.env` or the environment, where pairs are separated by commas: a command line can be seen by others.
    /// What exactly-once reading decides cannot be set: `group.id`, `isolation.level` and the like.
    kafka_property: Properties = {
        example: "security.protocol=SASL_SSL",
        value_name: "NAME=VALUE",
        secret: true,
        group: Group::Places,
        programs: Program::TOPICS,
    }

    /// URL of the schema registry for Avro records, for feeds that name none.
    schema_registry: Option<Location> = {
        example: "http://registry:8081",
        value_name: "URL",
        group: Group::Places,
        programs: Program::TOPICS,
    }

    /// Credentials for the schema registry: `USER:PASSWORD`, or `Bearer TOKEN`.
    ///
    /// They belong in `.env` or the environment: a command line can be seen by others.
    schema_registry_auth: Option<String> = {
        example: "me:secret",
        value_name: "CREDENTIALS",
        secret: true,
        group: Group::Places,
        programs: Program::TOPICS,
    }

    /// Which layers run: bronze, silver, gold, or all, one after the other, each drained before the next.
    ///
    /// A dataset is of the layer that its schema is called after, whatever makes it; in a schema of another name, feeds are bronze,
    /// streaming tables silver and views gold. Within a layer and across layers datasets run in phases: what reads another after it,
    /// once that one is drained.
    layer: Layer = {
        default: Some("all"),
        value_name: "LAYER",
        group: Group::Selection,
        programs: &[Program::Run, Program::Plan, Program::Setup],
        differs: Some(("bronze", "a run that says nothing keeps everything current")),
    }

    /// Only these datasets (`schema.table` or `table`), without what they read. May be repeated or separated by commas.
    only: Vec<String> = {
        example: "silver.orders",
        value_name: "TABLE",
        group: Group::Selection,
        programs: Program::CHOOSES,
    }

    /// Only these datasets, as with `only`; the word of the platform's own pipelines.
    refresh: Vec<String> = {
        example: "silver.orders",
        value_name: "TABLE",
        reach: Reach::CommandLine,
        group: Group::Selection,
        programs: Program::DATASETS,
    }

    /// Build these datasets anew: one commit replaces all rows of a table by what its sources hold, flows that run once run again, the
    /// source of a feed is read from its start. Without `only` or `refresh` nothing else is run. Refused where `pipelines.reset.allowed`
    /// is `false`.
    full_refresh: Vec<String> = {
        example: "silver.orders,gold.revenue",
        value_name: "TABLE",
        reach: Reach::CommandLine,
        group: Group::Selection,
        programs: Program::DATASETS,
    }

    /// Build every dataset of the pipeline that is run anew, but those whose `pipelines.reset.allowed` is `false`, and feeds that stand by
    /// themselves.
    full_refresh_all: bool = {
        default: Some("false"),
        reach: Reach::CommandLine,
        group: Group::Selection,
        programs: Program::DATASETS,
    }

    /// Let a full refresh go on where a source no longer has all that the table was made of.
    accept_shorter_history: bool = {
        default: Some("false"),
        reach: Reach::CommandLine,
        group: Group::Selection,
        programs: Program::DATASETS,
    }

    /// Let streams pass over commits that updated or deleted rows of a table that they read by its appends, for this run: what they
    /// took up of those rows stays, and the report counts the commits.
    skip_change_commits: bool = {
        default: Some("false"),
        reach: Reach::CommandLine,
        group: Group::Selection,
        programs: Program::DATASETS,
    }

    /// Most files of one batch of a file feed.
    max_files_per_trigger: NonZeroU64 = {
        default: Some("1000"),
        value_name: "N",
        group: Group::Amount,
        programs: Program::FEEDS,
    }

    /// Most bytes of one batch of a feed; the file or record that crosses it is still taken.
    max_bytes_per_trigger: Option<ByteSize> = {
        example: "1GiB",
        value_name: "SIZE",
        group: Group::Amount,
        programs: Program::FEEDS,
    }

    /// Most records of one batch of a feed; the file that crosses it is still taken whole.
    max_records_per_trigger: Option<NonZeroU64> = {
        example: "1000000",
        value_name: "N",
        group: Group::Amount,
        programs: Program::FEEDS,
    }

    /// Most memory for rows in flight; larger work spills to disk or goes in slices. A process takes up to 180 MiB beside it.
    memory_limit: ByteSize = {
        default: Some("1GiB"),
        value_name: "SIZE",
        group: Group::Amount,
    }

    /// Most times a dataset plans again after another writer was first, before it gives up.
    attempts_max: NonZeroU32 = {
        default: Some("20"),
        value_name: "N",
        group: Group::Amount,
        programs: Program::MOVES,
    }

    /// Bytes of data files that one commit of maintenance takes away, and that are written in vain when it is killed.
    max_group_bytes: ByteSize = {
        default: Some("1GiB"),
        value_name: "SIZE",
        group: Group::Amount,
        programs: &[Program::Maintain],
    }

    /// Bytes of data files that are sorted together along a curve. What does not fit into memory spills, several times as large.
    max_sort_bytes: ByteSize = {
        default: Some("16GiB"),
        value_name: "SIZE",
        group: Group::Amount,
        programs: &[Program::Maintain],
    }

    /// The share of a file's rows that are marked as deleted, in percent, from which on it is written without them.
    purge_percent: NonZeroU32 = {
        default: Some("10"),
        value_name: "PERCENT",
        group: Group::Amount,
        programs: &[Program::Maintain],
    }

    /// Begin nothing, and give up what is under way, once maintenance has taken so long; exit 4 when something is left.
    time_limit: Option<Duration> = {
        example: "30 minutes",
        value_name: "TIME",
        group: Group::Time,
        programs: &[Program::Maintain],
    }

    /// A table whose rows somebody changed so recently gets one commit of maintenance in as much time, so that nobody is kept from their end.
    yield_to: Duration = {
        default: Some("1 minute"),
        value_name: "TIME",
        group: Group::Time,
        programs: &[Program::Maintain],
    }

    /// Run continuously; otherwise take what is there and exit.
    stream: bool = {
        default: Some("false"),
        group: Group::Time,
        programs: Program::RUNS,
    }

    /// Time between two triggers of a continuous run. A bare number is seconds.
    processing_time: Duration = {
        default: Some("15 seconds"),
        value_name: "TIME",
        group: Group::Time,
        programs: Program::RUNS,
    }

    /// Version of a source table to start from, honoured only while the target has no position yet.
    starting_version: u64 = {
        default: Some("0"),
        value_name: "VERSION",
        group: Group::Time,
        programs: Program::DATASETS,
    }

    /// Offsets of topic partitions to start from, `topic:partition=offset`, honoured only while the table has no position of them.
    ///
    /// Once this or `ending_offsets` names any partition, only those that they name are read, and only by a run that ends. A table
    /// that is short of its starting offset is refused, for what lies between would never be read; one that is past it goes on from
    /// where it is.
    starting_offsets: Offsets = {
        example: "shop.orders:0=1200",
        value_name: "OFFSETS",
        group: Group::Time,
        programs: Program::FEEDS,
    }

    /// Offsets of topic partitions to end before, `topic:partition=offset`; otherwise what the broker holds when the run begins.
    ///
    /// A table that is past its ending offset is refused: positions never go back. A backfill that was killed may be
    /// repeated as it was, and the next run without offsets goes on from where it ended.
    ending_offsets: Offsets = {
        example: "shop.orders:0=5000",
        value_name: "OFFSETS",
        group: Group::Time,
        programs: Program::FEEDS,
    }

    /// The instant that `current_date` and `current_timestamp` mean in silver and gold queries, so that a replay gives the same rows; otherwise the start of the run.
    ///
    /// Bronze does not depend on it: `_ingested_at` is when a record was really taken up.
    as_of: Option<DateTime<Utc>> = {
        example: "2024-05-01",
        value_name: "INSTANT",
        group: Group::Time,
        programs: Program::MOVES,
    }

    /// What to do when a source with positions of its own no longer has the records after the stored one; the choice is recorded in the table.
    on_gap: OnGap = {
        default: Some("stop"),
        value_name: "CHOICE",
        group: Group::Time,
        programs: Program::FEEDS,
    }

    /// Write the run report, a JSON document, to this file; also when the run fails.
    report: Option<PathBuf> = {
        example: "report.json",
        value_name: "FILE",
        group: Group::Output,
        programs: Program::REPORTS,
    }

    /// Serve metrics for Prometheus at `/metrics` and health at `/health` on this address while a continuous run goes on.
    ///
    /// Nothing is served unless it is set. There is no encryption and no password: listen where only those can reach who may.
    metrics_listen: Option<SocketAddr> = {
        example: "127.0.0.1:9464",
        value_name: "ADDR:PORT",
        group: Group::Output,
        programs: Program::RUNS,
    }

    /// Tell where rows come from as OpenLineage events, by HTTP to this address; the path `/api/v1/lineage` is added where it has none.
    ///
    /// A receiver that is away, refuses or hangs is warned of once and never fails a run.
    openlineage_url: Option<Location> = {
        example: "http://localhost:5000",
        value_name: "URL",
        standard_variables: &["OPENLINEAGE_URL"],
        group: Group::Output,
        programs: Program::MOVES,
    }

    /// Token that `openlineage_url` asks for.
    ///
    /// It belongs in `.env` or the environment: a command line can be seen by others.
    openlineage_api_key: Option<String> = {
        example: "secret",
        value_name: "TOKEN",
        secret: true,
        standard_variables: &["OPENLINEAGE_API_KEY"],
        group: Group::Output,
        programs: Program::MOVES,
    }

    /// Write the same events to this file, a JSON object a line, behind those that it has.
    openlineage_file: Option<PathBuf> = {
        example: "lineage.jsonl",
        value_name: "FILE",
        group: Group::Output,
        programs: Program::MOVES,
    }

    /// Namespace under which the jobs of OpenLineage events are known.
    openlineage_namespace: String = {
        default: Some("tributary"),
        value_name: "NAME",
        standard_variables: &["OPENLINEAGE_NAMESPACE"],
        group: Group::Output,
        programs: Program::MOVES,
    }

    /// How a run says what it does: auto is progress bars on a terminal and JSON lines otherwise.
    log_format: LogFormat = {
        default: Some("auto"),
        value_name: "FORMAT",
        group: Group::Output,
    }

    /// Which log events are written: a level (error, warn, info, debug, trace), or levels by module such as `warn,tributary_bronze=debug`.
    ///
    /// The default leaves out the Delta kernel, which calls it an error when it looks for a table that is not there yet.
    log_filter: String = {
        default: Some("warn,buoyant_kernel=off"),
        value_name: "FILTER",
        group: Group::Output,
    }

    /// How rows are printed.
    output: Output = {
        default: Some("table"),
        value_name: "FORMAT",
        short: Some('o'),
        group: Group::Output,
        programs: Program::PRINTS,
    }

    /// Exit with this code instead of 0 when no dataset had anything new, for orchestrators that skip what follows.
    exit_code_if_nothing_new: Option<u8> = {
        example: "99",
        value_name: "CODE",
        group: Group::Output,
        programs: Program::RUNS,
    }

    /// Which `[targets.NAME]` table of the settings file stands above its other entries.
    target: Option<Name> = {
        example: "dev",
        value_name: "NAME",
        group: Group::Sources,
    }

    /// Settings file to read instead of `./tributary.toml`; it must be there.
    config: Option<PathBuf> = {
        example: "conf/tributary.toml",
        value_name: "FILE",
        reach: Reach::BeforeFile,
        group: Group::Sources,
    }

    /// File of variables to read instead of `./.env`; it must be there.
    env_file: Option<PathBuf> = {
        example: "conf/dev.env",
        value_name: "FILE",
        reach: Reach::BeforeDotenv,
        group: Group::Sources,
    }

    /// Print every setting's value and where it came from, secrets hidden, and exit.
    print_config: bool = {
        default: Some("false"),
        reach: Reach::CommandLine,
        group: Group::Sources,
    }

    /// Resolve settings and pipeline, say what is wrong, do nothing, and exit.
    check: bool = {
        default: Some("false"),
        reach: Reach::CommandLine,
        group: Group::Sources,
        programs: Program::MOVES,
    }
}

impl Settings {
    /// Where relative paths of feeds begin, after `volume` has had its say.
    pub fn data_root(&self) -> Location {
        match &self.volume {
            Some(volume) if !self.base_data_path.is_absolute() => {
                let schema = self.db_name.as_ref().map_or("bronze", Name::as_str);
                let parts = ["Volumes", self.catalogue.as_str(), schema, volume.as_str(), self.base_data_path.as_str()];
                self.warehouse.join(&parts)
            }
            _ => self.base_data_path.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::value::Kind;

    #[test]
    fn every_setting_has_one_name_words_and_a_default_or_an_example() {
        let mut flags = BTreeSet::new();
        for setting in REGISTRY {
            assert!(flags.insert(setting.flag()), "{} is declared twice", setting.name);
            for alias in setting.aliases {
                assert!(flags.insert((*alias).to_owned()), "the alias {alias} is taken");
            }
            assert!(!setting.paragraphs().is_empty(), "{} says nothing", setting.name);
            assert!(
                setting.default.is_some() == setting.example.is_empty(),
                "{} has both a default and an example, or neither",
                setting.name
            );
            assert!(setting.kind == Kind::Switch || setting.value_name != "VALUE", "{} has no value name", setting.name);
            assert!(!setting.programs.is_empty());
        }
        assert!(REGISTRY.is_sorted_by_key(|setting| setting.group), "headings of help and page have one order");
    }

    #[test]
    fn every_default_fits_its_own_type() {
        let mut errors = Vec::new();
        let defaults = Settings::read(&Resolved::defaults(), &mut errors).unwrap();
        assert!(errors.is_empty());
        assert_eq!(defaults.memory_limit.bytes(), 1 << 30);
        assert_eq!(defaults.processing_time, Duration::from_secs(15));
        assert_eq!(defaults.layer, Layer::All);
        assert_eq!(defaults.db_name, None);
    }
}
