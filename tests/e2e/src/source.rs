//! What the databases hold in the end, in the form that recorded final states have.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use tributary_cli::demo::{ExpectedTable, Server, SourceColumn};

use crate::session::Database;

/// A table as it is now, every value in the server's own text.
pub fn read(database: &Database, table: &str) -> Result<ExpectedTable> {
    let described = match database.server {
        Server::Postgres => database.rows(&format!(
            "select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, \
             coalesce(a.attnum = any (i.indkey), false) from pg_attribute a \
             left join pg_index i on i.indrelid = a.attrelid and i.indisprimary \
             where a.attrelid = 'public.{table}'::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum"
        ))?,
        Server::MariaDb => database.rows(&format!(
            "select concat('v', column_name), concat('v', column_type), concat('v', if(is_nullable = 'NO', 't', 'f')), \
             concat('v', if(column_key = 'PRI', 't', 'f')) from information_schema.columns \
             where table_schema = '{}' and table_name = '{table}' order by ordinal_position",
            database.name
        ))?,
    };
    ensure!(!described.is_empty(), "{} has no table {table}", database.name);
    let mut columns = Vec::new();
    let mut primary_key = Vec::new();
    for column in described {
        let [name, source_type, not_null, key] = <[Option<String>; 4]>::try_from(column).ok().context("four values a column")?;
        let name = name.context("a column has a name")?;
        if key.as_deref() == Some("t") {
            primary_key.push(name.clone());
        }
        columns.push(SourceColumn {
            name,
            source_type: source_type.context("a column has a type")?,
            not_null: not_null.as_deref() == Some("t"),
        });
    }
    let selected: Vec<String> = columns.iter().map(|column| selected(database.server, column)).collect();
    let answer = database.rows(&format!("select {} from {table}", selected.join(", ")))?;
    let names = || columns.iter().map(|column| column.name.clone());
    let rows: Vec<BTreeMap<String, Option<String>>> = answer.into_iter().map(|row| names().zip(row).collect()).collect();
    Ok(ExpectedTable { primary_key, row_count: rows.len(), columns, rows })
}

fn selected(server: Server, column: &SourceColumn) -> String {
    let name = &column.name;
    if server == Server::Postgres {
        return format!("\"{name}\"");
    }
    let base = column.source_type.split(['(', ' ']).next().unwrap_or_default();
    let text = match base {
        "bit" => format!("concat('b''', bin(`{name}`), '''')"),
        "blob" | "varbinary" => format!("concat('0x', hex(`{name}`))"),
        _ => format!("cast(`{name}` as char character set utf8mb4)"),
    };
    format!("if(`{name}` is null, 'n', concat('v', {text}))")
}
