-- Rows on the first call; on every call changes: new orders, orders that move on, customers that change, a few deletes.
insert into customers (id, external_id, name, tier, balance, credit_limit, signup_at, tags, prefs)
select n, gen_random_uuid(), 'customer ' || n, 'C' || (1 + n % 3), n * 1.25, 100 * (n % 20), now(), array['seed'], '{"mail": true}'
from generate_series(1, 200) n
on conflict (id) do nothing;

with last as (select coalesce(max(order_id), 0) as id from orders)
insert into orders (order_id, customer_id, sku, warehouse, qty, amount, placed_at, updated_at)
select last.id + n, 1 + (random() * 199)::int, 'SKU-' || lpad((1 + (random() * 49)::int)::text, 4, '0'), 1 + n % 3, 1 + n % 5,
       (random() * 500)::numeric(12, 2), now(), now()
from last, generate_series(1, 1000) n;

update orders set status = 'paid', updated_at = now() where order_id % 3 = 0 and status = 'new';
update orders set status = 'shipped', ship_day = current_date, updated_at = now() where order_id % 6 = 0 and status = 'paid';
update customers set tier = 'C' || (1 + (random() * 2)::int), balance = balance + 1 where id % 7 = (random() * 6)::int;
delete from orders where order_id % 101 = 0;
