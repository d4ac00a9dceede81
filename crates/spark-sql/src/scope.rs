//! What names mean at a place of a query: found without regard to case, spelled as the table or alias spells them.

use tributary_fault::nearest;
use tributary_lake::arrow::datatypes::DataType;
use tributary_lake::datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Spanned};

use crate::{Error, error};

/// A column that can be named.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub name: String,
    /// Known for columns of tables that only pass through; then fields inside can be named too.
    pub data_type: Option<DataType>,
    /// What the rewritten query calls it, where that is another name.
    pub called: Option<String>,
    /// What stands for it, where it is no column of the engine's.
    pub said: Option<Expr>,
    /// Whether stars bring it.
    pub starred: bool,
    /// Whether it is found without the name of its relation: a side of USING is not, and what both sides are afterwards is.
    pub bare: bool,
}

impl Column {
    pub fn new(name: impl Into<String>, data_type: Option<DataType>) -> Self {
        Self { name: name.into(), data_type, called: None, said: None, starred: true, bare: true }
    }
}

/// Something in a FROM clause.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Relation {
    /// What the rewritten query calls it; none for columns that are of no relation of the engine's.
    pub alias: Option<String>,
    /// What the text may call it: the alias alone, or catalogue, schema and table, most significant first; nothing for a subquery
    /// without a name.
    pub names: Vec<String>,
    pub columns: Vec<Column>,
}

impl Relation {
    fn is_called(&self, qualifier: &[Ident]) -> bool {
        let ends = self.names.iter().rev().zip(qualifier.iter().rev());
        qualifier.len() <= self.names.len() && ends.into_iter().all(|(name, part)| name.eq_ignore_ascii_case(&part.value))
    }

    fn called<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c Column> {
        self.columns.iter().filter(move |column| same(&column.name, name))
    }

    /// One of its columns as the rewritten query says it.
    pub fn said(&self, column: &Column) -> Expr {
        if let Some(said) = &column.said {
            return said.clone();
        }
        let name = Ident::new(column.called.as_ref().unwrap_or(&column.name));
        match &self.alias {
            Some(alias) => Expr::CompoundIdentifier(vec![Ident::new(alias), name]),
            None => Expr::Identifier(name),
        }
    }
}

/// Everything that can be named at one place of a query.
#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    pub relations: Vec<Relation>,
    /// Names of the select list; asked before the columns of the relations where `outputs_first`.
    pub outputs: Vec<Column>,
    pub outputs_first: bool,
    pub outside: Outside<'a>,
}

/// What a query can name besides what it reads itself.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Outside<'a> {
    /// Common table expressions.
    pub named: &'a [Named],
    /// The query around it.
    pub outer: Option<&'a Scope<'a>>,
}

/// A common table expression that can be named.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub name: String,
    pub columns: Vec<Column>,
}

/// Whether two names are one.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

impl Scope<'_> {
    /// What a subquery at this place can name.
    pub(crate) fn of_subquery(&self) -> Outside<'_> {
        Outside { named: self.outside.named, outer: Some(self) }
    }

    /// What a chain of names is.
    pub(crate) fn resolve(&self, parts: &[Ident]) -> Result<Found, Error> {
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(found) = here.resolve_here(parts)? {
                return Ok(found);
            }
            scope = here.outside.outer;
        }
        Err(self.no_column(parts))
    }

    /// The relation that a name before `.*` is.
    pub(crate) fn relation(&self, name: &ObjectName) -> Result<&Relation, Error> {
        let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let called: Vec<&Relation> = self.relations.iter().filter(|relation| relation.is_called(&parts)).collect();
        match called.as_slice() {
            [one] => Ok(one),
            [] => {
                let known = self.relations.iter().filter_map(|relation| relation.names.last().map(String::as_str));
                let suggestion = nearest(&written(&parts), known).map(str::to_owned);
                Err(Error::NoTable { table: name.to_string(), suggestion, span: error::position(name.span()) })
            }
            several => {
                let candidates: Vec<String> = several.iter().map(|relation| relation.names.join(".")).collect();
                Err(Error::Ambiguous { name: name.to_string(), candidates: candidates.join(", "), span: error::position(name.span()) })
            }
        }
    }

    fn resolve_here(&self, parts: &[Ident]) -> Result<Option<Found>, Error> {
        let mut outputs = self.outputs.iter().filter(|column| same(&column.name, &parts[0].value));
        let outputs = (outputs.next(), outputs.next());
        let is_several = matches!(outputs, (Some(_), Some(_)));
        let output = match outputs {
            // of several it is the one that is a column of a relation
            (Some(_), Some(_)) if !self.bare(&parts[0].value).is_empty() => None,
            (Some(_), Some(_)) => return Err(several(parts)),
            (Some(column), None) => Some(chain(bare(column), column, &parts[1..])),
            (None, _) => None,
        };
        if let (true, Some(_)) = (self.outputs_first, &output) {
            return Ok(output);
        }
        for qualifiers in (1..parts.len().min(4)).rev() {
            let called: Vec<&Relation> = self.relations.iter().filter(|relation| relation.is_called(&parts[..qualifiers])).collect();
            let name = &parts[qualifiers].value;
            let found: Vec<(&Relation, &Column)> =
                called.iter().flat_map(|relation| relation.called(name).map(|column| (*relation, column))).collect();
            match found.as_slice() {
                [] => {}
                [(relation, column)] => return Ok(Some(chain(relation.said(column), column, &parts[qualifiers + 1..]))),
                several => return Err(ambiguous(parts, several.iter().map(|(relation, column)| (*relation, *column)))),
            }
        }
        let found: Vec<(&Relation, &Column)> = self.bare(&parts[0].value);
        match found.as_slice() {
            [] => Ok(output),
            [(relation, one)] if is_several => Ok(Some(chain(relation.said(one), one, &parts[1..]))),
            [(_, one)] => Ok(Some(chain(bare(one), one, &parts[1..]))),
            several => Err(ambiguous(parts, several.iter().map(|(relation, column)| (*relation, *column)))),
        }
    }

    /// The number of the relation here, and of its column, that a chain of names begins with; none where there are several.
    pub(crate) fn spot(&self, parts: &[Ident]) -> Option<(usize, usize)> {
        (0..parts.len().min(4)).rev().find_map(|qualifiers| {
            let relations = self.relations.iter().enumerate();
            let called = relations.filter(|(_, relation)| qualifiers == 0 || relation.is_called(&parts[..qualifiers]));
            let found =
                called.flat_map(|(at, relation)| relation.columns.iter().enumerate().map(move |(place, column)| (at, place, column)));
            let name = &parts[qualifiers].value;
            let mut found = found.filter(|(_, _, column)| same(&column.name, name) && (qualifiers > 0 || column.bare));
            match (found.next(), found.next()) {
                (Some((at, place, _)), None) => Some((at, place)),
                _ => None,
            }
        })
    }

    /// Whether a chain of names is a column here, or might be several.
    pub(crate) fn knows(&self, parts: &[Ident]) -> bool {
        self.resolve_here(parts).map_or(true, |found| found.is_some())
    }

    /// The columns of this name that need no name of a relation.
    pub(crate) fn bare<'c>(&'c self, name: &'c str) -> Vec<(&'c Relation, &'c Column)> {
        let found = self.relations.iter().flat_map(|relation| relation.called(name).map(move |column| (relation, column)));
        found.filter(|(_, column)| column.bare).collect()
    }

    fn no_column(&self, parts: &[Ident]) -> Error {
        let written = written(parts);
        let mut known = Vec::new();
        let mut scope = Some(self);
        while let Some(here) = scope {
            for relation in &here.relations {
                for column in &relation.columns {
                    known.push(column.name.clone());
                    if let (true, Some(alias)) = (parts.len() > 1, relation.names.last()) {
                        known.push(format!("{alias}.{}", column.name));
                    }
                }
            }
            known.extend(here.outputs.iter().map(|column| column.name.clone()));
            scope = here.outside.outer;
        }
        let suggestion = nearest(&written, known.iter().map(String::as_str)).map(str::to_owned);
        Error::NoColumn { column: written, suggestion, span: parts.first().and_then(|part| error::position(part.span)) }
    }
}

/// The parts as they are written.
pub(crate) fn written(parts: &[Ident]) -> String {
    parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".")
}

/// The error of a name that a select list gives several columns.
fn several(parts: &[Ident]) -> Error {
    let span = parts.first().and_then(|part| error::position(part.span));
    Error::Ambiguous { name: written(parts), candidates: "several columns of the select list".to_owned(), span }
}

/// The error of a name that is that of several columns.
pub(crate) fn ambiguous<'r>(parts: &[Ident], candidates: impl Iterator<Item = (&'r Relation, &'r Column)>) -> Error {
    let candidates: Vec<String> = candidates
        .map(|(relation, column)| format!("{}.{}", relation.names.last().map_or("a subquery", String::as_str), column.name))
        .collect();
    let span = parts.first().and_then(|part| error::position(part.span));
    Error::Ambiguous { name: written(parts), candidates: candidates.join(", "), span }
}

/// A column of a relation, or a field inside it, spelled as they are.
#[derive(Debug)]
pub(crate) struct Found {
    /// The column.
    pub column: Expr,
    /// Fields below the column, outermost first.
    pub fields: Vec<String>,
    /// What it all ends in.
    pub end: Column,
}

/// A column without the name of its relation.
fn bare(column: &Column) -> Expr {
    column.said.clone().unwrap_or_else(|| Expr::Identifier(Ident::new(column.called.as_ref().unwrap_or(&column.name))))
}

fn chain(said: Expr, column: &Column, fields: &[Ident]) -> Found {
    let mut found = Found { column: said, fields: Vec::new(), end: column.clone() };
    for field in fields {
        let inside = match &found.end.data_type {
            Some(DataType::Struct(inside)) => inside.iter().find(|inside| same(inside.name(), &field.value)),
            _ => None,
        };
        found.end = match inside {
            Some(inside) => Column::new(inside.name(), Some(inside.data_type().clone())),
            None => Column::new(&field.value, None),
        };
        found.fields.push(found.end.name.clone());
    }
    found
}
