//! Calls of the functions that read files and topics, with their options.

use sqlparser::tokenizer::Token;
use tributary_specs::Place;

use crate::cursor::Cursor;
use crate::error::Error;
use crate::report::Report;

/// A call of a table function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// In lower case.
    pub(crate) function: String,
    /// Values without a name, in order.
    pub(crate) unnamed: Vec<Argument>,
    /// Options by name.
    pub(crate) options: Vec<Argument>,
    /// Where the brackets open.
    pub(crate) place: Place,
}

/// An argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    /// The option, as it is written.
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    /// As it is written.
    Number(String),
    Boolean(bool),
    Map(Vec<(String, String)>),
    Null,
    /// Something that is not constant.
    Other(String),
}

impl Call {
    /// Reads the arguments that stand in brackets from `cursor` on.
    pub(crate) fn read(function: &str, mut cursor: Cursor, of: &str, report: &mut Report) -> Self {
        let mut call = Self { function: function.to_lowercase(), unnamed: Vec::new(), options: Vec::new(), place: cursor.place() };
        for mut item in cursor.bracketed().unwrap_or_default() {
            let place = item.place();
            let named = item.sign(1) == Some(&Token::RArrow);
            let name = if named { item.identifier() } else { None };
            let Some(name) = name else {
                call.unnamed.push(Argument { name: String::new(), value: Value::read(&mut item), place });
                continue;
            };
            item.at += 1;
            if call.options.iter().any(|given| given.name.eq_ignore_ascii_case(&name)) {
                report.fault(&place, &Error::ClauseTwice { of: of.to_owned(), clause: format!("the option {name} of {function}") });
            }
            call.options.push(Argument { name, value: Value::read(&mut item), place });
        }
        call
    }
}

impl Value {
    fn read(cursor: &mut Cursor) -> Self {
        let whole = cursor.rest().to_owned();
        let value = match (cursor.sign(0).cloned(), cursor.end.saturating_sub(cursor.at)) {
            (Some(Token::SingleQuotedString(text)), 1) => Self::Text(text),
            (Some(Token::Number(number, _)), 1) => Self::Number(number),
            (Some(Token::Minus), 2) => Self::Number(whole.clone()),
            (Some(Token::Word(word)), 1) if word.value.eq_ignore_ascii_case("true") => Self::Boolean(true),
            (Some(Token::Word(word)), 1) if word.value.eq_ignore_ascii_case("false") => Self::Boolean(false),
            (Some(Token::Word(word)), 1) if word.value.eq_ignore_ascii_case("null") => Self::Null,
            (Some(Token::Word(word)), _) if word.value.eq_ignore_ascii_case("map") => {
                cursor.at += 1;
                Self::map(cursor).unwrap_or(Self::Other(whole))
            }
            _ => Self::Other(whole),
        };
        cursor.at = cursor.end;
        value
    }

    fn map(cursor: &mut Cursor) -> Option<Self> {
        let mut texts = Vec::new();
        for mut item in cursor.bracketed()? {
            texts.push(match Self::read(&mut item) {
                Self::Text(text) | Self::Number(text) => text,
                Self::Boolean(value) => value.to_string(),
                _ => return None,
            });
        }
        let pairs = texts.chunks(2).map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())));
        Some(Self::Map(pairs.collect::<Option<_>>()?))
    }
}
