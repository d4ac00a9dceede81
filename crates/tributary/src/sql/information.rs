//! `information_schema` of a catalogue, and of all of them in `system.information_schema`: made when it is asked for.

use tributary_lake::Table;
use tributary_lake::arrow::array::RecordBatch;
use tributary_spark_sql::type_name;
use tributary_specs::{Column, DataType, TableName};

use super::describe::created_at;
use super::grants::{self, Securable};
use super::listing::{Cell, Listing, Of};
use super::open::Catalogues;
use super::spaces::Mark;
use super::{Error, functions, keys, masks, spaces};
use crate::system;

/// The schema's name.
pub(super) const SCHEMA: &str = "information_schema";

/// Its views.
pub(super) const VIEWS: &[&str] = &[
    "catalogs",
    "schemata",
    "tables",
    "columns",
    "table_constraints",
    "key_column_usage",
    "check_constraints",
    "table_privileges",
    "schema_privileges",
    "catalog_privileges",
    "routines",
    "parameters",
    "column_masks",
    "row_filters",
];

/// The rows of one of its views; none where it has no such view.
pub(super) async fn rows(catalogues: &mut Catalogues, catalogue: &str, view: &str) -> Result<Option<RecordBatch>, Error> {
    if !VIEWS.contains(&view) {
        return Ok(None);
    }
    let lake = catalogues.lake().clone();
    let names = if catalogue == system::NAME { spaces::catalogues(&lake).await? } else { vec![catalogue.to_owned()] };
    let listing = match view {
        "catalogs" => of_catalogues(&lake, &names).await?,
        "schemata" => schemata(&lake, &names).await?,
        "routines" | "parameters" => routines(&lake, &names, view == "parameters").await?,
        "table_privileges" | "schema_privileges" | "catalog_privileges" => privileges(&lake, &names, view).await?,
        "column_masks" | "row_filters" => masks::listing(&lake, &names, view == "column_masks").await?,
        _ => {
            let mut listing = columns_of(view);
            for name in &names {
                let lake = spaces::catalogue(&lake, name)?;
                for table in spaces::tables(&lake).await? {
                    match lake.table(&table).await {
                        Ok(Some(table)) => of_table(&mut listing, view, name, &table).await?,
                        Ok(None) => {}
                        Err(error) => tracing::warn!(%table, %error, "left out of information_schema"),
                    }
                }
            }
            listing
        }
    };
    Ok(Some(listing.batch()?))
}

fn columns_of(view: &str) -> Listing {
    match view {
        "tables" => Listing::new(&[
            ("table_catalog", Of::Text),
            ("table_schema", Of::Text),
            ("table_name", Of::Text),
            ("table_type", Of::Text),
            ("is_insertable_into", Of::Text),
            ("commit_action", Of::Text),
            ("table_owner", Of::Text),
            ("comment", Of::Text),
            ("created", Of::Instant),
            ("created_by", Of::Text),
            ("last_altered", Of::Instant),
            ("last_altered_by", Of::Text),
            ("data_source_format", Of::Text),
            ("storage_path", Of::Text),
            ("storage_sub_directory", Of::Text),
        ]),
        "columns" => Listing::new(&[
            ("table_catalog", Of::Text),
            ("table_schema", Of::Text),
            ("table_name", Of::Text),
            ("column_name", Of::Text),
            ("ordinal_position", Of::Whole),
            ("column_default", Of::Text),
            ("is_nullable", Of::Text),
            ("full_data_type", Of::Text),
            ("data_type", Of::Text),
            ("character_maximum_length", Of::Whole),
            ("numeric_precision", Of::Whole),
            ("numeric_precision_radix", Of::Whole),
            ("numeric_scale", Of::Whole),
            ("datetime_precision", Of::Whole),
            ("interval_type", Of::Text),
            ("is_identity", Of::Text),
            ("identity_generation", Of::Text),
            ("is_generated", Of::Text),
            ("generation_expression", Of::Text),
            ("partition_index", Of::Whole),
            ("comment", Of::Text),
        ]),
        "key_column_usage" => Listing::new(&[
            ("constraint_catalog", Of::Text),
            ("constraint_schema", Of::Text),
            ("constraint_name", Of::Text),
            ("table_catalog", Of::Text),
            ("table_schema", Of::Text),
            ("table_name", Of::Text),
            ("column_name", Of::Text),
            ("ordinal_position", Of::Whole),
            ("position_in_unique_constraint", Of::Whole),
        ]),
        "check_constraints" => Listing::texts(&["constraint_catalog", "constraint_schema", "constraint_name", "check_clause", "sql_path"]),
        _ => Listing::texts(&[
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "table_catalog",
            "table_schema",
            "table_name",
            "constraint_type",
            "is_deferrable",
            "initially_deferred",
            "enforced",
        ]),
    }
}

async fn of_table(listing: &mut Listing, view: &str, catalogue: &str, table: &Table) -> Result<(), Error> {
    let TableName { schema, name } = table.name().clone();
    let place = || [Cell::from(catalogue), Cell::from(schema.clone()), Cell::from(name.clone())];
    match view {
        "tables" => {
            let history = table.history(None).await?;
            let row = [
                "MANAGED".into(),
                if super::keeper(table).await?.is_none() { "YES" } else { "NO" }.into(),
                "PRESERVE".into(),
                Cell::Text(None),
                table.comment().map(str::to_owned).into(),
                Cell::Instant(created_at(&history)),
                Cell::Text(None),
                Cell::Instant(history.first().map(|entry| entry.timestamp)),
                history.first().and_then(|entry| entry.engine.clone()).into(),
                "DELTA".into(),
                table.lake().url(table.name())?.to_string().into(),
                Cell::Text(None),
            ];
            listing.push(place().into_iter().chain(row));
        }
        "columns" => {
            for (at, column) in table.columns().iter().enumerate() {
                let partition = table.partition_columns().iter().position(|name| *name == column.name);
                listing.push(place().into_iter().chain(of_column(at, column, partition)));
            }
        }
        "key_column_usage" => {
            for (constraint, key) in keys::of(table) {
                for (at, column) in key.columns.iter().enumerate() {
                    let unique = key.references.is_some().then_some(position(at));
                    let head = [Cell::from(catalogue), schema.clone().into(), constraint.clone().into()];
                    let tail = [column.clone().into(), Cell::Whole(Some(position(at))), Cell::Whole(unique)];
                    listing.push(head.into_iter().chain(place()).chain(tail));
                }
            }
        }
        "check_constraints" => {
            for check in table.checks() {
                let row = [check.name.clone().into(), check.expression.clone().into(), "CURRENT_PATH".into()];
                listing.push([Cell::from(catalogue), schema.clone().into()].into_iter().chain(row));
            }
        }
        _ => {
            let constraints = keys::of(table).into_iter().map(|(name, key)| {
                let kind = if key.references.is_some() { "FOREIGN KEY" } else { "PRIMARY KEY" };
                (name, kind, "NO")
            });
            let checks = table.checks().iter().map(|check| (check.name.clone(), "CHECK", "YES"));
            for (constraint, kind, enforced) in constraints.chain(checks) {
                let head = [Cell::from(catalogue), schema.clone().into(), constraint.into()];
                listing.push(head.into_iter().chain(place()).chain([kind.into(), "NO".into(), "NO".into(), enforced.into()]));
            }
        }
    }
    Ok(())
}

fn position(at: usize) -> i64 {
    i64::try_from(at + 1).unwrap_or(i64::MAX)
}

fn of_column(at: usize, column: &Column, partition: Option<usize>) -> [Cell; 18] {
    let (precision, scale, radix) = match column.data_type {
        DataType::Byte => (Some(3), Some(0), Some(10)),
        DataType::Short => (Some(5), Some(0), Some(10)),
        DataType::Integer => (Some(10), Some(0), Some(10)),
        DataType::Long => (Some(19), Some(0), Some(10)),
        DataType::Float => (Some(24), None, Some(2)),
        DataType::Double => (Some(53), None, Some(2)),
        DataType::Decimal { precision, scale } => (Some(i64::from(precision)), Some(i64::from(scale)), Some(10)),
        _ => (None, None, None),
    };
    let time = match column.data_type {
        DataType::Date => Some(0),
        DataType::Timestamp | DataType::TimestampNtz => Some(6),
        _ => None,
    };
    let full = type_name(&column.data_type).to_lowercase();
    let plain = full.split(['(', '<']).next().unwrap_or_default().to_uppercase();
    let yes = |is: bool| Cell::from(if is { "YES" } else { "NO" });
    [
        column.name.clone().into(),
        Cell::Whole(Some(position(at))),
        column.default.clone().into(),
        yes(column.nullable),
        full.into(),
        plain.into(),
        Cell::Whole(matches!(column.data_type, DataType::String).then_some(0)),
        Cell::Whole(precision),
        Cell::Whole(radix),
        Cell::Whole(scale),
        Cell::Whole(time),
        Cell::Text(None),
        "NO".into(),
        Cell::Text(None),
        yes(column.generated.is_some()),
        column.generated.clone().into(),
        Cell::Whole(partition.map(position)),
        column.comment.clone().into(),
    ]
}

async fn of_catalogues(lake: &tributary_lake::Lake, names: &[String]) -> Result<Listing, Error> {
    let mut listing = Listing::texts(&["catalog_name", "catalog_owner", "comment", "created", "created_by"]);
    for name in names {
        let Mark { created_at, created_by, comment } = spaces::catalogue_space(lake, name)?.mark().await?.unwrap_or_default();
        listing.push([name.as_str().into(), created_by.clone().into(), comment.into(), created_at.into(), created_by.into()]);
    }
    Ok(listing)
}

async fn schemata(lake: &tributary_lake::Lake, names: &[String]) -> Result<Listing, Error> {
    let mut listing = Listing::texts(&["catalog_name", "schema_name", "schema_owner", "comment", "created", "created_by"]);
    for name in names {
        let lake = spaces::catalogue(lake, name)?;
        for schema in spaces::schemas(&lake).await?.into_iter().chain([SCHEMA.to_owned()]) {
            let Mark { created_at, created_by, comment } = spaces::schema_space(&lake, &schema)?.mark().await?.unwrap_or_default();
            let owner = created_by.clone();
            listing.push([name.as_str().into(), schema.into(), owner.into(), comment.into(), created_at.into(), created_by.into()]);
        }
    }
    Ok(listing)
}

async fn routines(lake: &tributary_lake::Lake, names: &[String], parameters: bool) -> Result<Listing, Error> {
    let mut listing = match parameters {
        true => Listing::new(&[
            ("specific_catalog", Of::Text),
            ("specific_schema", Of::Text),
            ("specific_name", Of::Text),
            ("ordinal_position", Of::Whole),
            ("parameter_mode", Of::Text),
            ("parameter_name", Of::Text),
            ("full_data_type", Of::Text),
        ]),
        false => Listing::texts(&[
            "specific_catalog",
            "specific_schema",
            "specific_name",
            "routine_catalog",
            "routine_schema",
            "routine_name",
            "routine_type",
            "data_type",
            "routine_body",
            "routine_definition",
            "external_language",
            "is_deterministic",
            "comment",
            "created_by",
        ]),
    };
    for functions::Kept { function, comment, created_by } in functions::load(lake).await? {
        if !names.contains(&function.names[0]) {
            continue;
        }
        let place = || function.names.clone().map(Cell::from);
        if parameters {
            for (at, parameter) in function.parameters.iter().enumerate() {
                let row = [Cell::Whole(Some(position(at))), "IN".into(), parameter.name.clone().into()];
                listing.push(place().into_iter().chain(row).chain([type_name(&parameter.data_type).to_lowercase().into()]));
            }
            continue;
        }
        let row = [
            "FUNCTION".into(),
            function.returns.as_ref().map(type_name).into(),
            "SQL".into(),
            function.body.clone().into(),
            "SQL".into(),
            Cell::Text(None),
            comment.into(),
            created_by.into(),
        ];
        listing.push(place().into_iter().chain(place()).chain(row));
    }
    Ok(listing)
}

async fn privileges(lake: &tributary_lake::Lake, names: &[String], view: &str) -> Result<Listing, Error> {
    let mut listing = match view {
        "table_privileges" => Listing::texts(&[
            "grantor",
            "grantee",
            "table_catalog",
            "table_schema",
            "table_name",
            "privilege_type",
            "is_grantable",
            "inherited_from",
        ]),
        "schema_privileges" => {
            Listing::texts(&["grantor", "grantee", "catalog_name", "schema_name", "privilege_type", "is_grantable", "inherited_from"])
        }
        _ => Listing::texts(&["grantor", "grantee", "catalog_name", "privilege_type", "is_grantable"]),
    };
    let granted = grants::load(lake).await?;
    let mut securables = Vec::new();
    for name in names {
        let lake = spaces::catalogue(lake, name)?;
        match view {
            "table_privileges" => securables
                .extend(spaces::tables(&lake).await?.into_iter().map(|table| Securable::Table(name.clone(), table.schema, table.name))),
            "schema_privileges" => {
                securables.extend(spaces::schemas(&lake).await?.into_iter().map(|schema| Securable::Schema(name.clone(), schema)));
            }
            _ => securables.push(Securable::Catalogue(name.clone())),
        }
    }
    for securable in securables {
        for one in grants::on(&granted, &securable) {
            let inherited = if one.securable == securable { "NONE" } else { one.securable.kind() };
            let head = [one.granted_by.clone().into(), one.principal.clone().into()];
            let (privilege, apart) = (Cell::from(one.privilege.clone()), Cell::from("NO"));
            match &securable {
                Securable::Table(catalogue, schema, name) => {
                    let place = [catalogue, schema, name].map(|part| Cell::from(part.clone()));
                    listing.push(head.into_iter().chain(place).chain([privilege, apart, inherited.into()]));
                }
                Securable::Schema(catalogue, schema) => {
                    let place = [catalogue, schema].map(|part| Cell::from(part.clone()));
                    listing.push(head.into_iter().chain(place).chain([privilege, apart, inherited.into()]));
                }
                other => listing.push(head.into_iter().chain([other.to_string().into(), privilege, apart])),
            }
        }
    }
    Ok(listing)
}
