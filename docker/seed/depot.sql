-- Rows on the first call; on every call stock that moves, and a product that goes and comes back.
insert ignore into inventory (sku, warehouse, product, qty, reserved, qty_total, unit_cost, state)
with recursive n (n) as (select 1 union all select n + 1 from n where n < 50)
select concat('SKU-', lpad(n, 4, '0')), 18446744073709551000 + n, concat('product ', n), 120, 0, 120, n * 1.1, 'ok' from n;

update inventory set reserved = reserved + 1, qty = greatest(qty - 1, 0), qty_total = qty_total + 1 where rand() < 0.5;
delete from inventory where sku = 'SKU-0007';
