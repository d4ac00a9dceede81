//! An Avro schema as it is registered: parsed, with its references put in place, and said in two other ways: as Kafka
//! Connect's schema, which decides about columns, and as the plain schema that Arrow's decoder is given.
//!
//! Connect writes a field's meaning beside its type (`connect.name`, `connect.parameters`, `connect.type`); producers of
//! their own write Avro's logical types.

use std::collections::HashMap;
use std::sync::Arc;

use crate::connect::Schema;
use crate::json::{Broken, Cursor, Kind as Json};

/// A schema nested deeper than this is refused.
const DEPTH_MAX: usize = 64;
/// A schema of more parts than this, each reference counted with all it stands for, is refused.
const PARTS_MAX: usize = 20_000;

/// A type, and whether null may stand in its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Type {
    /// Which branch of the union is null; `None` = no union.
    pub null: Option<Branch>,
    pub body: Arc<Body>,
}

/// Which of the two branches of `[null, T]` or `[T, null]` is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Branch {
    First,
    Second,
}

/// A type without null.
#[derive(Debug, PartialEq)]
pub(crate) struct Body {
    pub kind: Kind,
    meaning: Meaning,
    /// How many parts it has, counted as often as they are named.
    parts: usize,
    /// The fewest bytes a value takes.
    pub bytes_min: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    /// So many bytes.
    Fixed(usize),
    Enum(Vec<String>),
    Array(Type),
    Map(Type),
    Record(Vec<Field>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub data: Type,
    /// Whether a default other than null is given.
    defaulted: bool,
}

/// What a type means besides its form.
#[derive(Debug, Default, PartialEq)]
struct Meaning {
    /// `connect.name`, else the logical type, else a record's full name.
    name: String,
    /// `connect.type`: `int8` or `int16` for an `int`.
    narrow: String,
    scale: Option<i32>,
    precision: Option<u32>,
    allowed: String,
    source_type: String,
    /// `connect.default`, other than null.
    defaulted: bool,
    /// A key and value that Connect writes for maps whose keys are no texts.
    is_entry: bool,
}

/// Why a schema cannot be used.
pub(crate) type Refusal = String;

/// Names met so far; `None` = being read.
type Names = HashMap<String, Option<Arc<Body>>>;

/// Reads a schema text; `references` are the texts it builds on, each after those it builds on itself.
pub(crate) fn parse(text: &str, references: &[String]) -> Result<Type, Refusal> {
    let mut parser = Parser { names: Names::new() };
    for reference in references {
        parser.text(reference)?;
    }
    parser.text(text)
}

struct Parser {
    names: Names,
}

/// A JSON text and the namespace that names in it belong to.
#[derive(Clone, Copy)]
struct Place<'t> {
    text: &'t [u8],
    at: usize,
    namespace: &'t str,
    depth: usize,
}

fn broken(problem: Broken) -> Refusal {
    format!("the schema is no json: {}", problem.message())
}

impl Parser {
    fn text(&mut self, text: &str) -> Result<Type, Refusal> {
        let bytes = text.as_bytes();
        let mut whole = Cursor::new(bytes);
        whole.kind().map_err(broken)?;
        let at = whole.at();
        whole.skip().and_then(|()| whole.end()).map_err(broken)?;
        self.any(Place { text: bytes, at, namespace: "", depth: 0 })
    }

    fn any(&mut self, place: Place<'_>) -> Result<Type, Refusal> {
        if place.depth > DEPTH_MAX {
            return Err(format!("the schema is nested deeper than {DEPTH_MAX}"));
        }
        let mut cursor = Cursor::from(place.text, place.at);
        match cursor.kind().map_err(broken)? {
            Json::Text => self.named(&owned(&mut cursor)?, place, Meaning::default()),
            Json::Array => self.union(place),
            Json::Object => self.object(place),
            _ => Err("the schema holds something that is no type".to_owned()),
        }
    }

    /// `[null, T]` or `[T, null]`.
    fn union(&mut self, place: Place<'_>) -> Result<Type, Refusal> {
        let branches = elements(place)?;
        let is_null = |at: &usize| {
            let mut cursor = Cursor::from(place.text, *at);
            matches!(cursor.text(), Ok(text) if text.raw == b"null")
        };
        let (null, at) = match branches.as_slice() {
            [one, other] if is_null(one) && !is_null(other) => (Branch::First, *other),
            [one, other] if is_null(other) && !is_null(one) => (Branch::Second, *one),
            _ => return Err(format!("a union of {} types other than null and one more has no column type", branches.len())),
        };
        let inner = self.any(Place { at, depth: place.depth + 1, ..place })?;
        if inner.null.is_some() {
            return Err("a union stands directly in a union".to_owned());
        }
        Ok(Type { null: Some(null), ..inner })
    }

    fn object(&mut self, place: Place<'_>) -> Result<Type, Refusal> {
        let object = members(place)?;
        let Some(at) = object.get("type").copied() else { return Err("a type is not named".to_owned()) };
        let mut cursor = Cursor::from(place.text, at);
        if cursor.kind().map_err(broken)? != Json::Text {
            return self.any(Place { at, depth: place.depth + 1, ..place });
        }
        let kind = owned(&mut cursor)?;
        let mut meaning = self.meaning(place, &object)?;
        let deeper = |at: usize| Place { at, depth: place.depth + 1, ..place };
        match kind.as_str() {
            "array" => {
                let Some(at) = object.get("items") else { return Err("an array without items".to_owned()) };
                let items = self.any(deeper(*at))?;
                if items.bytes_min() == 0 {
                    return Err("an array of items that take no bytes".to_owned());
                }
                build(Kind::Array(items), meaning)
            }
            "map" => {
                let Some(at) = object.get("values") else { return Err("a map without values".to_owned()) };
                let values = self.any(deeper(*at))?;
                build(Kind::Map(values), meaning)
            }
            "record" | "error" | "enum" | "fixed" => {
                let (full, namespace) = full_name(place, &object)?;
                if self.names.insert(full.clone(), None).is_some() {
                    return Err(format!("the name {full} stands for two types"));
                }
                let kind = match kind.as_str() {
                    "enum" => Kind::Enum(symbols(place, &object, &full)?),
                    "fixed" => Kind::Fixed(size(place, &object, &full)?),
                    _ => Kind::Record(self.fields(place, &object, &full, &namespace)?),
                };
                if meaning.name.is_empty() && matches!(kind, Kind::Record(_)) {
                    meaning.name.clone_from(&full);
                }
                let built = build(kind, meaning)?;
                self.names.insert(full, Some(Arc::clone(&built.body)));
                Ok(built)
            }
            other => self.named(other, place, meaning),
        }
    }

    /// A primitive type, or one that has been defined before.
    fn named(&mut self, name: &str, place: Place<'_>, meaning: Meaning) -> Result<Type, Refusal> {
        let kind = match name {
            "boolean" => Kind::Boolean,
            "int" => Kind::Int,
            "long" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "bytes" => Kind::Bytes,
            "string" => Kind::Text,
            "null" => return Err("a type that is always null has no column type".to_owned()),
            _ => {
                let inside = format!("{}.{name}", place.namespace);
                let known = self.names.get(&inside).filter(|_| !name.contains('.')).or_else(|| self.names.get(name));
                return match known {
                    Some(Some(body)) => Ok(Type { null: None, body: Arc::clone(body) }),
                    Some(None) => Err(format!("the type {name} contains itself, which no column type can")),
                    None => Err(format!("the type {name} is not defined, here or in the schema's references")),
                };
            }
        };
        build(kind, meaning)
    }

    fn fields(&mut self, place: Place<'_>, object: &HashMap<String, usize>, record: &str, namespace: &str) -> Result<Vec<Field>, Refusal> {
        let Some(at) = object.get("fields") else { return Err(format!("the record {record} has no fields")) };
        let mut fields: Vec<Field> = Vec::new();
        for at in elements(Place { at: *at, ..place })? {
            let within = Place { at, namespace, depth: place.depth + 1, ..place };
            let field = members(within)?;
            let name = match field.get("name") {
                Some(at) => owned(&mut Cursor::from(place.text, *at))?,
                None => return Err(format!("a field of the record {record} has no name")),
            };
            if fields.iter().any(|known| known.name == name) {
                return Err(format!("the record {record} has two fields {name}"));
            }
            let Some(at) = field.get("type") else { return Err(format!("the field {name} has no type")) };
            let data = self.any(Place { at: *at, ..within }).map_err(|problem| format!("field {name}: {problem}"))?;
            let defaulted = match field.get("default") {
                Some(at) => !is_null(place.text, *at)?,
                None => false,
            };
            fields.push(Field { name, data, defaulted });
        }
        if fields.is_empty() {
            return Err(format!("the record {record} has no fields"));
        }
        Ok(fields)
    }

    fn meaning(&self, place: Place<'_>, object: &HashMap<String, usize>) -> Result<Meaning, Refusal> {
        let text = |object: &HashMap<String, usize>, name: &str| -> Result<String, Refusal> {
            match object.get(name) {
                Some(at) => optional_text(place.text, *at),
                None => Ok(String::new()),
            }
        };
        let number = |name: &str| object.get(name).and_then(|at| Cursor::from(place.text, *at).number().ok()?.integer);
        let parameters = match object.get("connect.parameters") {
            Some(at) if Cursor::from(place.text, *at).kind().map_err(broken)? == Json::Object => members(Place { at: *at, ..place })?,
            _ => HashMap::new(),
        };
        let connect = text(object, "connect.name")?;
        let told = |name: &str| -> Result<Option<String>, Refusal> {
            let told = text(&parameters, name)?;
            Ok((!told.is_empty()).then_some(told))
        };
        let scale = match told("scale")? {
            Some(told) => told.parse().ok(),
            None => number("scale").and_then(|scale| i32::try_from(scale).ok()),
        };
        let precision = match told("connect.decimal.precision")? {
            Some(told) => told.parse().ok(),
            // Connect's converter writes a precision that means nothing where the source gave none.
            None if !connect.is_empty() => None,
            None => number("precision").and_then(|precision| u32::try_from(precision).ok()),
        };
        let logical = text(object, "logicalType")?;
        let is_decimal = connect.is_empty() && logical == "decimal";
        Ok(Meaning {
            name: if connect.is_empty() { logical } else { connect },
            narrow: text(object, "connect.type")?,
            scale: scale.or(is_decimal.then_some(0)),
            precision,
            allowed: told("allowed")?.unwrap_or_default(),
            source_type: told("__debezium.source.column.type")?.unwrap_or_default(),
            defaulted: match object.get("connect.default") {
                Some(at) => !is_null(place.text, *at)?,
                None => false,
            },
            is_entry: text(object, "connect.internal.type")? == "MapEntry",
        })
    }
}

/// A type without null.
fn build(kind: Kind, meaning: Meaning) -> Result<Type, Refusal> {
    let inner: usize = match &kind {
        Kind::Array(inner) | Kind::Map(inner) => inner.body.parts,
        Kind::Record(fields) => fields.iter().map(|field| field.data.body.parts).fold(0, usize::saturating_add),
        _ => 0,
    };
    let parts = inner.saturating_add(1);
    if parts > PARTS_MAX {
        return Err(format!("the schema has more than {PARTS_MAX} parts"));
    }
    let bytes_min = match &kind {
        Kind::Float => 4,
        Kind::Double => 8,
        Kind::Fixed(size) => *size,
        Kind::Record(fields) => fields.iter().map(|field| field.data.bytes_min()).fold(0, usize::saturating_add),
        _ => 1,
    };
    Ok(Type { null: None, body: Arc::new(Body { kind, meaning, parts, bytes_min }) })
}

fn owned(cursor: &mut Cursor<'_>) -> Result<String, Refusal> {
    let mut scratch = Vec::new();
    let text = cursor.text().map_err(broken)?;
    Ok(String::from_utf8_lossy(text.resolve(&mut scratch).map_err(broken)?).into_owned())
}

fn optional_text(text: &[u8], at: usize) -> Result<String, Refusal> {
    let mut cursor = Cursor::from(text, at);
    if cursor.kind().map_err(broken)? == Json::Text { owned(&mut cursor) } else { Ok(String::new()) }
}

fn is_null(text: &[u8], at: usize) -> Result<bool, Refusal> {
    Ok(Cursor::from(text, at).kind().map_err(broken)? == Json::Null)
}

/// Where the elements of an array begin.
fn elements(place: Place<'_>) -> Result<Vec<usize>, Refusal> {
    let mut cursor = Cursor::from(place.text, place.at);
    let mut at = Vec::new();
    let mut list = cursor.array().map_err(broken)?;
    while cursor.element(&mut list).map_err(broken)? {
        cursor.kind().map_err(broken)?;
        at.push(cursor.at());
        cursor.skip().map_err(broken)?;
    }
    Ok(at)
}

/// Where the values of an object begin.
fn members(place: Place<'_>) -> Result<HashMap<String, usize>, Refusal> {
    let mut cursor = Cursor::from(place.text, place.at);
    let mut at = HashMap::new();
    let mut scratch = Vec::new();
    let mut list = cursor.object().map_err(broken)?;
    while let Some(key) = cursor.member(&mut list).map_err(broken)? {
        let key = String::from_utf8_lossy(key.resolve(&mut scratch).map_err(broken)?).into_owned();
        cursor.kind().map_err(broken)?;
        at.insert(key, cursor.at());
        cursor.skip().map_err(broken)?;
    }
    Ok(at)
}

/// A definition's full name, and the namespace inside it.
fn full_name(place: Place<'_>, object: &HashMap<String, usize>) -> Result<(String, String), Refusal> {
    let Some(at) = object.get("name") else { return Err("a type is defined without a name".to_owned()) };
    let name = owned(&mut Cursor::from(place.text, *at))?;
    if let Some((namespace, _)) = name.rsplit_once('.') {
        let namespace = namespace.to_owned();
        return Ok((name, namespace));
    }
    let namespace = match object.get("namespace") {
        Some(at) => optional_text(place.text, *at)?,
        None => place.namespace.to_owned(),
    };
    let full = if namespace.is_empty() { name } else { format!("{namespace}.{name}") };
    Ok((full, namespace))
}

fn symbols(place: Place<'_>, object: &HashMap<String, usize>, name: &str) -> Result<Vec<String>, Refusal> {
    let Some(at) = object.get("symbols") else { return Err(format!("the enum {name} has no symbols")) };
    let at = elements(Place { at: *at, ..place })?;
    let symbols = at.into_iter().map(|at| owned(&mut Cursor::from(place.text, at))).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = symbols.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if symbols.is_empty() || sorted.len() < symbols.len() {
        return Err(format!("the enum {name} has no symbols, or one twice"));
    }
    Ok(symbols)
}

/// No `fixed` is larger.
const FIXED_MAX: i64 = 1 << 20;

fn size(place: Place<'_>, object: &HashMap<String, usize>, name: &str) -> Result<usize, Refusal> {
    let size = object.get("size").and_then(|at| Cursor::from(place.text, *at).number().ok()?.integer);
    let size = size.filter(|size| (1..=FIXED_MAX).contains(size)).and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| format!("the fixed type {name} has no size from 1 to {FIXED_MAX}"))
}

impl Type {
    /// The fewest bytes a value takes.
    pub(crate) fn bytes_min(&self) -> usize {
        if self.null.is_some() { 1 } else { self.body.bytes_min }
    }

    /// Fields of a record; none of anything else.
    pub(crate) fn fields(&self) -> &[Field] {
        match &self.body.kind {
            Kind::Record(fields) => fields,
            _ => &[],
        }
    }

    /// As Kafka Connect says it.
    pub(crate) fn connect(&self) -> Schema {
        let body = &*self.body;
        let meaning = &body.meaning;
        let mut schema = Schema {
            name: meaning.name.clone(),
            optional: self.null.is_some(),
            defaulted: meaning.defaulted,
            scale: meaning.scale,
            precision: meaning.precision,
            allowed: meaning.allowed.clone(),
            source_type: meaning.source_type.clone(),
            ..Schema::default()
        };
        schema.kind = match &body.kind {
            Kind::Boolean => "boolean",
            Kind::Int => match meaning.narrow.as_str() {
                "int8" => "int8",
                "int16" => "int16",
                _ => "int32",
            },
            Kind::Long => "int64",
            Kind::Float => "float",
            Kind::Double => "double",
            Kind::Bytes | Kind::Fixed(_) => "bytes",
            Kind::Text | Kind::Enum(_) => "string",
            Kind::Array(items) => match items.entry() {
                Some((key, value)) => {
                    schema.items = vec![key.connect(), value.connect()];
                    "map"
                }
                None => {
                    schema.items = vec![items.connect()];
                    "array"
                }
            },
            Kind::Map(values) => {
                schema.items = vec![Schema { kind: "string".to_owned(), ..Schema::default() }, values.connect()];
                "map"
            }
            Kind::Record(fields) => {
                schema.fields = fields.iter().map(Field::connect).collect();
                "struct"
            }
        }
        .to_owned();
        schema
    }

    /// The key and value of an element by which Connect writes a map.
    pub(crate) fn entry(&self) -> Option<(&Self, &Self)> {
        match self.fields() {
            [key, value] if self.body.meaning.is_entry => Some((&key.data, &value.data)),
            _ => None,
        }
    }

    /// The schema text for Arrow's decoder: the same bytes, nothing about what they mean, every name a number.
    pub(crate) fn plain(&self) -> String {
        let mut text = String::new();
        self.write_plain(&mut text, &mut 0);
        text
    }

    fn write_plain(&self, out: &mut String, names: &mut usize) {
        match self.null {
            None => self.body.kind.write_plain(out, names),
            Some(Branch::First) => {
                out.push_str("[\"null\",");
                self.body.kind.write_plain(out, names);
                out.push(']');
            }
            Some(Branch::Second) => {
                out.push('[');
                self.body.kind.write_plain(out, names);
                out.push_str(",\"null\"]");
            }
        }
    }
}

impl Field {
    fn connect(&self) -> Schema {
        let mut schema = self.data.connect();
        schema.field.clone_from(&self.name);
        schema.defaulted |= self.defaulted;
        schema
    }
}

impl Kind {
    fn write_plain(&self, out: &mut String, names: &mut usize) {
        *names += 1;
        let name = *names;
        match self {
            Self::Boolean => out.push_str("\"boolean\""),
            Self::Int => out.push_str("\"int\""),
            Self::Long => out.push_str("\"long\""),
            Self::Float => out.push_str("\"float\""),
            Self::Double => out.push_str("\"double\""),
            Self::Bytes => out.push_str("\"bytes\""),
            Self::Text => out.push_str("\"string\""),
            Self::Fixed(size) => out.push_str(&format!(r#"{{"type":"fixed","name":"t{name}","size":{size}}}"#)),
            Self::Enum(symbols) => {
                let symbols: Vec<String> = (0..symbols.len()).map(|at| format!("\"s{at}\"")).collect();
                out.push_str(&format!(r#"{{"type":"enum","name":"t{name}","symbols":[{}]}}"#, symbols.join(",")));
            }
            Self::Array(items) => {
                out.push_str(r#"{"type":"array","items":"#);
                items.write_plain(out, names);
                out.push('}');
            }
            Self::Map(values) => {
                out.push_str(r#"{"type":"map","values":"#);
                values.write_plain(out, names);
                out.push('}');
            }
            Self::Record(fields) => {
                out.push_str(&format!(r#"{{"type":"record","name":"t{name}","fields":["#));
                for (at, field) in fields.iter().enumerate() {
                    out.push_str(&format!(r#"{}{{"name":"f{at}","type":"#, if at == 0 { "" } else { "," }));
                    field.data.write_plain(out, names);
                    out.push('}');
                }
                out.push_str("]}");
            }
        }
    }
}
