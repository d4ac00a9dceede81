#!/usr/bin/env bash
# PostgreSQL with logical decoding, on loopback, not flushed to disk. Verbs: see lib.sh.
source "$(dirname "$0")/lib.sh"

bin="$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n1)"

start_postgres() {
  [ -x "$bin/postgres" ] || fail "PostgreSQL is not installed: run tests/services/install.sh core"
  local data="$run/postgres/data" port; port="$(port postgres)"
  if [ ! -f "$data/ready" ]; then
    rm -rf "$data"; mkdir -p "$data"; [ "$(id -u)" != 0 ] || chown postgres: "$data" "$run/postgres"
    echo tributary > "$run/postgres/password"; chmod 644 "$run/postgres/password"
    as_user postgres "$bin/initdb" -D "$data" -U postgres --pwfile="$run/postgres/password" --auth-local=trust --auth-host=scram-sha-256 \
      -E UTF8 --locale=C.UTF-8 --no-sync --no-instructions >>"$run/postgres/log" 2>&1 || { say_log postgres; fail "initdb failed"; }
    cat >> "$data/postgresql.conf" <<C
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_level = logical
max_wal_senders = 20
max_replication_slots = 20
max_connections = 60
shared_buffers = 64MB
fsync = off
synchronous_commit = off
full_page_writes = off
timezone = 'UTC'
C
    first=yes
  fi
  start postgres postgres "$bin/postgres" -D "$data" -p "$port"
  export PGHOST=127.0.0.1 PGPORT="$port" PGUSER=postgres PGPASSWORD=tributary
  wait_until postgres "$start_limit" "$bin/pg_isready" -q
  if [ -n "${first:-}" ]; then
    "$bin/psql" -qX -d postgres -v ON_ERROR_STOP=1 -c 'alter role postgres with login replication' -c 'create database shop'
    touch "$data/ready"
  fi
  write_env postgres <<C
PGHOST=127.0.0.1
PGPORT=$port
PGUSER=postgres
PGPASSWORD=tributary
PGDATABASE=shop
C
}
# INT is PostgreSQL's fast shutdown; TERM would wait for its clients.
stop_postgres() { stop postgres INT; }

verbs postgres "$@"
