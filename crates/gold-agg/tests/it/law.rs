//! G1: after every run the table equals the query over its inputs at the versions it records.
//!
//! Inputs change by random commits; runs come at random. The expected rows are computed in plain Rust from the rows that the
//! inputs had at the recorded versions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use tributary_specs::{Column, DataType, GoldSpec};
use tributary_testkit::{Frame, FrameDiff, Law, Value};

use crate::world::{World, name, rows_of};

#[derive(Debug, Clone, PartialEq)]
struct Order {
    id: i64,
    customer: Option<i64>,
    amount: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Customer {
    id: i64,
    region: Option<&'static str>,
}

/// What happens between two runs.
#[derive(Debug, Clone)]
enum Step {
    AppendOrders(Vec<Order>),
    ReplaceOrders(Vec<Order>),
    AppendCustomers(Vec<Customer>),
    ReplaceCustomers(Vec<Customer>),
    OptimizeOrders,
    Run,
}

fn orders(rows: &[Order]) -> Frame {
    let columns = [Column::new("id", DataType::Long), Column::new("customer", DataType::Long), Column::new("amount", DataType::Long)];
    let rows: Vec<_> = rows.iter().map(|order| vec![whole(Some(order.id)), whole(order.customer), whole(order.amount)]).collect();
    Frame::of(&columns, &rows)
}

fn customers(rows: &[Customer]) -> Frame {
    let columns = [Column::new("id", DataType::Long), Column::new("region", DataType::String)];
    let rows: Vec<_> = rows.iter().map(|customer| vec![whole(Some(customer.id)), text(customer.region)]).collect();
    Frame::of(&columns, &rows)
}

fn whole(value: Option<i64>) -> Value {
    value.map_or(Value::Null, |value| Value::Int(value.into()))
}

fn text(value: Option<&str>) -> Value {
    value.map_or(Value::Null, Value::text)
}

/// A query and its result in plain Rust.
struct View {
    query: &'static str,
    columns: &'static [(&'static str, &'static str)],
    expected: fn(&[Order], &[Customer]) -> Vec<Vec<Value>>,
}

const VIEWS: [View; 5] = [
    View {
        query: "SELECT customer, sum(amount) AS total, count(*) AS n, count(amount) AS known, min(amount) AS least FROM silver.orders GROUP BY customer",
        columns: &[("customer", "long"), ("total", "long"), ("n", "long"), ("known", "long"), ("least", "long")],
        expected: |orders, _| {
            let mut groups: BTreeMap<Option<i64>, Vec<Option<i64>>> = BTreeMap::new();
            orders.iter().for_each(|order| groups.entry(order.customer).or_default().push(order.amount));
            let row = |(customer, amounts): (Option<i64>, Vec<Option<i64>>)| {
                let known: Vec<i64> = amounts.iter().copied().flatten().collect();
                let total = (!known.is_empty()).then(|| known.iter().sum());
                let counts = [amounts.len() as i64, known.len() as i64];
                vec![whole(customer), whole(total), whole(Some(counts[0])), whole(Some(counts[1])), whole(known.iter().copied().min())]
            };
            groups.into_iter().map(row).collect()
        },
    },
    View {
        query: "SELECT c.region, sum(o.amount) AS total FROM silver.orders o JOIN silver.customers c ON o.customer = c.id GROUP BY c.region",
        columns: &[("region", "string"), ("total", "long")],
        expected: |orders, customers| {
            let mut totals: BTreeMap<Option<&str>, Option<i64>> = BTreeMap::new();
            for order in orders {
                for customer in customers.iter().filter(|customer| order.customer == Some(customer.id)) {
                    let total = totals.entry(customer.region).or_default();
                    *total = [*total, order.amount].into_iter().flatten().reduce(|a, b| a + b);
                }
            }
            totals.into_iter().map(|(region, total)| vec![text(region), whole(total)]).collect()
        },
    },
    View {
        query: "SELECT c.id, o.id AS order_id FROM silver.customers c LEFT JOIN silver.orders o ON c.id = o.customer",
        columns: &[("id", "long"), ("order_id", "long")],
        expected: |orders, customers| {
            let mut rows = Vec::new();
            for customer in customers {
                let before = rows.len();
                for order in orders.iter().filter(|order| order.customer == Some(customer.id)) {
                    rows.push(vec![whole(Some(customer.id)), whole(Some(order.id))]);
                }
                if rows.len() == before {
                    rows.push(vec![whole(Some(customer.id)), Value::Null]);
                }
            }
            rows
        },
    },
    View {
        query: "SELECT DISTINCT amount FROM silver.orders WHERE customer NOT IN (SELECT id FROM silver.customers)",
        columns: &[("amount", "long")],
        expected: |orders, customers| {
            let known: BTreeSet<i64> = customers.iter().map(|customer| customer.id).collect();
            // NOT IN over nothing is true, also of null.
            let strangers = orders.iter().filter(|order| known.is_empty() || order.customer.is_some_and(|id| !known.contains(&id)));
            strangers.map(|order| order.amount).collect::<BTreeSet<_>>().into_iter().map(|amount| vec![whole(amount)]).collect()
        },
    },
    View {
        query: "WITH o AS (SELECT id FROM silver.orders) SELECT id FROM o UNION ALL SELECT id FROM silver.customers",
        columns: &[("id", "long")],
        expected: |orders, customers| {
            let ids = orders.iter().map(|order| order.id).chain(customers.iter().map(|customer| customer.id));
            ids.map(|id| vec![whole(Some(id))]).collect()
        },
    },
];

fn some_orders() -> impl Strategy<Value = Vec<Order>> {
    let order = (0..20_i64, prop::option::of(0..4_i64), prop::option::of(-5..5_i64));
    vec(order.prop_map(|(id, customer, amount)| Order { id, customer, amount }), 0..5)
}

fn some_customers() -> impl Strategy<Value = Vec<Customer>> {
    let region = prop::option::of(prop::sample::select(vec!["north", "south"]));
    vec((0..4_i64, region).prop_map(|(id, region)| Customer { id, region }), 0..4)
}

fn steps() -> impl Strategy<Value = (usize, Vec<Step>)> {
    let step = prop_oneof![
        3 => some_orders().prop_map(Step::AppendOrders),
        1 => some_orders().prop_map(Step::ReplaceOrders),
        2 => some_customers().prop_map(Step::AppendCustomers),
        1 => some_customers().prop_map(Step::ReplaceCustomers),
        1 => Just(Step::OptimizeOrders),
        4 => Just(Step::Run),
    ];
    (0..VIEWS.len(), vec(step, 1..8))
}

/// The rows of both inputs by version.
#[derive(Default)]
struct History {
    orders: BTreeMap<i64, Vec<Order>>,
    customers: BTreeMap<i64, Vec<Customer>>,
}

fn latest<T: Clone>(history: &BTreeMap<i64, Vec<T>>) -> Vec<T> {
    history.values().next_back().cloned().unwrap_or_default()
}

async fn play(view: &View, steps: &[Step]) -> Result<u64> {
    let world = World::new();
    let spec = GoldSpec::new(name("gold.view"), view.query);
    let mut history = History::default();
    history.orders.insert(i64::try_from(world.append("silver.orders", &orders(&[])).await?)?, Vec::new());
    history.customers.insert(i64::try_from(world.append("silver.customers", &customers(&[])).await?)?, Vec::new());
    let mut runs = 0;
    for step in steps.iter().chain([&Step::Run]) {
        match step {
            Step::AppendOrders(rows) if rows.is_empty() => {}
            Step::AppendCustomers(rows) if rows.is_empty() => {}
            Step::AppendOrders(rows) => {
                let all = [latest(&history.orders), rows.clone()].concat();
                history.orders.insert(i64::try_from(world.append("silver.orders", &orders(rows)).await?)?, all);
            }
            Step::AppendCustomers(rows) => {
                let all = [latest(&history.customers), rows.clone()].concat();
                history.customers.insert(i64::try_from(world.append("silver.customers", &customers(rows)).await?)?, all);
            }
            Step::ReplaceOrders(rows) => {
                history.orders.insert(i64::try_from(world.replace("silver.orders", &orders(rows)).await?)?, rows.clone());
            }
            Step::ReplaceCustomers(rows) => {
                history.customers.insert(i64::try_from(world.replace("silver.customers", &customers(rows)).await?)?, rows.clone());
            }
            Step::OptimizeOrders => {
                let all = latest(&history.orders);
                if !all.is_empty() {
                    history.orders.insert(i64::try_from(world.optimize("silver.orders").await?)?, all);
                }
            }
            Step::Run => {
                world.run(&spec).await?;
                runs += 1;
                check(&world, view, &history).await?;
                anyhow::ensure!(
                    world.run(&spec).await?.version_to == Some(world.version("gold.view").await?),
                    "a second run writes nothing"
                );
            }
        }
    }
    Ok(runs)
}

async fn check(world: &World, view: &View, history: &History) -> Result<()> {
    let table = world.table("gold.view").await?;
    let mut at = BTreeMap::new();
    for source in ["silver.orders", "silver.customers"] {
        at.insert(source, table.progress(&format!("tributary:source:{source}")).await?);
    }
    let orders = match at["silver.orders"] {
        Some(version) => history.orders.get(&version).context("orders of that version")?.clone(),
        None => Vec::new(),
    };
    let customers = match at["silver.customers"] {
        Some(version) => history.customers.get(&version).context("customers of that version")?.clone(),
        None => Vec::new(),
    };
    // What is recorded has the rows of the latest version, whatever its number.
    anyhow::ensure!(orders == latest(&history.orders), "the view is behind its orders");
    anyhow::ensure!(at["silver.customers"].is_none() || customers == latest(&history.customers), "the view is behind its customers");
    let columns: Vec<Column> =
        view.columns.iter().map(|(name, data_type)| Ok(Column::new(*name, data_type.parse()?))).collect::<Result<_>>()?;
    let difference = FrameDiff::between(rows_of(&table).await?, Frame::of(&columns, &(view.expected)(&orders, &customers))).compute();
    anyhow::ensure!(difference.is_none(), "{}\n{difference}", view.query);
    Ok(())
}

#[test]
fn law_g1_a_view_equals_its_query_over_its_inputs_at_the_recorded_versions() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Law::new("G1").holds(&steps(), |(view, steps), tried| {
        match runtime.block_on(play(&VIEWS[view], &steps)) {
            Ok(runs) => tried.add("runs", usize::try_from(runs).unwrap()),
            Err(error) => prop_assert!(false, "{error:#}"),
        }
        Ok(())
    });
}

#[test]
fn every_view_of_the_law_holds_for_one_rich_history() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let order = |id, customer, amount| Order { id, customer, amount };
    let steps = [
        Step::AppendOrders(vec![order(1, Some(1), Some(2)), order(2, Some(1), None), order(3, None, Some(4)), order(4, Some(3), Some(4))]),
        Step::Run,
        Step::AppendCustomers(vec![Customer { id: 1, region: Some("north") }, Customer { id: 2, region: None }]),
        Step::Run,
        Step::OptimizeOrders,
        Step::Run,
        Step::ReplaceOrders(vec![order(5, Some(2), Some(-1))]),
        Step::ReplaceCustomers(vec![]),
    ];
    for view in &VIEWS {
        runtime.block_on(play(view, &steps))?;
    }
    Ok(())
}
