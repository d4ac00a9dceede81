//! Paths into a JSON text: `$.a[0].b`, `$['a b'][*]`.

use super::text::Json;

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Place(usize),
    /// Every element of a list.
    Every,
    /// Every field of an object, which the dialect finds none of.
    EveryField,
}

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path(Vec<Step>);

impl Path {
    /// Reads a path; none where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix('$')?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix("['") {
                let end = inside.find("']")?;
                let name = &inside[..end];
                steps.push(if name == "*" { Step::EveryField } else { Step::Field(name.to_owned()) });
                rest = &inside[end + 2..];
            } else if let Some(inside) = rest.strip_prefix('[') {
                let end = inside.find(']')?;
                steps.push(match &inside[..end] {
                    "*" => Step::Every,
                    place if place.bytes().all(|c| c.is_ascii_digit()) => Step::Place(place.parse().ok()?),
                    _ => return None,
                });
                rest = &inside[end + 1..];
            } else {
                let name = rest.strip_prefix('.')?;
                let end = name.find(['.', '[']).unwrap_or(name.len());
                if end == 0 {
                    return None;
                }
                steps.push(if &name[..end] == "*" { Step::EveryField } else { Step::Field(name[..end].to_owned()) });
                rest = &name[end..];
            }
        }
        Some(Self(steps))
    }

    /// What a path leads to, as a text; none where it leads to nothing or to null.
    pub fn find(&self, json: &Json) -> Option<String> {
        let found = found(&self.0, json);
        match found.as_slice() {
            [] => None,
            [one] if !matches!(one, Json::Null) => Some(one.plain()),
            [_] => None,
            several => Some(Json::List(several.iter().copied().cloned().collect()).plain()),
        }
    }
}

fn found<'j>(steps: &[Step], json: &'j Json) -> Vec<&'j Json> {
    let Some((step, rest)) = steps.split_first() else { return vec![json] };
    match (step, json) {
        (Step::Field(name), json @ Json::Object(_)) => json.field(name).map_or_else(Vec::new, |value| found(rest, value)),
        (Step::Place(at), Json::List(inside)) => inside.get(*at).map_or_else(Vec::new, |value| found(rest, value)),
        // a name after [*] is looked for in each element
        (Step::Every, Json::List(inside)) => inside.iter().flat_map(|value| found(rest, value)).collect(),
        _ => Vec::new(),
    }
}
