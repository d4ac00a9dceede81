CREATE OR REFRESH MATERIALIZED VIEW gold.customer_orders
COMMENT 'Orders and money spent by customer'
AS
select c.id as customer_id, c.name, c.tier, count(o.order_id) as orders, sum(o.amount) as spent, max(o.placed_at) as last_order_at
from silver.customers_current c left join silver.orders o on o.customer_id = c.id
group by c.id, c.name, c.tier;
