//! `--db-name`: every layer in one schema.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tributary::datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, VisitMut, VisitorMut};
use tributary::datafusion::sql::sqlparser::dialect::DatabricksDialect;
use tributary::datafusion::sql::sqlparser::parser::Parser;
use tributary::{Layer, Pipeline, TableName};

use crate::failure::{Error, Failure};

/// Schemas that stand for layers; `quarantine`, `_state` and `system` stay.
const LAYERS: [&str; 3] = ["bronze", "silver", "gold"];

/// The layers of datasets whose schemas told them, by the names that they have without those.
pub type LayersBefore = BTreeMap<TableName, Layer>;

/// The same pipeline with every dataset, and every mention of it, in `schema`; and of which layers they were by the schemas they had.
pub fn in_one_schema(pipeline: &Pipeline, schema: &str) -> Result<(Pipeline, LayersBefore), Failure> {
    let spec = pipeline.spec();
    let datasets = spec.datasets();
    let moves = Moves::of(datasets.iter().map(|dataset| &dataset.table), schema)?;
    let mut moved = spec.clone();
    for feed in &mut moved.feeds {
        feed.table = moves.name(&feed.table);
    }
    for silver in &mut moved.silver {
        silver.select = silver.select.as_deref().map(|query| moves.query(&silver.table, query)).transpose()?;
        silver.table = moves.name(&silver.table);
        silver.sources.iter_mut().for_each(|source| *source = moves.name(source));
        for flow in &mut silver.flows {
            flow.select = flow.select.as_deref().map(|query| moves.query(&silver.table, query)).transpose()?;
            flow.sources.iter_mut().for_each(|source| *source = moves.name(source));
        }
    }
    for gold in &mut moved.gold {
        gold.query = moves.query(&gold.table, &gold.query)?;
        gold.table = moves.name(&gold.table);
        gold.sources.iter_mut().for_each(|source| *source = moves.name(source));
        gold.streams.iter_mut().for_each(|stream| stream.table = moves.name(&stream.table));
    }
    let layer = |table: &TableName| Some((moves.name(table), table.schema.to_lowercase().parse().ok()?));
    let layers = datasets.iter().filter_map(|dataset| layer(&dataset.table)).collect();
    Ok((Pipeline::from_yaml(&[("pipeline", &moved.to_yaml())])?, layers))
}

/// Which tables move, and where.
struct Moves {
    by_name: BTreeMap<TableName, TableName>,
}

impl Moves {
    fn of<'a>(datasets: impl Iterator<Item = &'a TableName>, schema: &str) -> Result<Self, Error> {
        let mut by_name: BTreeMap<TableName, TableName> = BTreeMap::new();
        let mut owners: BTreeMap<TableName, TableName> = BTreeMap::new();
        for table in datasets.filter(|table| LAYERS.contains(&table.schema.as_str())) {
            let moved = TableName::new(schema, &table.name);
            if let Some(first) = owners.insert(moved.folded(), table.clone()) {
                let (first, second, name) = (first.to_string(), table.to_string(), table.name.clone());
                return Err(Error::SameName { schema: schema.to_owned(), first, second, name });
            }
            by_name.insert(table.folded(), moved);
        }
        Ok(Self { by_name })
    }

    fn name(&self, table: &TableName) -> TableName {
        self.by_name.get(&table.folded()).cloned().unwrap_or_else(|| table.clone())
    }

    /// A query text in which the moved tables are read, and qualify columns, by their new names.
    fn query(&self, table: &TableName, query: &str) -> Result<String, Error> {
        let unreadable = |reason: String| Error::Query { table: table.to_string(), reason };
        let mut statements = Parser::parse_sql(&DatabricksDialect {}, query).map_err(|error| unreadable(error.to_string()))?;
        for statement in &mut statements {
            let _: ControlFlow<()> = statement.visit(&mut Renamer { moves: self });
        }
        Ok(statements.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    fn moved(&self, schema: &Ident, name: &Ident) -> Option<(Ident, Ident)> {
        let moved = self.by_name.get(&TableName::new(&schema.value, &name.value).folded())?;
        let spelled = |ident: &Ident, value: &str| Ident { value: value.to_owned(), ..ident.clone() };
        Some((spelled(schema, &moved.schema), spelled(name, &moved.name)))
    }
}

struct Renamer<'a> {
    moves: &'a Moves,
}

impl VisitorMut for Renamer<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let [.., ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(name)] = relation.0.as_mut_slice()
            && let Some(moved) = self.moves.moved(schema, name)
        {
            (*schema, *name) = moved;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expression
            && let [schema, name, _, ..] = parts.as_mut_slice()
            && let Some(moved) = self.moves.moved(schema, name)
        {
            (*schema, *name) = moved;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves() -> Moves {
        let tables = ["bronze.events", "silver.orders", "gold.revenue", "reference.rates"].map(|name| name.parse().unwrap());
        Moves::of(tables.iter(), "shop").unwrap()
    }

    #[test]
    fn tables_of_layers_move_and_others_stay() {
        let moves = moves();
        assert_eq!(moves.name(&TableName::new("silver", "orders")), TableName::new("shop", "orders"));
        assert_eq!(moves.name(&TableName::new("reference", "rates")), TableName::new("reference", "rates"));
    }

    #[test]
    fn queries_read_the_moved_tables_and_qualify_columns_by_them() {
        let query = "SELECT silver.orders.amount * r.rate FROM Silver.Orders JOIN reference.rates AS r ON r.id = silver.orders.id";
        assert_eq!(
            moves().query(&TableName::new("gold", "revenue"), query).unwrap(),
            "SELECT shop.orders.amount * r.rate FROM shop.orders JOIN reference.rates AS r ON r.id = shop.orders.id"
        );
    }

    #[test]
    fn texts_that_look_like_a_name_stay() {
        let query = "SELECT 'silver.orders' AS source FROM silver.orders";
        assert_eq!(moves().query(&TableName::new("gold", "revenue"), query).unwrap(), "SELECT 'silver.orders' AS source FROM shop.orders");
    }

    /// Every place in which a spec may name a table: where a new one is forgotten, a dataset would read what a run without the setting left.
    #[test]
    fn no_dataset_is_named_in_its_layers_schema_any_more() {
        let text = "
name: shop
feeds:
  - { name: a, table: bronze.a, decode: json, source: { files: { path: a, format: jsonl } }, columns: [{ name: id, type: long }, { name: at, type: timestamp }] }
  - { name: b, table: bronze.b, decode: json, source: { files: { path: b, format: jsonl } }, columns: [{ name: id, type: long }, { name: at, type: timestamp }] }
silver:
  - table: silver.orders
    sources: [bronze.a, silver.rates]
    select: SELECT bronze.a.id, bronze.a.at FROM bronze.a LEFT JOIN silver.rates ON silver.rates.id = bronze.a.id
    policy: append
    flows:
      - { name: of_b, sources: [bronze.b], select: 'SELECT id, at FROM bronze.b' }
      - { name: of_a, sources: [bronze.a], once: true }
  - { table: silver.rates, sources: [bronze.b], keys: [id], sequence_by: [at], policy: scd_type1 }
gold:
  - table: gold.pairs
    query: SELECT a.id, a.at FROM bronze.a AS a JOIN bronze.b AS b ON a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR
    sources: [bronze.a, bronze.b]
    streams: [{ table: bronze.a }, { table: bronze.b }]
";
        let pipeline = Pipeline::from_yaml(&[("shop.yml", text)]).unwrap();
        let (moved, layers) = in_one_schema(&pipeline, "shop").unwrap();
        let moved = moved.spec().to_yaml();
        for schema in LAYERS {
            assert!(text.contains(&format!("{schema}.")) && !moved.contains(&format!("{schema}.")), "{schema}:\n{moved}");
        }
        let of = |name: &str| layers[&TableName::new("shop", name)];
        assert_eq!(["a", "orders", "pairs"].map(of), [Layer::Bronze, Layer::Silver, Layer::Gold]);
    }

    #[test]
    fn two_datasets_of_one_name_are_refused_with_both() {
        let tables = ["bronze.orders", "silver.Orders"].map(|name| name.parse().unwrap());
        let error = Moves::of(tables.iter(), "shop").err().unwrap();
        assert_eq!(error.to_string(), "with --db-name shop both `bronze.orders` and `silver.Orders` would be `shop.Orders`");
    }
}
