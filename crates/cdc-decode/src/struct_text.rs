//! A key as Connect's string converter writes it into a header: `Struct{id=1,region=EU}`.
//!
//! It is `Struct.toString`: fields with their names, nulls left out, nothing quoted. Numbers, booleans and short texts can be
//! told apart when the names of the fields are known and each stands there once; a text in which another field's beginning
//! stands as well cannot, nor can nested structs and bytes.

use crate::json::{Cursor, write_text};

/// Whether a text is of this form.
pub(crate) fn is_struct(text: &[u8]) -> bool {
    text.starts_with(b"Struct{")
}

/// The same key as a JSON object. `names` are the fields of the record's own key, which is of the same form; `is_text` says of
/// which ones values are text.
///
/// # Errors
/// What keeps it from being read, to follow "the header of a key change".
pub(crate) fn as_json(text: &[u8], names: &[String], is_text: impl Fn(&str) -> bool) -> Result<Vec<u8>, &'static str> {
    const FORM: &str = "is written by Connect's string converter and cannot be read; set header.converter to the JSON converter";
    const AMBIGUOUS: &str =
        "is written by Connect's string converter and its fields cannot be told apart; set header.converter to the JSON converter";
    let inside = text.strip_prefix(b"Struct{").and_then(|rest| rest.strip_suffix(b"}")).ok_or(FORM)?;
    let inside = format!(",{}", std::str::from_utf8(inside).map_err(|_| FORM)?);
    let mut fields = Vec::new();
    for name in names {
        let mark = format!(",{name}=");
        let at = inside.find(&mark).ok_or(FORM)?;
        if inside.rfind(&mark) != Some(at) {
            return Err(AMBIGUOUS);
        }
        fields.push((at, at + mark.len(), name));
    }
    fields.sort_unstable();
    if fields.first().is_none_or(|(at, ..)| *at != 0) {
        return Err(FORM);
    }
    let ends = fields.iter().skip(1).map(|(at, ..)| *at).chain([inside.len()]);
    let mut json = vec![b'{'];
    for ((_, start, name), end) in fields.iter().zip(ends) {
        if json.len() > 1 {
            json.push(b',');
        }
        write_text(name.as_bytes(), &mut json);
        json.push(b':');
        write_value(inside.get(*start..end).ok_or(AMBIGUOUS)?, is_text(name), &mut json).ok_or(FORM)?;
    }
    json.push(b'}');
    Ok(json)
}

/// A value as JSON; `None` = it is the text of an object.
fn write_value(value: &str, is_text: bool, json: &mut Vec<u8>) -> Option<()> {
    let is_object = value.starts_with("Struct{") || value.starts_with("[B@") || value.contains("java.nio.");
    if is_object {
        return None;
    }
    let mut cursor = Cursor::new(value.as_bytes());
    let is_number = cursor.number().is_ok() && cursor.at() == value.len();
    if !is_text && (is_number || matches!(value, "true" | "false")) {
        json.extend_from_slice(value.as_bytes());
    } else {
        write_text(value.as_bytes(), json);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str, names: &[&str]) -> Result<String, &'static str> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        as_json(text.as_bytes(), &names, |name| name.starts_with('t')).map(|json| String::from_utf8(json).unwrap())
    }

    #[test]
    fn keys_of_simple_types_become_objects() {
        for (text, names, expected) in [
            ("Struct{id=1}", &["id"][..], r#"{"id":1}"#),
            ("Struct{id=-9223372036854775808,ok=true}", &["id", "ok"], r#"{"id":-9223372036854775808,"ok":true}"#),
            ("Struct{t=a,b=c}", &["t"], r#"{"t":"a,b=c"}"#),
            ("Struct{t=}}", &["t"], r#"{"t":"}"}"#),
            ("Struct{t=1,id=2}", &["t", "id"], r#"{"t":"1","id":2}"#),
            ("Struct{a=1,c=3,b=2}", &["a", "b", "c"], r#"{"a":1,"c":3,"b":2}"#),
            ("Struct{amount=1.50,at=2026-02-03}", &["amount", "at"], r#"{"amount":1.50,"at":"2026-02-03"}"#),
        ] {
            assert_eq!(json(text, names).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused_with_the_remedy() {
        for (text, names) in [
            ("Struct{t=a,id=1,id=2}", &["t", "id"][..]),
            ("Struct{b=2}", &["a", "b"]),
            ("Struct{id=Struct{scale=0,value=java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]}}", &["id"]),
            ("Struct{id=[B@1b2c3d}", &["id"]),
            ("Struct{id=1", &["id"]),
            ("Struct{other=1}", &["id"]),
            ("Struct{id=1}", &[]),
        ] {
            assert!(json(text, names).unwrap_err().contains("header.converter"), "{text}");
        }
    }
}
