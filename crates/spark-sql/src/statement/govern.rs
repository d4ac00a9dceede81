//! `GRANT`, `REVOKE`, `SHOW GRANTS`.

use tributary_lake::datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Name, Statement};
use crate::Error;

/// Privileges to give or to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Which, as they are written.
    pub privileges: Vec<Privilege>,
    /// On what.
    pub on: Securable,
    /// Whose.
    pub principal: String,
}

/// A privilege as it is written, in capitals: `USE SCHEMA`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Privilege {
    /// Its words.
    pub words: String,
    /// Where it stands.
    pub span: Option<(u64, u64)>,
}

/// Something that privileges are given on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Securable {
    /// `CATALOG`, `SCHEMA`, `TABLE`, …
    pub kind: String,
    /// Its name; empty for the metastore.
    pub name: Name,
}

/// Kinds of securables and how they are written.
const KINDS: &[(&[&str], &str)] = &[
    (&["EXTERNAL", "LOCATION"], "EXTERNAL LOCATION"),
    (&["STORAGE", "CREDENTIAL"], "STORAGE CREDENTIAL"),
    (&["MATERIALIZED", "VIEW"], "MATERIALIZED VIEW"),
    (&["STREAMING", "TABLE"], "STREAMING TABLE"),
    (&["CATALOG"], "CATALOG"),
    (&["SCHEMA"], "SCHEMA"),
    (&["DATABASE"], "SCHEMA"),
    (&["TABLE"], "TABLE"),
    (&["VIEW"], "VIEW"),
    (&["FUNCTION"], "FUNCTION"),
    (&["VOLUME"], "VOLUME"),
    (&["METASTORE"], "METASTORE"),
];

pub(super) fn grant(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["GRANT"])?;
    let (privileges, on) = head(cursor)?;
    cursor.expect(&["TO"])?;
    let principal = principal(cursor)?;
    if cursor.sees(&["WITH", "GRANT", "OPTION"]) {
        return Err(cursor.refused("WITH GRANT OPTION", "grant MANAGE instead"));
    }
    Ok(Statement::Grant(Grant { privileges, on, principal }))
}

pub(super) fn revoke(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    cursor.expect(&["REVOKE"])?;
    let (privileges, on) = head(cursor)?;
    cursor.expect(&["FROM"])?;
    let principal = principal(cursor)?;
    Ok(Statement::Revoke(Grant { privileges, on, principal }))
}

/// `[principal] [ON securable]`, or `TO principal`, behind `SHOW GRANTS`.
pub(super) fn show_grants(cursor: &mut Cursor<'_>) -> Result<Statement, Error> {
    let _ = cursor.eat(&["TO"]);
    let principal = if cursor.is_done() || cursor.sees(&["ON"]) { None } else { Some(principal(cursor)?) };
    let on = if cursor.eat(&["ON"]) { Some(securable(cursor)?) } else { None };
    Ok(Statement::ShowGrants { principal, on })
}

fn head(cursor: &mut Cursor<'_>) -> Result<(Vec<Privilege>, Securable), Error> {
    let mut privileges = Vec::new();
    loop {
        let span = cursor.place();
        let mut words = Vec::new();
        while let Some(word) = cursor.word(0)
            && word != "ON"
        {
            words.push(word);
            cursor.skip();
        }
        if words.is_empty() {
            return Err(cursor.expected("a privilege"));
        }
        privileges.push(Privilege { words: words.join(" "), span });
        if !cursor.eat_sign(&Token::Comma) {
            break;
        }
    }
    cursor.expect(&["ON"])?;
    Ok((privileges, securable(cursor)?))
}

fn securable(cursor: &mut Cursor<'_>) -> Result<Securable, Error> {
    // A word of the list is a kind only where a name follows: `GRANT SELECT ON view TO …` is on a table of that name.
    let known = KINDS.iter().find(|(words, _)| cursor.sees(words) && matches!(cursor.sign_after(words.len()), Token::Word(_)));
    match known {
        Some((words, "METASTORE")) => {
            let span = cursor.place();
            words.iter().for_each(|_| cursor.skip());
            Ok(Securable { kind: "METASTORE".to_owned(), name: Name { parts: Vec::new(), span } })
        }
        Some((words, kind)) if !matches!(cursor.word(words.len()).as_deref(), Some("TO" | "FROM")) => {
            words.iter().for_each(|_| cursor.skip());
            Ok(Securable { kind: (*kind).to_owned(), name: cursor.name()? })
        }
        _ if cursor.eat(&["METASTORE"]) => Ok(Securable { kind: "METASTORE".to_owned(), name: Name { parts: Vec::new(), span: None } }),
        _ => Ok(Securable { kind: "TABLE".to_owned(), name: cursor.name()? }),
    }
}

fn principal(cursor: &mut Cursor<'_>) -> Result<String, Error> {
    match cursor.sign() {
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => cursor.string(),
        _ if cursor.sees(&["ACCOUNT", "USERS"]) => {
            cursor.skip();
            cursor.skip();
            Ok("account users".to_owned())
        }
        Token::Word(_) => Ok(cursor.ident()?.value),
        _ => Err(cursor.expected("a principal, in back-quotes")),
    }
}
