//! Names are found without regard to case and keep their spelling.

use anyhow::Result;
use tributary_specs::GoldSpec;
use tributary_testkit::{assert_frames_eq, frame};

use crate::world::{World, name};

#[tokio::test]
async fn tables_columns_and_aliases_are_found_in_any_case_and_spelled_as_they_are() -> Result<()> {
    let world = World::new();
    world.append("silver.Orders", &frame!("OrderId: long | customerRef: long | total: long\n 1 | 7 | 10\n 2 | 7 | 5")).await?;
    world.append("silver.customers", &frame!("Ref: long | `full name`: string\n 7 | Ada")).await?;
    let spec = GoldSpec::new(
        name("gold.Totals"),
        "WITH Big AS (SELECT orderid, CUSTOMERREF, Total FROM SILVER.ORDERS o WHERE O.total > 1)
         SELECT c.`FULL NAME`, sum(b.TOTAL) AS GrandTotal, count(ORDERID) AS n
         FROM big b JOIN silver.Customers c ON B.customerref = c.REF
         GROUP BY C.`full name` HAVING SUM(b.total) > 0 ORDER BY grandtotal",
    );
    let report = world.run(&spec).await?;
    assert_eq!(report.positions.keys().collect::<Vec<_>>(), ["silver.Orders", "silver.customers"]);
    assert_frames_eq!(world.rows("gold.Totals").await?, frame!("`full name`: string | GrandTotal: long | n: long\n Ada | 15 | 2"));
    Ok(())
}

#[tokio::test]
async fn every_name_survives_in_back_quotes() -> Result<()> {
    let world = World::new();
    world
        .append(
            "silver.`or ders`",
            &frame!("time: long | sex: string | update_type: string | `a``b`: long | `c d`: long\n 1 | f | x | 2 | 3"),
        )
        .await?;
    let spec = GoldSpec::new(name("gold.odd"), "SELECT time, sex, update_type, `a``b`, `c d` FROM silver.`or ders` t WHERE t.`c d` = 3");
    world.run(&spec).await?;
    assert_eq!(world.rows("gold.odd").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_three_part_name_is_the_same_table_in_the_lakes_catalogue() -> Result<()> {
    let world = World::new();
    world.append("silver.t", &frame!("id: long\n 1")).await?;
    world.run(&GoldSpec::new(name("gold.t"), "SELECT main.silver.t.ID FROM main.silver.t")).await?;
    assert_frames_eq!(world.rows("gold.t").await?, frame!("id: long\n 1"));
    let other = GoldSpec::new(name("gold.u"), "SELECT id FROM elsewhere.silver.t");
    assert!(world.run(&other).await.is_err());
    Ok(())
}

/// Two tables with columns of one name: conditions hold of the column that they name, on whichever side of whichever join, so that
/// conditions of which each row meets one take the result apart and nothing is lost or doubled.
#[tokio::test]
async fn a_condition_over_a_join_is_of_the_column_that_it_names_though_both_sides_have_one_called_so() -> Result<()> {
    let world = World::new();
    world.append("silver.orders", &frame!("id: long | customer: long\n 1 | 4\n 2 | 5\n 3 | 9\n 9 | 1")).await?;
    world.append("silver.customers", &frame!("id: long | region: string\n 4 | north\n 5 | null\n 6 | north\n 1 | south")).await?;
    for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for (at, (one, other)) in
            [("o.id * 2 = 2", "o.id * 2 <> 2"), ("o.id > c.id", "o.id <= c.id"), ("c.id * 1 > 4", "c.id * 1 <= 4")].into_iter().enumerate()
        {
            let from = format!("FROM silver.orders o {join} silver.customers c ON o.customer = c.id");
            let rows = async |name_of: &str, condition: String| -> Result<usize> {
                let table = format!("gold.{name_of}_{at}_{}", join.replace(' ', "_"));
                let query = format!("SELECT o.id AS order_id, c.id AS customer_id, region {from} WHERE {condition}");
                world.run(&GoldSpec::new(name(&table), query)).await?;
                Ok(world.rows(&table).await?.len())
            };
            let all = rows("all", "true".to_owned()).await?;
            let parts = rows("one", one.to_owned()).await? + rows("other", other.to_owned()).await?;
            let neither = rows("neither", format!("coalesce({one}, false) = false AND ({other}) IS NULL")).await?;
            assert_eq!(parts + neither, all, "{join} {one}");
        }
    }
    Ok(())
}
