//! What stands in the brackets behind a dataset's name: columns, keys, rules.

use sqlparser::tokenizer::Token;
use tributary_fault::nearest;
use tributary_specs::{COLUMN_OPTIONS, DataType, Expectation, ExpectationAction};

use crate::cursor::Cursor;
use crate::error::Error;
use crate::parsed::{DeclaredColumn, Definition, Kind, Placed};
use crate::portability::rules;
use crate::read::Reader;

impl Reader<'_> {
    /// Columns, keys and rules in brackets; they are passed over.
    pub(crate) fn items(&mut self, cursor: &mut Cursor, definition: &mut Definition, of: &str) {
        let open = cursor.clone();
        let Some(items) = cursor.bracketed() else {
            self.expected(&open.within(open.end, open.end), of, "a closing bracket for the one behind the name");
            cursor.at = cursor.end;
            return;
        };
        if items.is_empty() {
            self.expected(&open.within(open.at + 1, open.end), of, "a column or a constraint");
        }
        for item in items {
            if item.is_done() {
                self.expected(&item, of, "a column or a constraint");
                continue;
            }
            self.item(item, definition, of);
        }
    }

    fn item(&mut self, mut item: Cursor, definition: &mut Definition, of: &str) {
        let starts_constraint = |cursor: &Cursor, ahead: usize| match cursor.keyword(ahead).as_deref() {
            Some("PRIMARY" | "FOREIGN") => cursor.keyword(ahead + 1).as_deref() == Some("KEY"),
            Some("CHECK" | "UNIQUE" | "EXPECT") => cursor.sign(ahead + 1) == Some(&Token::LParen),
            _ => false,
        };
        if item.sees(&["CONSTRAINT"]) && (starts_constraint(&item, 2) || item.keyword(2).is_none_or(|word| !is_type(&word))) {
            item.at += 1;
            self.constraint(item, definition, of);
        } else if starts_constraint(&item, 0) {
            self.key(item, definition, of);
        } else {
            self.column(item, definition, of);
        }
    }

    /// `name EXPECT (…) [ON VIOLATION …]`, `name PRIMARY KEY (…)`, …
    fn constraint(&mut self, mut item: Cursor, definition: &mut Definition, of: &str) {
        let place = item.place();
        let Some(name) = item.identifier() else { return self.expected(&item, of, "the name of a constraint") };
        if !item.sees(&["EXPECT"]) {
            let key = matches!(item.keyword(0).as_deref(), Some("PRIMARY" | "FOREIGN" | "CHECK" | "UNIQUE"));
            return if key {
                self.key(item, definition, of)
            } else {
                self.expected(&item, &format!("{of}: CONSTRAINT {name}"), "EXPECT (…)")
            };
        }
        item.at += 1;
        let rule = if definition.kind == Kind::View { &rules::EXPECT_ON_VIEW } else { &rules::EXPECT };
        self.report.uses(place.clone(), rule, Some(of));
        let clause = format!("EXPECT {name}");
        if item.sign(0) != Some(&Token::LParen) {
            return self.expected(&item, &format!("{of}: CONSTRAINT {name}"), "an expression in brackets");
        }
        let Some(close) = item.closing(item.at) else { return };
        let expression = self.whole_expression(item.within(item.at + 1, close), of, &clause);
        item.at = close + 1;
        let action = match () {
            () if item.is_done() => Some(ExpectationAction::Warn),
            () if item.eat(&["ON", "VIOLATION", "DROP", "ROW"]) => Some(ExpectationAction::Drop),
            () if item.eat(&["ON", "VIOLATION", "FAIL", "UPDATE"]) => Some(ExpectationAction::Fail),
            () if item.eat(&["ON", "VIOLATION", "WARN"]) => Some(ExpectationAction::Warn),
            () => None,
        };
        if action.is_none() || !item.is_done() {
            return self.expected(&item, &format!("{of}: CONSTRAINT {name}"), "ON VIOLATION DROP ROW or ON VIOLATION FAIL UPDATE");
        }
        if definition.expectations.iter().any(|known| known.value.name.eq_ignore_ascii_case(&name)) {
            self.report.fault(&place, &Error::ClauseTwice { of: of.to_owned(), clause: format!("CONSTRAINT {name}") });
        }
        if let (Some(expression), Some(action)) = (expression, action) {
            definition.expectations.push(Placed { value: Expectation { name, expression, action }, place: Some(place) });
        }
    }

    /// `PRIMARY KEY (…)`, `FOREIGN KEY (…) REFERENCES …`: for people; nothing enforces them, there as here.
    fn key(&mut self, mut item: Cursor, definition: &mut Definition, of: &str) {
        let place = item.place();
        let clause = match () {
            () if item.eat(&["PRIMARY", "KEY"]) => "PRIMARY KEY",
            () if item.eat(&["FOREIGN", "KEY"]) => "FOREIGN KEY",
            () => {
                let clause = item.keyword(0).unwrap_or_default();
                let reason = "datasets of pipelines have rules instead".to_owned();
                let instead = Some("CONSTRAINT name EXPECT (…)".to_owned());
                return self.report.fault(&place, &Error::ClauseRefused { of: of.to_owned(), clause, reason, instead });
            }
        };
        let Some(columns) = item.bracketed() else { return self.expected(&item, &format!("{of}: {clause}"), "columns in brackets") };
        let names: Vec<String> = columns.into_iter().filter_map(|mut column| column.identifier()).collect();
        if clause == "PRIMARY KEY" {
            definition.primary_key = names;
        } else if !item.eat(&["REFERENCES"]) || crate::names::Written::read(&mut item).is_none() {
            return self.expected(&item, &format!("{of}: FOREIGN KEY"), "REFERENCES table");
        } else {
            let _ = item.bracketed();
        }
        self.key_options(&mut item, of, clause);
        self.report.uses(place.clone(), &rules::KEY, Some(of));
        self.report.not_applied(place, clause, Some(of), "keys are for people; nothing enforces them");
    }

    fn key_options(&mut self, item: &mut Cursor, of: &str, clause: &str) {
        while !item.is_done() {
            let known = item.eat(&["NOT", "ENFORCED"]) || item.eat(&["NORELY"]) || item.eat(&["RELY"]) || item.eat(&["DEFERRABLE"]);
            let known = known || item.eat(&["INITIALLY", "DEFERRED"]) || item.eat(&["MATCH", "FULL"]);
            let known = known || item.eat(&["ON", "UPDATE", "NO", "ACTION"]) || item.eat(&["ON", "DELETE", "NO", "ACTION"]);
            if !known {
                self.expected(item, &format!("{of}: {clause}"), "NOT ENFORCED or RELY");
                return;
            }
        }
    }

    fn column(&mut self, mut item: Cursor, definition: &mut Definition, of: &str) {
        let place = item.place();
        let Some(name) = item.identifier() else { return self.expected(&item, of, "a column or a constraint") };
        let mut column =
            DeclaredColumn { name: name.clone(), data_type: None, nullable: true, comment: None, default: None, generated: None, place };
        let from = item.at;
        let mut angles = 0usize;
        while !item.is_done() {
            match item.sign(0) {
                Some(Token::Lt) => angles += 1,
                Some(Token::Gt) => angles = angles.saturating_sub(1),
                Some(Token::ShiftRight) => angles = angles.saturating_sub(2),
                Some(Token::LParen) => item.at = item.closing(item.at).unwrap_or(item.end.saturating_sub(1)),
                Some(Token::Word(word)) if angles == 0 && word.quote_style.is_none() && is_option(&word.value) => break,
                _ => {}
            }
            item.at += 1;
        }
        let written = item.text_from(from).to_owned();
        let type_place = item.tokens.place(from);
        if !written.is_empty() {
            match self.data_type(&written, &type_place, of) {
                Ok(data_type) => column.data_type = Some(data_type),
                Err(error) => {
                    let reason = match error {
                        tributary_specs::Error::TypeUnreadable { reason, .. } => format!("{written:?}: {reason}"),
                        other => other.to_string(),
                    };
                    self.report.fault(&type_place, &Error::TypeUnreadable { of: of.to_owned(), column: name.clone(), reason });
                }
            }
        } else if definition.kind == Kind::StreamingTable {
            let reason = "the type is missing".to_owned();
            self.report.fault(&column.place, &Error::TypeUnreadable { of: of.to_owned(), column: name.clone(), reason });
        } else if definition.kind == Kind::MaterializedView {
            self.report.uses(column.place.clone(), &rules::UNTYPED_COLUMN, Some(of));
        }
        while !item.is_done() {
            if self.column_option(&mut item, &mut column, definition, of).is_none() {
                break;
            }
        }
        if let Some(first) = definition.columns.iter().find(|known| known.name.eq_ignore_ascii_case(&name)) {
            let clause = format!("the column {name:?} (as {:?} before)", first.name);
            self.report.fault(&column.place, &Error::ClauseTwice { of: of.to_owned(), clause });
            return;
        }
        definition.columns.push(column);
    }

    /// A type, of which two are written in Spark as tables do not have them: a bare DECIMAL, and texts of limited length.
    fn data_type(&mut self, written: &str, place: &tributary_specs::Place, of: &str) -> Result<DataType, tributary_specs::Error> {
        let lower = written.to_lowercase();
        let (word, rest) = lower.split_once('(').unwrap_or((&lower, ""));
        match word.trim() {
            "decimal" | "dec" | "numeric" if rest.is_empty() => Ok(DataType::Decimal { precision: 10, scale: 0 }),
            "varchar" | "char" | "character" if rest.ends_with(')') => {
                self.report.uses(place.clone(), &rules::TEXT_LENGTH, Some(of));
                self.report.not_applied(place.clone(), &format!("the length of {written}"), Some(of), "texts have any length");
                Ok(DataType::String)
            }
            _ => written.parse(),
        }
    }

    fn column_option(&mut self, item: &mut Cursor, column: &mut DeclaredColumn, definition: &mut Definition, of: &str) -> Option<()> {
        let place = item.place();
        let at = format!("{of}: column {}", column.name);
        match () {
            () if item.eat(&["NOT", "NULL"]) => {
                self.report.uses(place, &rules::NOT_NULL, Some(of));
                column.nullable = false;
            }
            () if item.eat(&["NULL"]) => {}
            () if item.eat(&["COMMENT"]) => match item.string() {
                Some(text) => column.comment = Some(text),
                None => {
                    self.expected(item, &at, "a text in quotes");
                    return None;
                }
            },
            () if item.eat(&["DEFAULT"]) => column.default = Some(self.expression(item, of, &format!("DEFAULT of {}", column.name))?),
            () if item.sees(&["GENERATED"]) => self.generated(item, column, of)?,
            () if item.eat(&["PRIMARY", "KEY"]) => {
                definition.primary_key.push(column.name.clone());
                self.report.uses(place.clone(), &rules::KEY, Some(of));
                self.report.not_applied(place, "PRIMARY KEY", Some(of), "keys are for people; nothing enforces them");
                let _ = item.eat(&["TIMESERIES"]);
                while item.eat(&["NOT", "ENFORCED"]) || item.eat(&["RELY"]) || item.eat(&["NORELY"]) {}
            }
            () if item.eat(&["FOREIGN", "KEY"]) => {}
            () if item.eat(&["REFERENCES"]) => {
                crate::names::Written::read(item)?;
                let _ = item.bracketed();
                self.report.uses(place.clone(), &rules::KEY, Some(of));
                self.report.not_applied(place, "FOREIGN KEY", Some(of), "keys are for people; nothing enforces them");
                while item.eat(&["NOT", "ENFORCED"]) || item.eat(&["RELY"]) || item.eat(&["NORELY"]) {}
            }
            () if item.eat(&["MASK"]) => {
                self.report.uses(place.clone(), &rules::MASK, Some(of));
                self.report.unprotected(place, &format!("MASK of {}", column.name), Some(of));
                if crate::names::Written::read(item).is_none() {
                    self.expected(item, &at, "the name of a function");
                    return None;
                }
                if item.eat(&["USING", "COLUMNS"]) && item.bracketed().is_none() {
                    self.expected(item, &at, "USING COLUMNS (…)");
                    return None;
                }
            }
            () if item.eat(&["CONSTRAINT"]) => {
                item.identifier()?;
            }
            () if item.eat(&["COLLATE"]) => {
                let collation = item.identifier()?;
                if !collation.eq_ignore_ascii_case("UTF8_BINARY") {
                    self.report.fault(&place, &Error::NotExecuted { of: at, what: format!("COLLATE {collation}"), instead: None });
                }
            }
            () => {
                let words: Vec<String> = (0..2).map_while(|ahead| item.keyword(ahead)).collect();
                let clause = if words.is_empty() { item.found() } else { words.join(" ") };
                let known = ["NOT NULL", "COMMENT", "DEFAULT", "GENERATED ALWAYS", "PRIMARY KEY", "REFERENCES", "MASK", "COLLATE"];
                let near = nearest(&clause, known).map(str::to_owned);
                self.report.fault(&place, &Error::UnknownClause { of: at, clause, nearest: near });
                return None;
            }
        }
        Some(())
    }

    /// `GENERATED ALWAYS AS (e)`, `GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(…)]`.
    fn generated(&mut self, item: &mut Cursor, column: &mut DeclaredColumn, of: &str) -> Option<()> {
        let place = item.place();
        let at = format!("{of}: column {}", column.name);
        let known = item.eat(&["GENERATED", "ALWAYS", "AS"]) || item.eat(&["GENERATED", "BY", "DEFAULT", "AS"]);
        if !known {
            self.expected(item, &at, "GENERATED ALWAYS AS (…)");
            return None;
        }
        if item.eat(&["IDENTITY"]) {
            let _ = item.bracketed();
            let instead = Some("row_number() in the query, or a number the source gives".to_owned());
            self.report.fault(&place, &Error::NotExecuted { of: at, what: "GENERATED … AS IDENTITY".to_owned(), instead });
            return Some(());
        }
        if item.sign(0) != Some(&Token::LParen) {
            self.expected(item, &at, "an expression in brackets");
            return None;
        }
        let close = item.closing(item.at)?;
        column.generated = self.whole_expression(item.within(item.at + 1, close), of, &format!("GENERATED of {}", column.name));
        item.at = close + 1;
        Some(())
    }
}

fn is_option(word: &str) -> bool {
    COLUMN_OPTIONS.iter().any(|option| word.eq_ignore_ascii_case(option))
}

/// Whether a word begins a type: a column may be called `constraint`.
fn is_type(word: &str) -> bool {
    let known = ["ARRAY", "MAP", "STRUCT", "DECIMAL", "NUMERIC"];
    known.contains(&word) || word.parse::<DataType>().is_ok()
}
