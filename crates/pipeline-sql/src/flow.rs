//! Flows: what adds rows to streaming tables, and what applies changes to them.

use sqlparser::tokenizer::Token;
use tributary_fault::nearest;
use tributary_specs::{ColumnSelection, IgnoreNullUpdates, Place};

use crate::cursor::Cursor;
use crate::error::Error;
use crate::parsed::{AutoCdc, DatasetName, Definition, Flow, FlowAction, Kind, Placed};
use crate::portability::rules;
use crate::query;
use crate::read::Reader;

/// Clauses of a change flow in the platform's order.
const CLAUSES: &[&str] = &[
    "KEYS",
    "IGNORE NULL UPDATES",
    "APPLY AS DELETE WHEN",
    "APPLY AS TRUNCATE WHEN",
    "SEQUENCE BY",
    "COLUMNS",
    "STORED AS",
    "TRACK HISTORY ON",
];

impl Reader<'_> {
    /// What follows `CREATE FLOW`.
    pub(crate) fn flow(&mut self, cursor: &mut Cursor) -> Option<DatasetName> {
        let at = cursor.place();
        if cursor.eat(&["IF", "NOT", "EXISTS"]) {
            let reason = "a flow is what its file says".to_owned();
            let instead = Some("CREATE FLOW name".to_owned());
            self.report
                .fault(&at, &Error::ClauseRefused { of: "CREATE FLOW".to_owned(), clause: "IF NOT EXISTS".to_owned(), reason, instead });
        }
        let (written, ..) = self.name(cursor, "CREATE FLOW")?;
        let of = format!("flow {}", written.parts.join("."));
        let mut comment = None;
        if cursor.eat(&["COMMENT"]) {
            comment = cursor.string();
            if comment.is_none() {
                self.expected(cursor, &of, "a text in quotes");
                return None;
            }
        }
        if !cursor.eat(&["AS"]) {
            self.expected(cursor, &of, "AS INSERT INTO or AS AUTO CDC INTO");
            return None;
        }
        if cursor.eat(&["AUTO", "CDC"]) || cursor.eat(&["APPLY", "CHANGES"]) {
            return self.changes_into(cursor, Some(written.parts.join(".")), comment, &of);
        }
        if !cursor.eat(&["INSERT"]) {
            self.expected(cursor, &of, "INSERT INTO or AUTO CDC INTO");
            return None;
        }
        let mut once = cursor.eat(&["ONCE"]);
        if !cursor.eat(&["INTO"]) {
            self.expected(cursor, &of, "INTO");
            return None;
        }
        once |= cursor.eat(&["ONCE"]);
        let (_, target, place) = self.name(cursor, &of)?;
        if once {
            self.report.uses(place.clone(), &rules::FLOW_ONCE, Some(&target.to_string()));
        }
        if !cursor.eat(&["BY", "NAME"]) {
            self.expected(cursor, &of, "BY NAME and a query");
            return None;
        }
        let scope = self.scope.clone();
        let query = query::read(cursor, &of, &scope, self.parameters, self.report)?;
        let name = Some(written.parts.join("."));
        self.defined.flows.push(Flow { name, target, place, once, comment, action: FlowAction::Append(query) });
        None
    }

    /// What follows `APPLY CHANGES` or `AUTO CDC` as a statement.
    pub(crate) fn changes(&mut self, mut cursor: Cursor, begin: &Place) -> Option<DatasetName> {
        let auto = cursor.within(cursor.at.saturating_sub(1), cursor.end).sees(&["CDC"]);
        self.report.uses(begin.clone(), if auto { &rules::BARE_AUTO_CDC } else { &rules::APPLY_CHANGES }, None);
        let legacy = "APPLY CHANGES INTO and AUTO CDC INTO without CREATE FLOW are old spellings; write CREATE FLOW name AS AUTO CDC INTO";
        self.report.notice(begin.clone(), "deprecated", legacy.to_owned());
        self.changes_into(&mut cursor, None, None, "AUTO CDC")
    }

    /// `[ONCE] INTO target body`.
    fn changes_into(&mut self, cursor: &mut Cursor, name: Option<String>, comment: Option<String>, of: &str) -> Option<DatasetName> {
        if cursor.sees(&["FROM", "SNAPSHOT"]) {
            self.snapshot(cursor, of);
            return None;
        }
        let mut once = cursor.eat(&["ONCE"]);
        if !cursor.eat(&["INTO"]) {
            self.expected(cursor, of, "INTO and the name of a streaming table");
            return None;
        }
        once |= cursor.eat(&["ONCE"]);
        let (written, target, place) = self.name(cursor, of)?;
        let of = written.parts.join(".");
        if once {
            self.report.uses(place.clone(), &rules::FLOW_ONCE, Some(&of));
        }
        let body = self.cdc(cursor, &of, once)?;
        self.defined.flows.push(Flow { name, target, place, once, comment, action: FlowAction::AutoCdc(Box::new(body)) });
        None
    }

    fn snapshot(&mut self, cursor: &Cursor, of: &str) {
        let what = "FROM SNAPSHOT, which compares whole copies of a source,".to_owned();
        let instead = Some("a stream of changes: FROM STREAM(table)".to_owned());
        self.report.fault(&cursor.place(), &Error::NotExecuted { of: of.to_owned(), what, instead });
    }

    /// `FLOW INSERT BY NAME q`, `FLOW AUTO CDC …`, `FLOW REPLACE WHERE p BY NAME q` inside a table's definition.
    pub(crate) fn flow_of_table(&mut self, cursor: &mut Cursor, definition: &mut Definition, of: &str, place: &Place) -> Option<()> {
        if definition.kind != Kind::StreamingTable {
            let reason = "only streaming tables have flows".to_owned();
            self.report.fault(place, &Error::ClauseRefused { of: of.to_owned(), clause: "FLOW".to_owned(), reason, instead: None });
        }
        if cursor.eat(&["INSERT", "BY", "NAME"]) {
            self.report.uses(place.clone(), &rules::INSERT_IN_TABLE, Some(of));
            let scope = self.scope.clone();
            definition.query = query::read(cursor, of, &scope, self.parameters, self.report);
        } else if cursor.sees(&["REPLACE", "WHERE"]) {
            let instead = Some("a materialized view".to_owned());
            self.report.fault(place, &Error::NotExecuted { of: of.to_owned(), what: "FLOW REPLACE WHERE".to_owned(), instead });
        } else if cursor.eat(&["AUTO", "CDC"]) || cursor.eat(&["APPLY", "CHANGES"]) {
            self.report.uses(place.clone(), &rules::FLOW_IN_TABLE, Some(of));
            if cursor.sees(&["FROM", "SNAPSHOT"]) {
                self.snapshot(cursor, of);
            } else if let Some(body) = self.cdc(cursor, of, false) {
                let action = FlowAction::AutoCdc(Box::new(body));
                let (target, place) = (definition.name.clone(), definition.place.clone());
                self.defined.flows.push(Flow { name: None, target, place, once: false, comment: None, action });
            }
        } else {
            self.expected(cursor, of, "FLOW INSERT BY NAME or FLOW AUTO CDC");
        }
        cursor.at = cursor.end;
        Some(())
    }

    /// `FROM source KEYS (…) …`.
    fn cdc(&mut self, cursor: &mut Cursor, of: &str, once: bool) -> Option<AutoCdc> {
        if !cursor.eat(&["FROM"]) {
            self.expected(cursor, &format!("{of}: AUTO CDC"), "FROM STREAM(table)");
            return None;
        }
        let mut behind = cursor.within(cursor.at + 1, cursor.end);
        if cursor.sign(0) == Some(&Token::LParen) {
            behind.at = cursor.at;
        }
        skip_to_clause(&mut behind);
        let source = cursor.within(cursor.at, behind.at.max(cursor.at));
        let subquery = source.sign(0) == Some(&Token::LParen);
        let scope = self.scope.clone();
        let query = query::read_source(&source, of, &scope, self.parameters, self.report);
        if let Some(query) = &query {
            self.check_stream(query, of, once, &source);
        }
        cursor.at = source.end;
        let mut body = AutoCdc {
            source: query?,
            subquery,
            keys: Placed::default(),
            ignore_null_updates: IgnoreNullUpdates::Off,
            apply_as_delete_when: None,
            apply_as_truncate_when: None,
            sequence_by: Placed::default(),
            columns: Placed::default(),
            scd_type: 1,
            track_history: Placed::default(),
        };
        self.cdc_clauses(cursor, &mut body, of);
        Some(body)
    }

    fn check_stream(&mut self, query: &query::Query, of: &str, once: bool, source: &Cursor) {
        let streams = query.reads.iter().any(|read| read.streaming);
        if !streams && !once && !query.reads.is_empty() {
            let found = format!("FROM {}", source.rest());
            let name = query.reads.first().and_then(|read| read.name.as_ref()).map_or("table".to_owned(), ToString::to_string);
            let error = Error::NotStreaming { of: of.to_owned(), found, instead: format!("FROM STREAM({name})") };
            self.report.fault(&query.place, &error);
        }
    }

    fn cdc_clauses(&mut self, cursor: &mut Cursor, body: &mut AutoCdc, of: &str) {
        let mut seen: Vec<&'static str> = Vec::new();
        let place = cursor.place();
        while !cursor.is_done() {
            let at = cursor.place();
            let Some(clause) = clause_at(cursor) else {
                self.unknown_cdc_clause(cursor, of);
                continue;
            };
            if seen.contains(&clause) {
                self.report.fault(&at, &Error::ClauseTwice { of: of.to_owned(), clause: clause.to_owned() });
                cursor.at += 1;
                skip_to_clause(cursor);
                continue;
            }
            seen.push(clause);
            cursor.at += clause.split(' ').count();
            if self.cdc_clause(cursor, clause, body, of, &at).is_none() {
                skip_to_clause(cursor);
            }
        }
        for (clause, instead) in [("KEYS", "KEYS (column, …)"), ("SEQUENCE BY", "SEQUENCE BY column")] {
            if !seen.contains(&clause) {
                self.report.fault(&place, &Error::ClauseMissing { of: of.to_owned(), clause, instead: instead.to_owned() });
            }
        }
        if seen.first().is_some_and(|first| *first != "KEYS") {
            self.report.uses(place.clone(), &rules::KEYS_NOT_FIRST, Some(of));
        }
        let order: Vec<usize> = seen.iter().filter_map(|clause| CLAUSES.iter().position(|known| known == clause)).collect();
        if order.windows(2).any(|pair| pair[0] > pair[1]) {
            self.report.uses(place.clone(), &rules::CLAUSE_ORDER, Some(of));
            self.report.notice(place, "clause_order", format!("{of}: the platform wants the clauses in the order {}", CLAUSES.join(", ")));
        }
    }

    fn cdc_clause(&mut self, cursor: &mut Cursor, clause: &str, body: &mut AutoCdc, of: &str, at: &Place) -> Option<()> {
        match clause {
            "KEYS" => body.keys = Placed { value: self.columns(cursor, of, clause)?, place: Some(at.clone()) },
            "IGNORE NULL UPDATES" => {
                self.report.uses(at.clone(), &rules::IGNORE_NULL_UPDATES, Some(of));
                let list = cursor.eat(&["ON"]) || cursor.sign(0) == Some(&Token::LParen);
                body.ignore_null_updates =
                    if list { IgnoreNullUpdates::Columns(self.columns(cursor, of, clause)?) } else { IgnoreNullUpdates::All };
            }
            "APPLY AS DELETE WHEN" => {
                body.apply_as_delete_when = Some(Placed { value: self.expression(cursor, of, clause)?, place: Some(at.clone()) });
            }
            "APPLY AS TRUNCATE WHEN" => {
                self.report.uses(at.clone(), &rules::TRUNCATE_WHEN, Some(of));
                body.apply_as_truncate_when = Some(Placed { value: self.expression(cursor, of, clause)?, place: Some(at.clone()) });
            }
            "SEQUENCE BY" => body.sequence_by = Placed { value: self.sequence(cursor, of)?, place: Some(at.clone()) },
            "COLUMNS" => body.columns = Placed { value: self.selection(cursor, of, clause)?, place: Some(at.clone()) },
            "STORED AS" => {
                let scd = cursor.eat(&["SCD", "TYPE"]);
                body.scd_type = match cursor.sign(0) {
                    Some(Token::Number(number, _)) if scd && number == "1" => 1,
                    Some(Token::Number(number, _)) if scd && number == "2" => 2,
                    _ => {
                        self.expected(cursor, &format!("{of}: STORED AS"), "SCD TYPE 1 or SCD TYPE 2");
                        return None;
                    }
                };
                cursor.at += 1;
            }
            _ => body.track_history = Placed { value: self.selection(cursor, of, clause)?, place: Some(at.clone()) },
        }
        Some(())
    }

    /// `e`, `STRUCT(a, b)`, `(a, b)`.
    fn sequence(&mut self, cursor: &mut Cursor, of: &str) -> Option<Vec<String>> {
        let mut list = cursor.clone();
        let _ = list.eat(&["STRUCT"]);
        if let Some(items) = list.bracketed()
            && (list.is_done() || clause_at(&list).is_some())
            && !items.is_empty()
        {
            cursor.at = list.at;
            return items.into_iter().map(|item| self.whole_expression(item, of, "SEQUENCE BY")).collect();
        }
        Some(vec![self.expression(cursor, of, "SEQUENCE BY")?])
    }

    /// `a, b`, `(a, b)`, `* EXCEPT (a, b)`.
    fn selection(&mut self, cursor: &mut Cursor, of: &str, clause: &str) -> Option<ColumnSelection> {
        let place = cursor.place();
        if cursor.eat_sign(&Token::Mul) {
            if !cursor.eat(&["EXCEPT"]) {
                self.report.uses(place, &rules::ALL_COLUMNS, Some(of));
                return Some(ColumnSelection::All);
            }
            return Some(ColumnSelection::Except(self.columns(cursor, of, clause)?));
        }
        if cursor.sign(0) == Some(&Token::LParen) {
            return Some(ColumnSelection::Only(self.columns(cursor, of, clause)?));
        }
        self.report.uses(place, &rules::BARE_COLUMNS, Some(of));
        let mut names = Vec::new();
        loop {
            let Some(name) = cursor.identifier() else {
                self.expected(cursor, &format!("{of}: {clause}"), "columns, or * EXCEPT (columns)");
                return None;
            };
            names.push(name);
            if !cursor.eat_sign(&Token::Comma) {
                return Some(ColumnSelection::Only(names));
            }
        }
    }

    fn unknown_cdc_clause(&mut self, cursor: &mut Cursor, of: &str) {
        let place = cursor.place();
        let words: Vec<String> = (0..3).map_while(|ahead| cursor.keyword(ahead)).collect();
        let clause = if words.is_empty() { cursor.found() } else { words.iter().take(2).cloned().collect::<Vec<_>>().join(" ") };
        if matches!(words.first().map(String::as_str), Some("CREATE" | "AUTO" | "SET" | "USE"))
            || words.get(1).is_some_and(|word| word == "CHANGES")
        {
            let reason = "a semicolon is missing before it".to_owned();
            self.report.fault(&place, &Error::ClauseRefused { of: of.to_owned(), clause, reason, instead: None });
            cursor.at = cursor.end;
            return;
        }
        let near =
            (1..=3).filter_map(|count| nearest(&words.get(..count)?.join(" "), CLAUSES.iter().copied())).next_back().map(str::to_owned);
        self.report.fault(&place, &Error::UnknownClause { of: of.to_owned(), clause, nearest: near });
        cursor.at += 1;
        skip_to_clause(cursor);
    }
}

fn skip_to_clause(cursor: &mut Cursor) {
    while !cursor.is_done() && clause_at(cursor).is_none() {
        cursor.at = match cursor.sign(0) {
            Some(Token::LParen) => cursor.closing(cursor.at).map_or(cursor.end, |close| close + 1),
            _ => cursor.at + 1,
        };
    }
}

/// The clause that begins here. `keys` and `columns` are names too, unless something in brackets, a star or a name follows.
fn clause_at(cursor: &Cursor) -> Option<&'static str> {
    let clause = CLAUSES.iter().copied().find(|clause| cursor.sees(&clause.split(' ').collect::<Vec<_>>()))?;
    let next = cursor.sign(clause.split(' ').count());
    match clause {
        "KEYS" => (next == Some(&Token::LParen)).then_some(clause),
        "COLUMNS" => matches!(next, Some(Token::LParen | Token::Mul | Token::Word(_))).then_some(clause),
        _ => Some(clause),
    }
}
