//! What is retained beside the visible rows: table `_state.<table>`, which no reader of the dataset needs to see.
//!
//! It is written before the target and may run ahead of it, by a run that died in between or by one that has lost its place. So
//! the target's commit names the version of `_state` it belongs to, and that version is what is read, whatever came after it;
//! the next version is written as that one with its changes, and leaves out whatever came in between. Each row carries the
//! source and the version of it that made it, and counts only up to the target's own position.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tributary_lake::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListBuilder, RecordBatch, RecordBatchOptions, StringArray, StringBuilder,
    TimestampMicrosecondArray, UInt32Array,
};
use tributary_lake::arrow::compute::take_record_batch;
use tributary_lake::arrow::datatypes::{DataType as Arrow, Field, Fields, Int64Type, Schema};
use tributary_lake::arrow::error::ArrowError;
use tributary_lake::{
    Commit, CommitOutcome, DELETION_VECTORS_ON, DataFile, Found, KeyProbe, KeySearch, Lake, Operation, Progress, Reads, Table, TakenOut,
    Taker, WriterOptions,
};
use tributary_specs::{Column, DELETE_MEMORY_SECONDS, DataType, GrowthPolicy, TableName, TableSpec};

use crate::conform::conform;
use crate::error::{Error, Result};
use crate::events::{Events, Kind};
use crate::growth::{self, any_retyped};
use crate::identity::Identity;
use crate::leaves::{LeafSet, Leaves};
use crate::retaining::Added;
use crate::search::Place;
use crate::target::Target;

const KIND: &str = "__kind";
const SCOPE: &str = "__scope";
const SEQUENCE: &str = "__sequence";
const POSITION: &str = "__position";
const UNWRITTEN: &str = "__unwritten";
const CARRIED: &str = "__carried";
const OTHER_KEY: &str = "__other_key";
const COVERS_ROW: &str = "__covers_row";
const SOURCE: &str = "__source";
const SOURCE_VERSION: &str = "__source_version";
const RETAINED_AT: &str = "__retained_at";

/// Events of one key.
const OF_A_KEY: &str = "key";
/// Key changes.
const OF_LINKS: &str = "link";
/// Truncates and cuts of every key.
const OF_ALL: &str = "all";

const OWNER: &str = "tributary.target";

/// The state a plan is made on.
#[derive(Debug)]
pub(crate) struct State {
    name: TableName,
    owner: TableName,
    /// The latest version: what the next one is written over.
    latest: Option<Table>,
    /// The version that belongs to the target: what is read.
    current: Option<KeySearch>,
    /// The version the target's commit names.
    recorded: Option<i64>,
    /// The table that version is of.
    identity: Identity,
    /// The target's own positions, by the label of their flow.
    reached: BTreeMap<String, i64>,
    /// Nothing that is there counts: the target is built anew.
    fresh: bool,
    ignores_position: bool,
}

/// Retained events read, and where each is.
#[derive(Debug)]
pub(crate) struct Retained {
    pub events: Events,
    pub places: Vec<Place>,
}

/// What changes in the state, over all slices.
#[derive(Default)]
pub(crate) struct StateChanges {
    pub removed: BTreeMap<usize, Vec<u64>>,
    pub added: Added,
}

/// Which of the state is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateReads {
    /// The version that the target names, up to the target's positions.
    Named,
    /// The latest, whatever the target says: only a control asks for that.
    Latest,
    /// None: the target is built anew.
    Nothing,
}

/// Where new state rows come from.
#[derive(Debug, Clone)]
pub(crate) struct Maker<'a> {
    /// The label of the flow.
    pub flow: &'a str,
    pub version: u64,
}

/// How writing the state ended.
pub(crate) enum Written {
    /// It is there; the target's commit names its version and the table so, where it does not yet.
    Planned(Vec<Progress>),
    /// Another run wrote it meanwhile.
    Lost(CommitOutcome),
}

/// The state table of a dataset.
pub(crate) fn table_name(target: &TableName) -> TableName {
    TableName::new("_state", &target.name)
}

/// The application id of the state's version in the target's commits.
fn app_id(target: &TableName) -> String {
    format!("tributary:state:{target}")
}

/// The same for what tells which table the state is.
fn id_app_id(target: &TableName) -> String {
    format!("tributary:state-id:{target}")
}

impl State {
    /// Opens the state that belongs to the target.
    ///
    /// # Errors
    /// When it belongs to another dataset, or is not the one that the target was planned on, at that version or a later one.
    pub async fn open(
        lake: &Lake,
        target: &TableName,
        table: Option<&Table>,
        reached: BTreeMap<String, i64>,
        reads: StateReads,
    ) -> Result<Self> {
        let name = table_name(target);
        let open = |source| Error::lake("open", &name, source);
        let latest = lake.table(&name).await.map_err(open)?;
        if let Some(owner) = latest.as_ref().and_then(|latest| latest.properties().get(OWNER)).filter(|owner| **owner != target.to_string())
        {
            return Err(Error::StateOfAnother { table: target.clone(), state: Box::new(name), owner: owner.clone() });
        }
        let recorded = match table {
            Some(table) => table.progress(&app_id(target)).await.map_err(|source| Error::lake("read positions of", target, source))?,
            None => None,
        };
        let named = Identity::recorded(table, id_app_id(target)).await;
        let identity = named.map_err(|source| Error::lake("read positions of", target, source))?;
        let (fresh, ignores_position) = (reads == StateReads::Nothing, reads == StateReads::Latest);
        if let Some(lost) = lost(latest.as_ref(), recorded, &identity).filter(|_| !fresh) {
            return Err(Error::StateLost { table: target.clone(), state: Box::new(name), lost });
        }
        let current = match (&latest, recorded.and_then(|version| u64::try_from(version).ok())) {
            _ if fresh => None,
            (Some(latest), _) if ignores_position => Some(latest.clone()),
            (Some(latest), Some(version)) if latest.version() != version => Some(latest.at_version(version).await.map_err(open)?),
            (Some(latest), Some(_)) => Some(latest.clone()),
            _ => None,
        };
        let current = match current {
            Some(table) => Some(KeySearch::new(&table, table.files().await.map_err(open)?)),
            None => None,
        };
        Ok(Self { name, owner: target.clone(), latest, current, recorded, identity, reached, fresh, ignores_position })
    }

    /// The retained events of keys.
    ///
    /// # Errors
    /// Store errors.
    pub async fn of_keys(&self, target: &Target, probe: &Arc<dyn KeyProbe>) -> Result<Retained> {
        let Some(search) = &self.current else { return self.nothing(target) };
        self.decode(target, search.find(of_scopes(search, &[OF_A_KEY]), probe).await.map_err(|source| self.unread(source))?)
    }

    fn unread(&self, source: tributary_lake::Error) -> Error {
        Error::lake("read rows of", &self.name, source)
    }

    /// Key changes, and truncates and cuts of every key.
    ///
    /// # Errors
    /// Store errors.
    pub async fn of_all(&self, target: &Target) -> Result<Retained> {
        let Some(search) = &self.current else { return self.nothing(target) };
        self.decode(target, search.all(of_scopes(search, &[OF_LINKS, OF_ALL])).await.map_err(|source| self.unread(source))?)
    }

    fn nothing(&self, target: &Target) -> Result<Retained> {
        let schema = Schema::new(fields(&columns(target)));
        let rows = RecordBatch::new_empty(Arc::new(schema));
        self.decode(target, Found { rows, places: Vec::new() })
    }

    fn decode(&self, target: &Target, hits: Found) -> Result<Retained> {
        let kernel = |error| Error::kernel(&self.name, error);
        let makers = hits.rows.column_by_name(SOURCE).and_then(|array| array.as_string_opt::<i32>());
        let counts = |row: &u32| {
            let versions = hits.rows.column_by_name(SOURCE_VERSION).and_then(|array| array.as_primitive_opt::<Int64Type>());
            let made = versions.filter(|versions| versions.is_valid(*row as usize)).map(|versions| versions.value(*row as usize));
            let by = makers.filter(|makers| makers.is_valid(*row as usize)).map(|makers| makers.value(*row as usize));
            let reached = by.and_then(|by| self.reached.get(by).copied());
            self.ignores_position || made.is_none_or(|made| reached.is_some_and(|reached| made <= reached))
        };
        let at: UInt32Array = (0..hits.rows.num_rows() as u32).filter(counts).collect();
        let rows = take_record_batch(&hits.rows, &at).map_err(kernel)?;
        let places = at.values().iter().map(|row| hits.places[*row as usize]).collect();
        Ok(Retained { events: decode(target, &rows).map_err(kernel)?, places })
    }

    /// Writes the changes.
    ///
    /// # Errors
    /// Store errors.
    pub async fn write(&self, lake: &Lake, target: &Target, changes: StateChanges, maker: &Maker<'_>) -> Result<Written> {
        let made_anew = self.fresh && (self.latest.is_some() || self.recorded.is_some());
        if !made_anew && changes.removed.is_empty() && changes.added.is_empty() {
            // A target of a release that did not name the table does so now.
            let known = self.latest.as_ref().filter(|_| self.recorded.is_some());
            return Ok(Written::Planned(known.and_then(|table| self.identity.take_on(table)).into_iter().collect()));
        }
        self.write_over(lake, target, changes, maker).await
    }

    /// Writes all of the state anew in the target's types, where they are wider.
    ///
    /// # Errors
    /// Store errors.
    pub async fn rewrite(&self, lake: &Lake, target: &Target) -> Result<Written> {
        let wanted = columns(target);
        let is_narrow = |table: &Table| grown(table, &wanted).is_some_and(|columns| any_retyped(table.columns(), &columns));
        match self.current.as_ref().is_some_and(|search| is_narrow(search.table())) {
            true => self.write_over(lake, target, StateChanges::default(), &Maker { flow: "", version: 0 }).await,
            false => Ok(Written::Planned(Vec::new())),
        }
    }

    async fn write_over(&self, lake: &Lake, target: &Target, changes: StateChanges, maker: &Maker<'_>) -> Result<Written> {
        let columns = columns(target);
        let spec = self.table_spec(target, columns.clone());
        let over = match &self.latest {
            Some(latest) => {
                lake.bring_to_declaration(latest.clone(), &spec).await.map_err(|source| Error::lake("write to", &self.name, source))?
            }
            None => crate::target::create(lake, &spec).await?,
        };
        let grown = grown(&over, &columns);
        let retypes = grown.as_ref().is_some_and(|columns| any_retyped(over.columns(), columns));
        let key_columns = target.shape.key_names().cloned().collect();
        let options = WriterOptions { key_columns, columns: grown.clone(), ..WriterOptions::default() };
        let mut write = StateWrite { state: self, over: &over, vectors: target.vectors, retypes, options, out: TakenOut::default() };
        write.keep_what_belongs(changes.removed).await?;
        write.add(target, &changes.added, maker, lake).await?;
        let TakenOut { marks, removes, adds } = write.out;
        if adds.is_empty() && removes.is_empty() && marks.is_empty() && grown.is_none() {
            // A run that died before its target's commit has left exactly this.
            return Ok(self.planned(&over, over.version()));
        }
        let reads = Reads::WholeTable;
        let commit = Commit { operation: Operation::Merge, adds, removes, marks, schema: grown, reads, ..Commit::default() };
        match over.commit(commit).await.map_err(|source| Error::lake("commit to", &self.name, source))? {
            CommitOutcome::Committed { version } => Ok(self.planned(&over, version)),
            lost => Ok(Written::Lost(lost)),
        }
    }

    fn planned(&self, table: &Table, version: u64) -> Written {
        let reached = Progress { app_id: app_id(&self.owner), expected: self.recorded, version: version as i64 };
        Written::Planned(std::iter::once(reached).chain(self.identity.take_on(table)).collect())
    }

    /// How long deletes are remembered stands on the table: maintenance collects by it, and nothing else does.
    fn table_spec(&self, target: &Target, columns: Vec<Column>) -> TableSpec {
        let memory = target.delete_memory.iter().map(|seconds| (DELETE_MEMORY_SECONDS.to_owned(), seconds.clone()));
        let own = [(OWNER.to_owned(), self.owner.to_string()), (DELETION_VECTORS_ON.to_owned(), target.vectors.to_string())];
        TableSpec {
            partition_by: vec![SCOPE.to_owned()],
            comment: Some(format!("what {} retains beside its rows; not for reading", self.owner)),
            properties: memory.chain(own).collect(),
            row_changes: true,
            ..TableSpec::new(self.name.clone(), columns)
        }
    }
}

/// A version of the state in the making.
struct StateWrite<'a> {
    state: &'a State,
    over: &'a Table,
    vectors: bool,
    /// Whether no file of the latest version can stay as it is.
    retypes: bool,
    options: WriterOptions,
    out: TakenOut,
}

impl StateWrite<'_> {
    fn lake_error(&self, action: &'static str, source: tributary_lake::Error) -> Error {
        Error::lake(action, &self.state.name, source)
    }

    /// Brings the latest version back to the one that belongs to the target, without the rows that go.
    async fn keep_what_belongs(&mut self, mut removed: BTreeMap<usize, Vec<u64>>) -> Result<()> {
        let live = self.over.files().await.map_err(|source| self.lake_error("list the files of", source))?;
        let Some(search) = &self.state.current else {
            self.out.removes.extend(live);
            return Ok(());
        };
        let own: HashMap<&str, usize> = search.files().iter().enumerate().map(|(number, file)| (file.path.as_str(), number)).collect();
        let taker = Taker { search, over: self.over, vectors: self.vectors, options: &self.options };
        let failed = |source| Error::lake("write to", &self.state.name, source);
        let mut stay = HashSet::new();
        for file in live {
            let same = |own: &&usize| !self.retypes && search.files()[**own].deletion_vector == file.deletion_vector;
            match own.get(file.path.as_str()).filter(same) {
                Some(own) => {
                    stay.insert(*own);
                }
                None => self.out.removes.push(file),
            }
        }
        for number in 0..search.files().len() {
            match (stay.contains(&number), removed.remove(&number)) {
                (true, None) => {}
                (true, Some(gone)) => taker.take(number, gone, &mut self.out).await.map_err(failed)?,
                (false, gone) => {
                    let mut gone = gone.unwrap_or_default();
                    gone.sort_unstable();
                    taker.copy(number, &gone, &mut self.out).await.map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    async fn add(&mut self, target: &Target, added: &Added, maker: &Maker<'_>, lake: &Lake) -> Result<()> {
        let mut writer = self.over.writer(self.options.clone()).map_err(|source| self.lake_error("write to", source))?;
        let now = lake.clock().now().timestamp_micros();
        for part in 0..added.parts() {
            let events = added.part(part).await.map_err(|error| Error::spilled(&self.state.name, error))?;
            let rows = encode(target, &events, maker, now).map_err(|error| Error::kernel(&self.state.name, error))?;
            writer.write(&rows).await.map_err(|source| self.lake_error("write to", source))?;
        }
        self.out.adds.extend(writer.finish().await.map_err(|source| self.lake_error("write to", source))?);
        Ok(())
    }
}

/// The numbers of the files that hold events of these scopes.
fn of_scopes(search: &KeySearch, scopes: &'static [&'static str]) -> Vec<usize> {
    let scope = |file: &DataFile| file.partition_values.get(SCOPE).cloned().flatten();
    let is_of = |file: &DataFile| scope(file).is_none_or(|scope| scopes.contains(&scope.as_str()));
    search.files().iter().enumerate().filter(|(_, file)| is_of(file)).map(|(number, _)| number).collect()
}

/// Every column of the state of a target.
fn columns(target: &Target) -> Vec<Column> {
    let shape = &target.shape;
    let business = shape.schema.fields().iter().map(|field| (field.name(), DataType::from_arrow(field.name(), field.data_type())));
    // Types of the target are Delta's already.
    let mut columns: Vec<Column> = business.filter_map(|(name, data_type)| Some(Column::new(name, data_type.ok()?))).collect();
    let keys = shape.keys.iter().map(|key| columns[*key].clone()).collect();
    let names = || DataType::Array(Box::new(DataType::String));
    columns.extend([Column::new(KIND, DataType::String), Column::new(SCOPE, DataType::String)]);
    columns.extend(target.sequence_type().map(|data_type| Column::new(SEQUENCE, data_type.clone())));
    columns.extend([
        Column::new(POSITION, DataType::String),
        Column::new(UNWRITTEN, names()),
        Column::new(CARRIED, names()),
        Column::new(OTHER_KEY, DataType::Struct(keys)),
        Column::new(COVERS_ROW, DataType::Boolean),
        Column::new(SOURCE, DataType::String),
        Column::new(SOURCE_VERSION, DataType::Long),
        Column::new(RETAINED_AT, DataType::Timestamp),
    ]);
    columns
}

/// What is lost of the state that the target was planned on; a target that names none needs none.
fn lost(latest: Option<&Table>, recorded: Option<i64>, identity: &Identity) -> Option<String> {
    let recorded = recorded?;
    let Some(latest) = latest else { return Some(format!("is gone (version {recorded} is needed)")) };
    if identity.is_not(latest) {
        return Some(format!("was made again (version {recorded} of the one before is needed)"));
    }
    let behind = u64::try_from(recorded).is_ok_and(|recorded| latest.version() < recorded);
    behind.then(|| format!("went back to version {}, as when it is restored from a copy (version {recorded} is needed)", latest.version()))
}

fn fields(columns: &[Column]) -> Fields {
    columns.iter().map(Column::to_arrow).collect()
}

/// The columns of the state after a commit that adds some, or has wider ones; none when it has all, as they are. A type that is wider
/// already, because a run died before its target's commit, stays.
fn grown(table: &Table, wanted: &[Column]) -> Option<Vec<Column>> {
    let mut columns = table.columns().to_vec();
    for column in wanted {
        match columns.iter_mut().find(|found| found.name == column.name) {
            Some(found) => {
                let grown = growth::grown(GrowthPolicy::Widen, &found.data_type, &column.data_type);
                found.data_type = grown.unwrap_or_else(|| column.data_type.clone());
            }
            None => columns.push(column.clone()),
        }
    }
    (columns != table.columns()).then_some(columns)
}

fn scope(kind: Kind) -> &'static str {
    match kind {
        Kind::Upsert | Kind::Delete | Kind::Cut => OF_A_KEY,
        Kind::Link => OF_LINKS,
        Kind::Truncate | Kind::TruncateCut => OF_ALL,
    }
}

fn encode(target: &Target, events: &Events, maker: &Maker<'_>, now: i64) -> Result<RecordBatch, ArrowError> {
    let columns = columns(target);
    let count = events.len();
    let text = |of: &dyn Fn(usize) -> Option<String>| Arc::new((0..count).map(of).collect::<StringArray>()) as ArrayRef;
    let array = |column: &Column| -> Result<ArrayRef, ArrowError> {
        let arrow = column.data_type.to_arrow();
        let null = || tributary_lake::arrow::array::new_null_array(&arrow, count);
        let found: ArrayRef = match column.name.as_str() {
            KIND => text(&|row| Some(events.kinds[row].name().to_owned())),
            SCOPE => text(&|row| Some(scope(events.kinds[row]).to_owned())),
            SEQUENCE => events.sequence.clone().unwrap_or_else(null),
            POSITION => events.position.clone().map_or_else(null, |position| Arc::new(position)),
            UNWRITTEN => leaf_names(&target.shape.leaves, count, |row| events.unwritten(row)),
            CARRIED => leaf_names(&target.shape.leaves, count, |row| events.carried(row)),
            OTHER_KEY => events.other_key.clone().map_or_else(null, |keys| Arc::new(keys)),
            COVERS_ROW => {
                Arc::new((0..count).map(|row| Some(events.covers_row.get(row).copied().unwrap_or(false))).collect::<BooleanArray>())
            }
            SOURCE => text(&|_| Some(maker.flow.to_owned())),
            SOURCE_VERSION => Arc::new(Int64Array::from(vec![maker.version as i64; count])),
            RETAINED_AT => Arc::new(TimestampMicrosecondArray::from(vec![now; count]).with_timezone("UTC")),
            name => events.rows.column_by_name(name).cloned().unwrap_or_else(null),
        };
        conform(&found, &arrow)
    };
    let arrays = columns.iter().map(array).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields(&columns))), arrays, &options)
}

fn leaf_names<'e>(leaves: &Leaves, count: usize, of: impl Fn(usize) -> Option<&'e LeafSet>) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for row in 0..count {
        match of(row) {
            Some(set) => {
                set.iter().for_each(|leaf| builder.values().append_value(&leaves.get(leaf).name));
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    Arc::new(builder.finish())
}

fn decode(target: &Target, rows: &RecordBatch) -> Result<Events, ArrowError> {
    let shape = &target.shape;
    let count = rows.num_rows();
    let column = |name: &str, data_type: &Arrow| match rows.column_by_name(name) {
        Some(array) => conform(array, data_type),
        None => Ok(tributary_lake::arrow::array::new_null_array(data_type, count)),
    };
    let business = shape.schema.fields().iter().map(|field| column(field.name(), field.data_type())).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let kinds = column(KIND, &Arrow::Utf8)?;
    let kinds = kinds.as_string::<i32>().iter().map(|name| {
        let named = name.and_then(Kind::named);
        named.ok_or_else(|| ArrowError::InvalidArgumentError("a retained event of an unknown kind".to_owned()))
    });
    let keys: Fields = shape
        .keys
        .iter()
        .map(|key| Field::new(shape.schema.field(*key).name(), shape.schema.field(*key).data_type().clone(), true))
        .collect();
    let sets = |name: &str| -> Result<Vec<LeafSet>, ArrowError> {
        let Some(lists) = rows.column_by_name(name).filter(|array| array.null_count() < array.len()) else { return Ok(Vec::new()) };
        Ok((0..count).map(|row| leaf_set(&shape.leaves, lists, row)).collect())
    };
    let sequence = target.sequence_type().map(|data_type| column(SEQUENCE, &data_type.to_arrow())).transpose()?;
    let covers = column(COVERS_ROW, &Arrow::Boolean)?;
    let covers = covers.as_boolean();
    Ok(Events {
        rows: RecordBatch::try_new_with_options(Arc::clone(&shape.schema), business, &options)?,
        kinds: kinds.collect::<Result<_, _>>()?,
        sequence,
        position: if shape.positions { Some(column(POSITION, &Arrow::Utf8)?.as_string::<i32>().clone()) } else { None },
        unwritten: sets(UNWRITTEN)?,
        carried: sets(CARRIED)?,
        other_key: Some(column(OTHER_KEY, &Arrow::Struct(keys))?.as_struct().clone()),
        before: None,
        covers_row: (0..count).map(|row| covers.is_valid(row) && covers.value(row)).collect(),
        ends: None,
    })
}

fn leaf_set(leaves: &Leaves, lists: &ArrayRef, row: usize) -> LeafSet {
    let Some(lists) = lists.as_list_opt::<i32>().filter(|lists| lists.is_valid(row)) else { return LeafSet::default() };
    let names = lists.value(row);
    let named = |name: &str| {
        leaves
            .iter()
            .enumerate()
            .filter(move |(_, leaf)| leaf.name == name || leaf.name.starts_with(&format!("{name}.")))
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    names.as_string::<i32>().iter().flatten().flat_map(named).collect()
}

/// Joins retained events of several reads.
pub(crate) fn join(target: &Target, parts: Vec<Retained>) -> Result<Retained, ArrowError> {
    let places = parts.iter().flat_map(|part| part.places.iter().copied()).collect();
    let events = Events::concat(&target.shape, parts.into_iter().map(|part| part.events).collect())?;
    Ok(Retained { events, places })
}
