#!/usr/bin/env bash
# Proves the services: starts all, lets both connectors capture a table, restarts the broker and the databases under them, stops all and
# looks for leftovers. Prints the seconds of each step; ends with a line of counts.
source "$(dirname "$0")/lib.sh"

export SERVICES_RUN_DIR; SERVICES_RUN_DIR="$(mktemp -d /tmp/tributary-run.XXXXXX)"; need_run_dir
trap '"$here/down.sh" >&2 || true' EXIT
passed=0; failed=0

# step TEXT CMD..: runs CMD (by name or function), says how long it took and whether it held.
step() {
  local text="$1" begin held; shift; begin="$(clock)"
  # Not as a condition: there, bash would run on after a failed command.
  set +e; (set -e; "$@") >"$run/step" 2>&1; held=$?; set -e
  if [ "$held" = 0 ]; then passed=$((passed + 1)); printf 'ok      %6s s  %s\n' "$(since "$begin")" "$text"
  else failed=$((failed + 1)); printf 'FAILED  %6s s  %s\n' "$(since "$begin")" "$text"; sed 's/^/        /' "$run/step" | tail -n 40; fi
}

events() { "$services_dir/client/bin/python" "$here/events.py" "$@"; }
eventually() { local end=$((SECONDS + $1)); shift; until "$@"; do [ "$SECONDS" -lt "$end" ] || return 1; sleep 0.3; done; }
postgres() { psql -qAtX -v ON_ERROR_STOP=1 -c "$1"; }
mariadb_() { mariadb --no-defaults -h "$MYSQL_HOST" -P "$MYSQL_PORT" -u "$MYSQL_USER" "$MYSQL_DATABASE" -e "$1"; }

debezium="$here/../../docker/debezium"
postgres_connector() {
  local name="$1"; shift
  "$here/connect.sh" register "$name" "$debezium/postgres.json" "$here/connectors/postgres.json" "$@" \
    table.include.list=public.orders provide.transaction.metadata=true
}
mariadb_connector() {
  "$here/connect.sh" register "$1" "$debezium/mysql.json" "$here/connectors/mariadb.json" \
    "table.include.list=$MYSQL_DATABASE.stock" provide.transaction.metadata=true
}
tables() {
  postgres "create table orders (id bigint primary key, note text default 'none', amount numeric(12,2));
            insert into orders select i, 'order ' || i, i / 4.0 from generate_series(1, 20) i"
  mariadb_ "create table stock (id bigint unsigned primary key, name varchar(40) default 'none', amount decimal(12,2));
            insert into stock values (18446744073709551615, 'most', 1.25), (2, null, 2.50)"
}
snapshots() {
  eventually 60 events has shop.public.orders '"order 20"'
  eventually 60 events has wh.depot.stock '"most"'
}
# A new row in each database appears in its topic.
streams() {
  postgres "insert into orders values ($1, 'streamed $1', null)"
  mariadb_ "insert into stock values ($1, 'streamed $1', null)"
  eventually 90 events has shop.public.orders "\"streamed $1\""
  eventually 90 events has wh.depot.stock "\"streamed $1\""
}
# The events that only fidelity options bring.
kinds() {
  postgres "insert into orders values (900, null, 1); update orders set id = 901 where id = 900; delete from orders where id = 901; truncate orders"
  mariadb_ "update stock set amount = 3 where id = 2; delete from stock where id = 2"
  eventually 60 events has shop.public.orders '"op":"t"'
  eventually 60 events has shop.public.orders '"note":null,"amount":"ZA=="'
  eventually 60 events has wh.depot.stock '"op":"d"'
  eventually 60 events has shop.transaction '"status":"END"'
  eventually 60 events has wh.transaction '"status":"END"'
}
frozen_broker_answers_nobody() {
  "$here/kafka.sh" pause
  if timeout 5 "$services_dir/client/bin/python" "$here/events.py" count shop.public.orders; then return 1; fi
  "$here/kafka.sh" resume
}
# Avro through the converter: the wire format's zero byte and a schema id that the registry knows.
avro() {
  postgres_connector av "$here/connectors/avro.json"
  postgres "insert into orders values (500, 'framed', 1)"
  eventually 60 events has av.public.orders framed
  local id; id="$(events schema_id av.public.orders)"
  curl -fsS "$REGISTRY_URL/schemas/ids/$id" | jq -e '.schema | fromjson | .namespace == "av.public.orders" and .name == "Envelope"'
  curl -fsS "$REGISTRY_URL/subjects" | jq -e 'contains(["av.public.orders-key", "av.public.orders-value"])'
}
registry_remembers() {
  local before; before="$(curl -fsS "$REGISTRY_URL/subjects/av.public.orders-value/versions/latest")"
  "$here/registry.sh" restart
  [ "$(curl -fsS "$REGISTRY_URL/subjects/av.public.orders-value/versions/latest")" = "$before" ]
}
aborted() { local seen; seen="$(events aborted transactions)"; echo "$seen"; [ "$seen" = "3 5" ]; }
password() {
  local refusal=0; events login "$KAFKA_SASL_PASSWORD"
  events login wrong || refusal=$?
  [ "$refusal" = 3 ]
}
two_stacks() { local other; other="$(env -u SERVICES_RUN_DIR "$here/up.sh" postgres kafka)"; "$here/down.sh" "$other"; [ ! -e "$other" ]; }
nothing_left() {
  if alive "$pids"; then ps -fp ${pids//$'\n'/,}; return 1; fi
  if pgrep -af -- "$run/"; then return 1; fi
}

step "install" "$here/install.sh" core client
step "start all" "$here/up.sh"
set -a; source "$run/env"; set +a
for name in postgres mariadb kafka connect registry; do "$here/$name.sh" status || true; done
step "make tables" tables
step "register the Postgres connector" postgres_connector shop
step "register the MariaDB connector" mariadb_connector wh
step "snapshots arrive" snapshots
step "changes stream" streams 101
step "truncate, key change, null and transactions arrive" kinds
step "Avro goes through the registry" avro
step "the registry keeps its schemas over a restart" registry_remembers
step "aborted records are hidden from read_committed" aborted
step "the second listener wants the right password" password
step "a paused broker answers nobody" frozen_broker_answers_nobody
step "restart the broker" "$here/kafka.sh" restart
step "changes stream after the broker's restart" streams 102
step "kill and start the broker" eval '"$here/kafka.sh" kill; "$here/kafka.sh" start'
step "changes stream after the broker's crash" streams 103
step "restart Postgres and MariaDB" eval '"$here/postgres.sh" restart; "$here/mariadb.sh" restart'
step "changes stream after the databases' restart" streams 104
step "pause and resume Connect" eval '"$here/connect.sh" pause; sleep 2; "$here/connect.sh" resume'
step "changes stream after the pause" streams 105
step "a second stack beside the first" two_stacks
for name in postgres mariadb kafka connect registry; do "$here/$name.sh" status || true; done
pids="$(for file in "$run"/*/pid; do family "$(cut -d' ' -f1 "$file")"; done)"
step "stop all" "$here/down.sh" --keep
step "nothing is left" nothing_left
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
