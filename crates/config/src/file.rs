//! Settings from `tributary.toml`.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use tributary_fault::nearest;

use crate::error::Error;
use crate::origin::Origin;
use crate::registry::REGISTRY;
use crate::resolve::{Given, Source};
use crate::setting::{Reach, Setting};
use crate::value::{Kind, Raw};

/// What the settings file gives: entries for every run, and entries of the targets.
#[derive(Debug, Default)]
pub(crate) struct FileSettings {
    pub(crate) general: Source,
    pub(crate) targets: BTreeMap<String, Source>,
}

/// Reads the text of the file. A table `[targets.NAME]` holds settings that stand above the others while that target is chosen.
pub(crate) fn parse(file: &str, text: &str, errors: &mut Vec<Error>) -> FileSettings {
    let reader = Reader { file, text };
    let mut settings = FileSettings::default();
    match DeTable::parse(text) {
        Err(error) => errors.push(reader.syntax(error.message(), error.span().map_or(0, |span| span.start))),
        Ok(table) => {
            settings.general = reader.entries(table.get_ref(), None, &mut settings.targets, errors);
        }
    }
    settings
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn entries(
        &self,
        table: &DeTable<'_>,
        target: Option<&str>,
        targets: &mut BTreeMap<String, Source>,
        errors: &mut Vec<Error>,
    ) -> Source {
        let mut source = Source::default();
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref(), target) {
                ("targets", DeValue::Table(tables), None) => self.targets(tables, targets, errors),
                _ => self.entry(key, value, target, &mut source, errors),
            }
        }
        source
    }

    fn targets(&self, tables: &DeTable<'_>, targets: &mut BTreeMap<String, Source>, errors: &mut Vec<Error>) {
        for (name, table) in tables {
            match table.get_ref() {
                DeValue::Table(table) => {
                    let source = self.entries(table, Some(name.get_ref()), &mut BTreeMap::new(), errors);
                    targets.insert(name.get_ref().to_string(), source);
                }
                _ => errors.push(self.syntax("expected a table [targets.NAME]", name.span().start)),
            }
        }
    }

    fn entry(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        target: Option<&str>,
        source: &mut Source,
        errors: &mut Vec<Error>,
    ) {
        let written = key.get_ref();
        let (line, _) = self.position(key.span().start);
        let origin = Origin::File { file: self.file.to_owned(), line, target: target.map(str::to_owned) };
        let Some(setting) = REGISTRY.iter().find(|setting| setting.name == written.replace('-', "_")) else {
            let nearest = nearest(written, REGISTRY.iter().map(|setting| setting.name)).map(str::to_owned);
            errors.push(Error::UnknownName { name: written.to_string(), place: origin, nearest });
            return;
        };
        if setting.reach != Reach::Everywhere || (setting.name == "target" && target.is_some()) {
            errors.push(Error::Misplaced { setting: setting.name, place: origin });
            return;
        }
        match raw(setting, value.get_ref()) {
            Some(raw) => {
                if let Some(Given { origin: Origin::File { line: first, .. }, .. }) = source.insert(setting.name, Given { raw, origin }) {
                    let (first, second) = (first.min(line), first.max(line));
                    errors.push(Error::GivenTwice { setting: setting.name, file: self.file.to_owned(), first, second });
                }
            }
            None => errors.push(Error::Value {
                setting: setting.name,
                value: (!setting.secret).then(|| self.text[value.span()].to_owned()),
                origin,
                expected: format!("{} ({})", setting.kind.expected(), toml_form(setting.kind)),
            }),
        }
    }

    fn syntax(&self, message: &str, at: usize) -> Error {
        let (line, column) = self.position(at);
        Error::FileSyntax { file: self.file.to_owned(), line, column, problem: message.replace('\n', ", ") }
    }

    /// Line and column, counted from 1, of a byte of the text.
    fn position(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at.min(self.text.len())];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// The text of a value whose TOML type fits the setting.
fn raw(setting: &Setting, value: &DeValue<'_>) -> Option<Raw> {
    match (setting.kind, value) {
        (Kind::List(_), DeValue::Array(parts)) => {
            parts.iter().map(|part| part.get_ref().as_str().map(str::to_owned)).collect::<Option<_>>().map(Raw::Many)
        }
        (Kind::List(_), DeValue::String(text)) => Some(Raw::Many(vec![text.to_string()])),
        (Kind::Switch, DeValue::Boolean(on)) => Some(Raw::One(on.to_string())),
        (Kind::Count { .. } | Kind::Size | Kind::Duration, DeValue::Integer(number)) if number.radix() == 10 => {
            Some(Raw::One(number.as_str().to_owned()))
        }
        (Kind::Instant, DeValue::Datetime(instant)) => Some(Raw::One(instant.to_string())),
        (Kind::Switch | Kind::Count { .. }, _) => None,
        (_, DeValue::String(text)) => Some(Raw::One(text.to_string())),
        _ => None,
    }
}

fn toml_form(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "without quotes",
        Kind::Count { .. } => "a number without quotes",
        Kind::Size | Kind::Duration => "in quotes, or a number without",
        Kind::Instant => "in quotes, or a TOML date or time with its zone",
        Kind::List(_) => "an array of texts in quotes",
        Kind::Text | Kind::Name | Kind::Path | Kind::Location | Kind::Listen | Kind::Property | Kind::Offset | Kind::Choice(_) => {
            "in quotes"
        }
    }
}
