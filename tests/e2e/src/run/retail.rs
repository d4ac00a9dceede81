//! The retail pipeline with both its databases and connectors, with names of this run.

use anyhow::Result;

use super::pipeline;
use super::world::{Compared, World};
use crate::services::Services;
use crate::session::Database;
use crate::workload::{Depot, Profile, Shop};

/// Shop and depot of one run.
#[derive(Debug)]
pub struct Retail<'a> {
    /// Topics, connectors, pipeline.
    pub world: World<'a>,
    /// The database of orders and customers.
    pub shop: Database,
    /// The database of the inventory.
    pub depot: Database,
}

/// What is given to Debezium: what `docker/debezium` sets, then where our services are.
const SHOP: [&str; 2] = ["docker/debezium/postgres.json", "tests/services/connectors/postgres.json"];
const DEPOT: [&str; 2] = ["docker/debezium/mysql.json", "tests/services/connectors/mariadb.json"];
/// Takes away what people leave out.
const HOSTILE: &str = "tests/e2e/connectors/hostile.json";

impl<'a> Retail<'a> {
    /// Makes databases, first rows and connectors; gives the workloads back that go on from there.
    pub fn prepare(services: &'a Services, profile: Profile, seed: u64) -> Result<(Self, Shop, Depot)> {
        let tag = World::tag(profile.name());
        let (shop_name, depot_name) = (format!("shop_{tag}"), format!("depot_{tag}"));
        let mut world = World::new(services, &tag, pipeline::retail(profile, &tag, &shop_name, &depot_name)?)?;
        let (shop, depot) = (services.postgres()?.create(&shop_name)?, services.mariadb()?.create(&depot_name)?);
        let (mut orders, mut inventory) = (Shop::new(profile, seed), Depot::new(profile, seed));
        shop.execute_all(Shop::schema(profile).iter().chain(&orders.first_rows()).map(String::as_str))?;
        depot.execute_all(Depot::schema().iter().chain(&inventory.first_rows()).map(String::as_str))?;

        let hostile = profile == Profile::Hostile;
        let more = |files: [&'static str; 2]| files.into_iter().chain(hostile.then_some(HOSTILE)).map(str::to_owned);
        let mut of_shop: Vec<String> = more(SHOP).chain([format!("PGDATABASE={shop_name}")]).collect();
        of_shop.extend(hostile.then(|| "time.precision.mode=connect".to_owned()));
        let server = 10_000 + 2 * std::process::id() + u32::from(hostile);
        let of_depot: Vec<String> = more(DEPOT).chain([format!("MYSQL_DATABASE={depot_name}"), format!("SERVER_ID={server}")]).collect();
        world.register(&shop_name, &of_shop)?;
        world.register(&depot_name, &of_depot)?;

        let compared = |silver, table, database: &Database, promised| Compared { silver, table, database: database.clone(), promised };
        world.tables = vec![
            compared("silver.customers_current", "customers", &shop, false),
            compared("silver.orders", "orders", &shop, true),
            compared("silver.customers", "customers", &shop, true),
            compared("silver.inventory", "inventory", &depot, true),
        ];
        world.wait_for_topics()?;
        Ok((Self { world, shop, depot }, orders, inventory))
    }
}
