//! `CREATE … TABLE | VIEW`: what it begins with, and its clauses.

use std::collections::BTreeMap;

use sqlparser::tokenizer::Token;
use tributary_fault::nearest;
use tributary_specs::Place;

use crate::cursor::Cursor;
use crate::error::Error;
use crate::parsed::{DatasetName, Definition, Kind, Placed};
use crate::portability::rules;
use crate::query;
use crate::read::Reader;

/// Clauses of a dataset, by the words they begin with.
const CLAUSES: &[&str] = &[
    "PARTITIONED BY",
    "CLUSTER BY",
    "COMMENT",
    "DEFAULT COLLATION",
    "TBLPROPERTIES",
    "SCHEDULE",
    "TRIGGER ON",
    "WITH ROW",
    "ROW FILTER",
    "LOCATION",
    "USING",
    "FLOW",
    "AS",
];

/// What a `CREATE` begins with.
#[derive(Debug, Default)]
struct Head {
    replace: bool,
    refresh: bool,
    private: bool,
    temporary: bool,
    legacy: bool,
    if_not_exists: bool,
}

impl Reader<'_> {
    /// Reads a statement that begins with CREATE; gives the name of the dataset, where it got so far.
    pub(crate) fn create(&mut self, cursor: &mut Cursor) -> Option<DatasetName> {
        let begin = cursor.place();
        cursor.at += 1;
        let mut head = Head::default();
        if cursor.eat(&["OR", "REFRESH"]) {
            head.refresh = true;
        } else if cursor.eat(&["OR", "REPLACE"]) {
            head.replace = true;
        }
        loop {
            if cursor.eat(&["PRIVATE"]) {
                head.private = true;
            } else if cursor.eat(&["TEMPORARY"]) || cursor.eat(&["TEMP"]) {
                head.temporary = true;
            } else {
                break;
            }
        }
        let after_create = cursor.at;
        let incremental = cursor.eat(&["INCREMENTAL"]);
        let streaming = incremental || cursor.eat(&["STREAMING"]);
        let live = cursor.eat(&["LIVE"]);
        let kind = if cursor.eat(&["TABLE"]) && (streaming || live) {
            if streaming { Kind::StreamingTable } else { Kind::MaterializedView }
        } else if cursor.at == after_create && cursor.eat(&["MATERIALIZED", "VIEW"]) {
            Kind::MaterializedView
        } else if (!streaming || live) && cursor.eat(&["VIEW"]) {
            head.temporary |= live;
            Kind::View
        } else {
            cursor.at = after_create;
            return self.create_other(cursor, &head, &begin);
        };
        head.legacy = live || incremental;
        self.dataset(cursor, kind, &mut head, &begin)
    }

    /// What else can be created, or is meant.
    fn create_other(&mut self, cursor: &mut Cursor, head: &Head, begin: &Place) -> Option<DatasetName> {
        if cursor.eat(&["FLOW"]) {
            if head.refresh || head.replace {
                let instead = Some("CREATE FLOW".to_owned());
                let reason = "a flow is what its file says; nothing is replaced".to_owned();
                self.report
                    .fault(begin, &Error::ClauseRefused { of: "CREATE FLOW".to_owned(), clause: "OR REPLACE".to_owned(), reason, instead });
            }
            return self.flow(cursor);
        }
        let words: Vec<String> = (0..2).map_while(|ahead| cursor.keyword(ahead)).collect();
        let kind = words.first().cloned().unwrap_or_else(|| cursor.found());
        match kind.as_str() {
            "FUNCTION" | "SINK" | "CONNECTION" | "VOLUME" | "CATALOG" | "SCHEMA" | "DATABASE" => {
                let mut name = cursor.within(cursor.at + 1, cursor.end);
                let _ = name.eat(&["IF", "NOT", "EXISTS"]);
                let named = crate::names::Written::read(&mut name).map(|name| name.parts.join("."));
                let reason = "a pipeline only defines datasets; such statements are for `tributary sql`";
                self.report.not_applied(begin.clone(), &format!("CREATE {kind}"), named.as_deref(), reason);
                let rule = if kind == "SINK" { &rules::CREATE_SINK } else { &rules::OTHER_STATEMENT };
                self.report.uses(begin.clone(), rule, named.as_deref());
            }
            _ => {
                let known = ["STREAMING TABLE", "MATERIALIZED VIEW", "TEMPORARY VIEW", "VIEW", "FLOW"];
                let shown = words.join(" ");
                let near = match kind.as_str() {
                    "TABLE" => Some("CREATE OR REFRESH STREAMING TABLE or MATERIALIZED VIEW".to_owned()),
                    _ => nearest(&shown, known)
                        .or_else(|| nearest(&kind, ["STREAMING", "MATERIALIZED", "VIEW", "FLOW"]))
                        .map(|near| format!("CREATE {near}")),
                };
                let begun = ["STREAMING", "MATERIALIZED", "LIVE", "INCREMENTAL"].contains(&kind.as_str()) && words.len() > 1;
                let place = cursor.tokens.place(cursor.at + usize::from(begun));
                self.report.fault(&place, &Error::UnknownStatement { statement: format!("CREATE {shown}"), nearest: near });
            }
        }
        None
    }

    fn dataset(&mut self, cursor: &mut Cursor, kind: Kind, head: &mut Head, begin: &Place) -> Option<DatasetName> {
        head.if_not_exists = cursor.eat(&["IF", "NOT", "EXISTS"]);
        let of_kind = format!("CREATE {}", kind.to_string().to_uppercase());
        let (written, mut name, place) = self.name(cursor, &of_kind)?;
        let of = written.parts.join(".");
        self.check_head(head, kind, &of, begin);
        if kind == Kind::View && head.temporary {
            if written.parts.len() > 1 {
                let reason = "a temporary view belongs to the pipeline alone and has no schema".to_owned();
                self.report.fault(&place, &Error::NameUnreadable { name: of.clone(), reason, instead: Some(name.name.clone()) });
            }
            name = DatasetName { catalog: None, schema: None, name: name.name };
        } else if name.schema.is_none() {
            let reason = "it has no schema, and neither has the pipeline".to_owned();
            let instead = Some(format!("schema.{of}, USE SCHEMA before it, or the pipeline's setting schema"));
            self.report.fault(&place, &Error::NameUnreadable { name: of.clone(), reason, instead });
        }
        let mut definition = Definition {
            name: name.clone(),
            kind,
            private: head.private || (head.temporary && kind != Kind::View) || (head.temporary && head.legacy),
            place,
            columns: Vec::new(),
            expectations: Vec::new(),
            primary_key: Vec::new(),
            partition_by: Placed::default(),
            cluster_by: Placed::default(),
            comment: None,
            properties: BTreeMap::new(),
            clauses: Vec::new(),
            query: None,
        };
        if cursor.sign(0) == Some(&Token::LParen) {
            self.items(cursor, &mut definition, &of);
        }
        self.clauses(cursor, &mut definition, &of);
        if kind != Kind::StreamingTable && definition.query.is_none() && !definition.clauses.iter().any(|clause| clause == "AS") {
            let missing = Error::ClauseMissing { of, clause: "AS", instead: "AS SELECT …".to_owned() };
            self.report.fault(&definition.place, &missing);
        }
        self.defined.datasets.push(definition);
        Some(name)
    }

    /// What stands before the name and is said by the name of the dataset.
    fn check_head(&mut self, head: &Head, kind: Kind, of: &str, begin: &Place) {
        let uses = [
            (head.refresh && !head.legacy, &rules::OR_REFRESH),
            (head.replace && kind == Kind::MaterializedView, &rules::OR_REPLACE),
            (head.legacy, &rules::LIVE),
            (head.if_not_exists, &rules::IF_NOT_EXISTS),
            ((head.private || head.temporary) && kind != Kind::View, &rules::PRIVATE),
        ];
        for (_, rule) in uses.into_iter().filter(|(used, _)| *used) {
            self.report.uses(begin.clone(), rule, Some(of));
        }
        if head.legacy {
            let instead = match kind {
                Kind::StreamingTable => "CREATE OR REFRESH STREAMING TABLE",
                Kind::MaterializedView => "CREATE OR REFRESH MATERIALIZED VIEW",
                Kind::View => "CREATE TEMPORARY VIEW",
            };
            self.report.notice(begin.clone(), "deprecated", format!("{of}: LIVE and INCREMENTAL are old spellings; write {instead}"));
        }
        if head.replace && kind == Kind::StreamingTable {
            let reason = "rows of a streaming table are not replaced".to_owned();
            let instead = Some("CREATE OR REFRESH STREAMING TABLE".to_owned());
            self.report.fault(begin, &Error::ClauseRefused { of: of.to_owned(), clause: "OR REPLACE".to_owned(), reason, instead });
        }
        if head.if_not_exists && (head.refresh || head.replace) {
            let reason = "it contradicts OR REFRESH".to_owned();
            self.report
                .fault(begin, &Error::ClauseRefused { of: of.to_owned(), clause: "IF NOT EXISTS".to_owned(), reason, instead: None });
        } else if head.if_not_exists {
            self.report.not_applied(begin.clone(), "IF NOT EXISTS", Some(of), "the definition that holds is the file's");
        }
        if (head.private || head.temporary) && kind != Kind::View {
            self.report.not_applied(begin.clone(), "PRIVATE", Some(of), "whoever reads the lake sees the table");
        }
    }

    /// The clauses behind name and columns, in any order, and the query or flow at the end.
    fn clauses(&mut self, cursor: &mut Cursor, definition: &mut Definition, of: &str) {
        while !cursor.is_done() {
            let place = cursor.place();
            let Some(clause) = clause_at(cursor) else {
                self.unknown_clause(cursor, of);
                continue;
            };
            if definition.clauses.iter().any(|known| known == clause) {
                self.report.fault(&place, &Error::ClauseTwice { of: of.to_owned(), clause: clause.to_owned() });
                cursor.at += 1;
                self.skip_to_clause(cursor);
                continue;
            }
            definition.clauses.push(clause.to_owned());
            let read = self.clause(cursor, clause, definition, of, &place);
            if read.is_none() {
                self.skip_to_clause(cursor);
            }
        }
        self.check_layouts(definition, of);
    }

    fn clause(&mut self, cursor: &mut Cursor, clause: &str, definition: &mut Definition, of: &str, place: &Place) -> Option<()> {
        let not_for_views = definition.kind == Kind::View && !matches!(clause, "COMMENT" | "TBLPROPERTIES" | "AS" | "DEFAULT COLLATION");
        if not_for_views {
            let reason = "a view has no rows of its own".to_owned();
            self.report.fault(place, &Error::ClauseRefused { of: of.to_owned(), clause: clause.to_owned(), reason, instead: None });
        }
        cursor.at += clause.split(' ').count();
        match clause {
            "PARTITIONED BY" => {
                let columns = self.columns(cursor, of, clause)?;
                definition.partition_by = Placed { value: columns, place: Some(place.clone()) };
            }
            "CLUSTER BY" => self.cluster_by(cursor, definition, of, place)?,
            "COMMENT" => {
                let text = cursor.string();
                if text.is_none() {
                    self.expected(cursor, &format!("{of}: COMMENT"), "a text in quotes");
                }
                definition.comment = Some(text?);
            }
            "DEFAULT COLLATION" => {
                let collation = cursor.identifier()?;
                if !collation.eq_ignore_ascii_case("UTF8_BINARY") {
                    let what = format!("DEFAULT COLLATION {collation}");
                    self.report.fault(
                        place,
                        &Error::NotExecuted { of: of.to_owned(), what, instead: Some("DEFAULT COLLATION UTF8_BINARY".to_owned()) },
                    );
                }
            }
            "TBLPROPERTIES" => self.properties(cursor, definition, of)?,
            "SCHEDULE" | "TRIGGER ON" => {
                self.report.uses(place.clone(), &rules::SCHEDULE, Some(of));
                self.report.not_applied(
                    place.clone(),
                    clause,
                    Some(of),
                    "what starts a run is outside the pipeline: cron, a job, or --stream",
                );
                self.schedule(cursor, clause, of)?;
            }
            "WITH ROW" | "ROW FILTER" => {
                if clause == "WITH ROW" && !cursor.eat(&["FILTER"]) {
                    self.expected(cursor, of, "WITH ROW FILTER function ON (columns)");
                    return None;
                }
                self.report.unprotected(place.clone(), "ROW FILTER", Some(of));
                self.report.uses(place.clone(), &rules::ROW_FILTER, Some(of));
                self.row_filter(cursor, of)?;
            }
            "LOCATION" => {
                let text = cursor.string();
                if text.is_none() {
                    self.expected(cursor, &format!("{of}: LOCATION"), "a path in quotes");
                }
                text?;
                self.report.uses(place.clone(), &rules::LOCATION, Some(of));
                self.report.not_applied(place.clone(), clause, Some(of), "tables are in <warehouse>/<catalogue>/<schema>/<table>");
            }
            "USING" => {
                let format = cursor.identifier()?;
                if !format.eq_ignore_ascii_case("delta") {
                    let instead = Some("USING delta, or nothing".to_owned());
                    self.report.fault(place, &Error::NotExecuted { of: of.to_owned(), what: format!("USING {format}"), instead });
                }
            }
            "FLOW" => self.flow_of_table(cursor, definition, of, place)?,
            _ => {
                let scope = self.scope.clone();
                definition.query = query::read(cursor, of, &scope, self.parameters, self.report);
                cursor.at = cursor.end;
            }
        }
        Some(())
    }

    fn cluster_by(&mut self, cursor: &mut Cursor, definition: &mut Definition, of: &str, place: &Place) -> Option<()> {
        if cursor.eat(&["AUTO"]) {
            self.report.uses(place.clone(), &rules::CLUSTER_BY_AUTO, Some(of));
            self.report.not_applied(
                place.clone(),
                "CLUSTER BY AUTO",
                Some(of),
                "columns are not chosen for you; name them: CLUSTER BY (a, b)",
            );
        } else if cursor.eat(&["NONE"]) {
            self.report.uses(place.clone(), &rules::CLUSTER_BY_NONE, Some(of));
        } else {
            let columns = self.columns(cursor, of, "CLUSTER BY")?;
            definition.cluster_by = Placed { value: columns, place: Some(place.clone()) };
        }
        Some(())
    }

    /// `('k' = 'v', k.l = v, …)`.
    fn properties(&mut self, cursor: &mut Cursor, definition: &mut Definition, of: &str) -> Option<()> {
        let Some(items) = cursor.bracketed() else {
            self.expected(cursor, &format!("{of}: TBLPROPERTIES"), "('name' = 'value', …)");
            return None;
        };
        for mut item in items {
            let place = item.place();
            let name = item.string().or_else(|| {
                let from = item.at;
                while matches!(item.sign(0), Some(Token::Word(_) | Token::Period)) {
                    item.at += 1;
                }
                let name: String = item.text_from(from).split_whitespace().collect();
                (!name.is_empty()).then(|| name.replace('`', ""))
            });
            let _ = item.eat_sign(&Token::Eq);
            let value = item.string().or_else(|| {
                let rest = item.rest().to_owned();
                let plain = matches!(item.sign(0), Some(Token::Word(_) | Token::Number(..) | Token::Minus));
                item.at = if plain { item.end } else { item.at };
                if plain && rest.starts_with(|c: char| c.is_alphabetic()) && !["true", "false"].contains(&rest.to_lowercase().as_str()) {
                    self.report.uses(place.clone(), &rules::UNQUOTED_PROPERTY, Some(of));
                }
                (plain && !rest.is_empty()).then_some(rest)
            });
            match (name, value) {
                (Some(name), Some(value)) if item.is_done() => {
                    let placed = Placed { value, place: Some(place.clone()) };
                    if definition.properties.insert(name.clone(), placed).is_some() {
                        self.report.fault(&place, &Error::ClauseTwice { of: of.to_owned(), clause: format!("the property {name:?}") });
                    }
                }
                _ => self.expected(&item, &format!("{of}: TBLPROPERTIES"), "'name' = 'value'"),
            }
        }
        Some(())
    }

    /// `SCHEDULE [REFRESH] EVERY n unit | CRON '…' [AT TIME ZONE tz]`, `TRIGGER ON UPDATE [AT MOST EVERY interval]`.
    fn schedule(&mut self, cursor: &mut Cursor, clause: &str, of: &str) -> Option<()> {
        if clause == "TRIGGER ON" {
            let update = cursor.eat(&["UPDATE"]);
            if update && cursor.eat(&["AT", "MOST", "EVERY"]) {
                let _ = cursor.eat(&["INTERVAL"]);
                cursor.at += 2;
            }
            if !update {
                self.expected(cursor, of, "TRIGGER ON UPDATE");
            }
            return update.then_some(());
        }
        let _ = cursor.eat(&["REFRESH"]);
        if cursor.eat(&["EVERY"]) {
            let number = matches!(cursor.sign(0), Some(Token::Number(..)));
            let unit = cursor.keyword(1).filter(|unit| ["HOUR", "HOURS", "DAY", "DAYS", "WEEK", "WEEKS"].contains(&unit.as_str()));
            if number && unit.is_some() {
                cursor.at += 2;
                return Some(());
            }
        } else if cursor.eat(&["CRON"]) && cursor.string().is_some() {
            if cursor.eat(&["AT", "TIME", "ZONE"]) && cursor.string().is_none() {
                let _ = cursor.identifier();
            }
            return Some(());
        }
        self.expected(cursor, of, "SCHEDULE EVERY n HOURS|DAYS|WEEKS or SCHEDULE CRON '…'");
        None
    }

    /// `f ON (a, b)`.
    fn row_filter(&mut self, cursor: &mut Cursor, of: &str) -> Option<()> {
        if crate::names::Written::read(cursor).is_none() {
            self.expected(cursor, &format!("{of}: ROW FILTER"), "the name of a function");
            return None;
        }
        if !cursor.eat(&["ON"]) || cursor.bracketed().is_none() {
            self.expected(cursor, &format!("{of}: ROW FILTER"), "ON (columns)");
            return None;
        }
        Some(())
    }

    fn check_layouts(&mut self, definition: &Definition, of: &str) {
        if let (Some(_), Some(place)) = (&definition.partition_by.place, &definition.cluster_by.place) {
            let reason = "it excludes PARTITIONED BY".to_owned();
            self.report.fault(place, &Error::ClauseRefused { of: of.to_owned(), clause: "CLUSTER BY".to_owned(), reason, instead: None });
        }
    }

    fn unknown_clause(&mut self, cursor: &mut Cursor, of: &str) {
        let place = cursor.place();
        if matches!(cursor.keyword(0).as_deref(), Some("SELECT" | "WITH")) || cursor.sign(0) == Some(&Token::LParen) {
            self.expected(cursor, of, "AS before the query");
            cursor.at = cursor.end;
            return;
        }
        let words: Vec<String> = (0..2).map_while(|ahead| cursor.keyword(ahead)).collect();
        let clause = if words.is_empty() { cursor.found() } else { words.join(" ") };
        let refused = match words.first().map(String::as_str) {
            Some("OPTIONS" | "ROW" | "STORED") => Some("tables of pipelines have none"),
            Some("CREATE" | "APPLY" | "AUTO" | "SET" | "USE") => Some("a semicolon is missing before it"),
            _ => None,
        };
        match refused {
            Some(reason) => {
                self.report.fault(&place, &Error::ClauseRefused { of: of.to_owned(), clause, reason: reason.to_owned(), instead: None });
                if reason.starts_with("a semicolon") {
                    cursor.at = cursor.end;
                    return;
                }
            }
            None => {
                let known = CLAUSES.iter().map(|clause| match *clause {
                    "WITH ROW" => "WITH ROW FILTER",
                    "TRIGGER ON" => "TRIGGER ON UPDATE",
                    other => other,
                });
                let near = nearest(&clause, known.clone()).or_else(|| nearest(words.first().map_or("", String::as_str), known));
                let near = near.map(str::to_owned);
                self.report.fault(&place, &Error::UnknownClause { of: of.to_owned(), clause, nearest: near });
            }
        }
        cursor.at += 1;
        self.skip_to_clause(cursor);
    }

    /// Passes over everything up to the next clause.
    fn skip_to_clause(&mut self, cursor: &mut Cursor) {
        while !cursor.is_done() && clause_at(cursor).is_none() {
            cursor.at = match cursor.sign(0) {
                Some(Token::LParen) => cursor.closing(cursor.at).map_or(cursor.end, |close| close + 1),
                _ => cursor.at + 1,
            };
        }
    }
}

/// The clause that begins here.
fn clause_at(cursor: &Cursor) -> Option<&'static str> {
    CLAUSES.iter().copied().find(|clause| cursor.sees(&clause.split(' ').collect::<Vec<_>>()))
}
