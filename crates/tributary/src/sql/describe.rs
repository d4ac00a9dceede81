//! `DESCRIBE` and `SHOW`.

use chrono::{DateTime, Utc};
use tributary_lake::arrow::array::RecordBatch;
use tributary_lake::datafusion::prelude::DataFrame;
use tributary_lake::{CommitEntry, Table};
use tributary_spark_sql::{Described, Kind, Name, Shown, type_name};
use tributary_specs::{Column, DataType};

use super::listing::{Cell, Listing, Of, is_like};
use super::open::Catalogues;
use super::{Error, Session, TextError, ddl, functions, information, masks, spaces};

/// What a SHOW lists.
pub(super) async fn show(catalogues: &mut Catalogues, shown: Shown) -> Result<RecordBatch, Error> {
    let listing = match shown {
        Shown::Catalogues { like } => {
            let mut listing = Listing::texts(&["catalog"]);
            let names = spaces::catalogues(catalogues.lake()).await?;
            names.into_iter().filter(|name| is_like(name, like.as_deref())).for_each(|name| listing.push([name.into()]));
            listing
        }
        Shown::Schemas { within, like } => {
            let catalogue = match within {
                Some(Name { parts, .. }) if parts.len() == 1 => parts[0].clone(),
                Some(name) => return Err(Error::Name { name: name.to_string(), kind: "catalogue", reason: "it has more than one part" }),
                None => catalogues.catalogue.clone(),
            };
            let lake = catalogues.catalogue_named(&catalogue).await?;
            let mut listing = Listing::texts(&["databaseName"]);
            let names = spaces::schemas(&lake).await?.into_iter().chain([information::SCHEMA.to_owned()]);
            names.filter(|name| is_like(name, like.as_deref())).for_each(|name| listing.push([name.into()]));
            listing
        }
        Shown::Tables { within, like } => {
            let within = within.or_else(|| catalogues.schema.clone().map(|schema| Name { parts: vec![schema], span: None }));
            let (lake, schema) = match within {
                Some(name) => catalogues.schema_named(&name).await.map(|(lake, schema)| (lake, Some(schema)))?,
                None => (catalogues.catalogue_named(&catalogues.catalogue.clone()).await?, None),
            };
            let mut listing = Listing::new(&[("database", Of::Text), ("tableName", Of::Text), ("isTemporary", Of::Truth)]);
            for table in spaces::tables(&lake).await? {
                let asked = schema.as_ref().is_none_or(|schema| *schema == table.schema);
                if asked && is_like(&table.name, like.as_deref()) {
                    listing.push([table.schema.into(), table.name.into(), Cell::Truth(false)]);
                }
            }
            listing
        }
        Shown::Columns(name) => {
            let table = catalogues.table_named(&name).await?;
            let mut listing = Listing::texts(&["col_name"]);
            table.columns().iter().for_each(|column| listing.push([column.name.clone().into()]));
            listing
        }
        Shown::Properties { table, key } => {
            let table = catalogues.table_named(&table).await?;
            let mut listing = Listing::texts(&["key", "value"]);
            for (name, value) in table.properties().iter().filter(|(name, _)| key.as_ref().is_none_or(|key| key == *name)) {
                listing.push([name.clone().into(), value.clone().into()]);
            }
            listing
        }
        Shown::Partitions(name) => return partitions(&catalogues.table_named(&name).await?).await,
        Shown::Functions { within, like, system, user } => {
            let mut listing = Listing::texts(&["function"]);
            if system && within.is_none() {
                let mut names: Vec<&str> = tributary_spark_sql::names().collect();
                names.sort_unstable();
                names.into_iter().filter(|name| is_like(name, like.as_deref())).for_each(|name| listing.push([name.into()]));
            }
            let within = within.map(|name| catalogues.schema_of(&name)).transpose()?;
            let made = functions::load(catalogues.lake()).await?.into_iter().filter(|_| user);
            let asked = made.filter(|made| {
                let [catalogue, schema, name] = &made.function.names;
                let within =
                    within.as_ref().is_none_or(|(of, within)| of.eq_ignore_ascii_case(catalogue) && within.eq_ignore_ascii_case(schema));
                within && is_like(name, like.as_deref())
            });
            let mut names: Vec<String> = asked.map(|made| made.function.full_name()).collect();
            names.sort_unstable();
            names.into_iter().for_each(|name| listing.push([name.into()]));
            listing
        }
        Shown::CreateTable(name) => {
            let table = catalogues.table_named(&name).await?;
            let mut listing = Listing::texts(&["createtab_stmt"]);
            listing.push([ddl::definition_of(&table).trim_end().to_owned().into()]);
            listing
        }
    };
    listing.batch()
}

async fn partitions(table: &Table) -> Result<RecordBatch, Error> {
    if table.partition_columns().is_empty() {
        let what = "SHOW PARTITIONS of a table without partitions".to_owned();
        return Err(TextError::Refused { what, hint: None, span: None }.into());
    }
    let mut rows: Vec<Vec<Option<String>>> = Vec::new();
    for file in table.files().await? {
        rows.push(table.partition_columns().iter().map(|name| file.partition_values.get(name).cloned().flatten()).collect());
    }
    rows.sort();
    rows.dedup();
    let mut listing = Listing::texts(&["partition"]);
    for row in rows {
        let pairs = table.partition_columns().iter().zip(row);
        let pairs = pairs.map(|(name, value)| format!("{name}={}", value.unwrap_or_else(|| "null".to_owned())));
        listing.push([pairs.collect::<Vec<_>>().join("/").into()]);
    }
    listing.batch()
}

/// What a DESCRIBE tells.
pub(super) async fn describe(session: &mut Session, described: Described) -> Result<RecordBatch, Error> {
    let catalogues = &mut session.catalogues;
    match described {
        Described::Table { name, extended } => table(catalogues, &name, extended).await,
        Described::Detail(name) => detail(&catalogues.table_named(&name).await?).await,
        Described::History(name) => history(&catalogues.table_named(&name).await?).await,
        Described::Other { kind: Kind::Catalogue, name } => {
            let lake = catalogues.catalogue_named(&name.to_string()).await?;
            let called = lake.options().catalogue.clone();
            let mark = spaces::catalogue_space(&lake, &called)?.mark().await?.unwrap_or_default();
            space(&[("Catalog Name", Some(called)), ("Comment", mark.comment), ("Owner", mark.created_by), ("Created At", mark.created_at)])
        }
        Described::Other { kind: Kind::Schema, name } => {
            let (lake, schema) = catalogues.schema_named(&name).await?;
            let mark = spaces::schema_space(&lake, &schema)?.mark().await?.unwrap_or_default();
            let tables = lake.tables().await?.iter().filter(|table| table.schema == schema).count();
            space(&[
                ("Catalog Name", Some(lake.options().catalogue.clone())),
                ("Namespace Name", Some(schema)),
                ("Comment", mark.comment),
                ("Owner", mark.created_by),
                ("Created At", mark.created_at),
                ("Tables", Some(tables.to_string())),
            ])
        }
        Described::Other { name, .. } => function(catalogues, &name).await,
        Described::Query(text) => query(&session.plan(*text).await?),
    }
}

fn query(rows: &DataFrame) -> Result<RecordBatch, Error> {
    let mut listing = Listing::texts(&["col_name", "data_type", "comment"]);
    for field in rows.schema().fields() {
        let data_type = DataType::from_arrow(field.name(), field.data_type());
        let written = data_type.map_or_else(|_| field.data_type().to_string(), |known| type_name(&known));
        listing.push([field.name().clone().into(), written.to_lowercase().into(), None.into()]);
    }
    listing.batch()
}

fn space(rows: &[(&str, Option<String>)]) -> Result<RecordBatch, Error> {
    let mut listing = Listing::texts(&["info_name", "info_value"]);
    rows.iter().for_each(|(name, value)| listing.push([(*name).into(), value.clone().into()]));
    listing.batch()
}

async fn function(catalogues: &mut Catalogues, name: &Name) -> Result<RecordBatch, Error> {
    let made = super::function_named(catalogues, name).await?;
    let given = made.function.parameters.iter().map(|parameter| format!("{} {}", parameter.name, type_name(&parameter.data_type)));
    let mut listing = Listing::texts(&["function_desc"]);
    let returns = made.function.returns.as_ref().map(type_name).unwrap_or_else(|| "as the expression".to_owned());
    for (what, value) in [
        ("Function", Some(made.function.full_name())),
        ("Type", Some("SCALAR".to_owned())),
        ("Input", Some(given.collect::<Vec<_>>().join(", "))),
        ("Returns", Some(returns)),
        ("Comment", made.comment.clone()),
        ("Owner", made.created_by.clone()),
        ("Body", Some(made.function.body.clone())),
    ] {
        if let Some(value) = value {
            listing.push([format!("{what}: {value}").into()]);
        }
    }
    listing.batch()
}

async fn table(catalogues: &mut Catalogues, name: &Name, extended: bool) -> Result<RecordBatch, Error> {
    let table = catalogues.table_named(name).await?;
    let mut listing = Listing::texts(&["col_name", "data_type", "comment"]);
    let row = |name: &str, value: &str, comment: Option<String>| [Cell::from(name), value.into(), comment.into()];
    let of = |column: &Column| row(&column.name, &type_name(&column.data_type).to_lowercase(), column.comment.clone());
    table.columns().iter().for_each(|column| listing.push(of(column)));
    for (title, names) in [("# Partition Information", table.partition_columns()), ("# Clustering Information", table.cluster_columns())] {
        if names.is_empty() {
            continue;
        }
        listing.push(row(title, "", None));
        listing.push(row("# col_name", "data_type", Some("comment".to_owned())));
        let named = names.iter().filter_map(|name| table.columns().iter().find(|column| column.name == *name));
        named.for_each(|column| listing.push(of(column)));
    }
    if !extended {
        return listing.batch();
    }
    let catalogue = table.lake().options().catalogue.clone();
    let history = table.history(Some(1)).await?;
    let properties: Vec<String> = table.properties().iter().map(|(key, value)| format!("{key}={value}")).collect();
    listing.push(row("", "", None));
    listing.push(row("# Detailed Table Information", "", None));
    for (what, value) in [
        ("Catalog", catalogue.clone()),
        ("Database", table.name().schema.clone()),
        ("Table", table.name().name.clone()),
        ("Last Altered", history.first().map(|entry| entry.timestamp.to_rfc3339()).unwrap_or_default()),
        ("Version", table.version().to_string()),
        ("Type", "MANAGED".to_owned()),
        ("Kept by", super::keeper(&table).await?.unwrap_or("nothing but statements").to_owned()),
        ("Comment", table.comment().unwrap_or_default().to_owned()),
        ("Location", table.lake().url(table.name())?.to_string()),
        ("Provider", "delta".to_owned()),
        ("Table Properties", format!("[{}]", properties.join(","))),
    ] {
        listing.push(row(what, &value, None));
    }
    for mask in masks::load(catalogues.lake()).await? {
        if mask.catalogue == catalogue && mask.table == *table.name() {
            let what = mask.column.map_or_else(|| "Row Filter".to_owned(), |column| format!("Mask of {column}"));
            listing.push(row(&what, &mask.function, Some("recorded, not enforced".to_owned())));
        }
    }
    if !table.checks().is_empty() {
        listing.push(row("# Constraints", "", None));
        table.checks().iter().for_each(|check| listing.push(row(&check.name, &format!("CHECK ({})", check.expression), None)));
    }
    listing.batch()
}

/// When a table was made, where its history still goes back to that.
pub(super) fn created_at(history: &[CommitEntry]) -> Option<DateTime<Utc>> {
    history.last().filter(|entry| entry.version == 0).map(|entry| entry.timestamp)
}

async fn detail(table: &Table) -> Result<RecordBatch, Error> {
    let files = table.files().await?;
    let history = table.history(None).await?;
    let whole = |number: u64| Cell::Whole(i64::try_from(number).ok());
    let mut listing = Listing::new(&[
        ("format", Of::Text),
        ("name", Of::Text),
        ("description", Of::Text),
        ("location", Of::Text),
        ("createdAt", Of::Instant),
        ("lastModified", Of::Instant),
        ("partitionColumns", Of::Texts),
        ("clusteringColumns", Of::Texts),
        ("numFiles", Of::Whole),
        ("sizeInBytes", Of::Whole),
        ("properties", Of::Text),
        ("tableFeatures", Of::Texts),
        ("version", Of::Whole),
        ("numRows", Of::Whole),
    ]);
    let rows: Option<u64> = files.iter().map(tributary_lake::DataFile::live_rows).sum();
    listing.push([
        "delta".into(),
        format!("{}.{}", table.lake().options().catalogue, table.name()).into(),
        table.comment().map(str::to_owned).into(),
        table.lake().url(table.name())?.to_string().into(),
        Cell::Instant(created_at(&history)),
        Cell::Instant(history.first().map(|entry| entry.timestamp)),
        Cell::Texts(table.partition_columns().to_vec()),
        Cell::Texts(table.cluster_columns().to_vec()),
        whole(files.len() as u64),
        whole(files.iter().map(|file| file.size).sum()),
        serde_json::json!(table.properties()).to_string().into(),
        Cell::Texts(table.features()),
        whole(table.version()),
        Cell::Whole(rows.and_then(|rows| i64::try_from(rows).ok())),
    ]);
    listing.batch()
}

async fn history(table: &Table) -> Result<RecordBatch, Error> {
    let mut listing = Listing::new(&[
        ("version", Of::Whole),
        ("timestamp", Of::Instant),
        ("operation", Of::Text),
        ("operationParameters", Of::Text),
        ("operationMetrics", Of::Text),
        ("userMetadata", Of::Text),
        ("engineInfo", Of::Text),
    ]);
    for entry in table.history(None).await? {
        listing.push([
            Cell::Whole(i64::try_from(entry.version).ok()),
            Cell::Instant(Some(entry.timestamp)),
            entry.operation.into(),
            serde_json::json!(entry.parameters).to_string().into(),
            serde_json::json!(entry.metrics).to_string().into(),
            entry.user_metadata.into(),
            entry.engine.into(),
        ]);
    }
    listing.batch()
}
