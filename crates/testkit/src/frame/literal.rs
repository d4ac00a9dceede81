//! Frames written down as tables.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use super::schema::plain;
use super::{Frame, text};
use crate::value::Value;

/// Reads a table; the problem names line and column.
pub(super) fn parse(source: &str) -> Result<Frame, String> {
    let mut lines =
        source.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).filter(|(_, line)| !line.is_empty() && !line.starts_with("//"));
    let (line, header) = lines.next().ok_or("there is no header")?;
    let fields =
        cells(header).iter().map(|cell| field(cell).map_err(|why| format!("line {line}: {why}"))).collect::<Result<Vec<_>, _>>()?;
    let rows =
        lines.map(|(line, row)| read_row(row, &fields).map_err(|why| format!("line {line}: {why}"))).collect::<Result<Vec<_>, _>>()?;
    for (at, field) in fields.iter().enumerate().filter(|(_, field)| !field.is_nullable()) {
        if let Some(row) = rows.iter().position(|row| row[at].is_null()) {
            return Err(format!("row {row}: column {} is null and not nullable", field.name()));
        }
    }
    Ok(Frame::from_rows(Arc::new(Schema::new(fields)), &rows))
}

fn read_row(row: &str, fields: &[Field]) -> Result<Vec<Value>, String> {
    let cells = cells(row);
    if cells.len() != fields.len() {
        return Err(format!("{} cells for {} columns", cells.len(), fields.len()));
    }
    let read =
        |(cell, field): (&&str, &Field)| text::read(cell, field.data_type()).map_err(|why| format!("column {}: {why}", field.name()));
    cells.iter().zip(fields).map(read).collect()
}

/// The cells of a line, parted by `|` outside JSON text and back-quotes.
fn cells(line: &str) -> Vec<&str> {
    let (mut cells, mut start) = (Vec::new(), 0);
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match quote {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '"' || c == '`' => quote = Some(c),
            None if c == '|' => {
                cells.push(line[start..at].trim());
                start = at + 1;
            }
            None => {}
        }
    }
    cells.push(line[start..].trim());
    cells
}

fn field(cell: &str) -> Result<Field, String> {
    let (name, rest) = match cell.strip_prefix('`') {
        Some(quoted) => quoted_name(quoted).ok_or_else(|| format!("{cell}: the back-quote is not closed"))?,
        None => cell
            .split_once(':')
            .map(|(name, rest)| (name.trim().to_owned(), rest))
            .ok_or_else(|| format!("{cell}: a column is name: type"))?,
    };
    let rest = rest.trim().trim_start_matches(':').trim();
    let (type_text, nullable) = match rest.strip_suffix('!') {
        Some(type_text) => (type_text.trim(), false),
        None => (rest, true),
    };
    let data_type = match type_text.parse::<tributary_specs::DataType>() {
        Ok(data_type) => data_type.to_arrow(),
        Err(why) => type_text.parse::<DataType>().map_err(|_| format!("column {name}: {why}"))?,
    };
    Ok(Field::new(name, data_type, nullable))
}

/// The name up to the closing back-quote (doubled inside), and what follows.
fn quoted_name(quoted: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let at = rest.find('`')?;
        name.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('`') {
            Some(after) => {
                name.push('`');
                rest = after;
            }
            None => return Some((name, rest)),
        }
    }
}

/// The table, columns aligned.
pub(super) fn table(frame: &Frame) -> String {
    render(frame, frame.len()).join("\n")
}

/// The macro call that makes the frame, cut after this many rows.
pub(super) fn pasteable(frame: &Frame, rows_max: usize) -> String {
    let mut text = "frame!(r#\"\n".to_owned();
    for line in render(frame, rows_max) {
        text.push_str(&format!("    {line}\n"));
    }
    if frame.len() > rows_max {
        text.push_str(&format!("    // and {} more\n", frame.len() - rows_max));
    }
    text + "\"#)"
}

fn render(frame: &Frame, rows_max: usize) -> Vec<String> {
    let schema = frame.schema();
    let header = schema.fields().iter().map(|field| head(field)).collect::<Vec<_>>();
    let rows = frame
        .rows()
        .into_iter()
        .take(rows_max)
        .map(|row| row.iter().zip(schema.fields()).map(|(value, field)| text::write(value, field.data_type())).collect::<Vec<_>>());
    let lines: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let widths: Vec<usize> =
        (0..schema.fields().len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default()).collect();
    let line = |cells: &Vec<String>| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        padded.join(" | ").trim_end().to_owned()
    };
    lines.iter().map(line).collect()
}

fn head(field: &Field) -> String {
    let name = field.name();
    let word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let name = if word { name.clone() } else { format!("`{}`", name.replace('`', "``")) };
    format!("{name}: {}{}", type_text(field.data_type()), if field.is_nullable() { "" } else { "!" })
}

/// Delta's text where it says all there is to say, else Arrow's.
fn type_text(data_type: &DataType) -> String {
    let plain = plain(data_type);
    match tributary_specs::DataType::from_arrow("", &plain) {
        Ok(delta) if delta.to_arrow() == plain => delta.to_string(),
        _ => data_type.to_string(),
    }
}
