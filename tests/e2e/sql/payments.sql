-- Types that Avro shows in another way than JSON does, and two columns that may be null and have a default.
create type payment_state as enum ('open', 'paid', 'refunded');

create table payments (
  code text not null,
  number bigint not null,
  amount numeric(12,2) not null,
  rate numeric(30,10),
  total numeric,
  fee real,
  score double precision,
  small smallint,
  count integer not null,
  paid boolean not null default false,
  paid_at timestamptz not null,
  booked_at timestamp,
  clock time,
  day date,
  reference uuid,
  kind text default 'card',
  priority integer default 7,
  tags text[],
  details jsonb,
  proof bytea,
  state payment_state not null default 'open',
  memo text,
  primary key (code, number)
);
-- long texts go out of line uncompressed, however repetitive
alter table payments alter column memo set storage external;
