CREATE OR REFRESH MATERIALIZED VIEW gold.low_stock
COMMENT 'Products of which fewer than 100 can still be sold'
AS
select sku, warehouse, product, qty, reserved, qty - reserved as available
from silver.inventory
where qty - reserved < 100;
