-- Customers keep their old rows in the log (replica identity full), orders only their keys (the default).
create type order_status as enum ('new', 'paid', 'shipped', 'cancelled', 'returned');

create table customers (
  id bigint primary key,
  external_id uuid not null,
  name varchar(80) not null,
  email text,
  tier char(2) not null default 'C1',
  balance numeric,
  credit_limit numeric(12,2),
  score double precision,
  signup_at timestamptz not null,
  seen_at timestamp,
  calls_from time,
  birth_date date,
  tags text[],
  prefs jsonb,
  last_ip inet,
  active boolean not null default true,
  bio text
);
alter table customers replica identity full;
-- long texts go out of line uncompressed, however repetitive
alter table customers alter column bio set storage external;

create table orders (
  order_id bigint primary key,
  customer_id bigint not null,
  sku text not null,
  warehouse smallint not null,
  qty integer not null,
  amount numeric(12,2) not null,
  status order_status not null default 'new',
  channel text default 'web',
  placed_at timestamptz not null,
  updated_at timestamptz not null,
  ship_day date,
  notes text
);
alter table orders alter column notes set storage external;
