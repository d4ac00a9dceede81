CREATE OR REFRESH MATERIALIZED VIEW gold.daily_revenue
COMMENT 'Orders and revenue by the day they were placed, cancelled ones left out'
AS
select cast(placed_at as date) as day, count(*) as orders, sum(amount) as revenue
from silver.orders
where status <> 'cancelled'
group by cast(placed_at as date);
