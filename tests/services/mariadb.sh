#!/usr/bin/env bash
# MariaDB with row-based binary log, on loopback, not flushed to disk. Verbs: see lib.sh.
source "$(dirname "$0")/lib.sh"

start_mariadb() {
  command -v mariadbd >/dev/null || PATH="$PATH:/usr/sbin"
  command -v mariadbd >/dev/null || fail "MariaDB is not installed: run tests/services/install.sh core"
  local data="$run/mariadb/data" port first=; port="$(port mariadb)"
  if [ ! -f "$data/ready" ]; then
    rm -rf "$data"; mkdir -p "$data"; [ "$(id -u)" != 0 ] || chown mysql: "$data" "$run/mariadb"
    as_user mysql mariadb-install-db --no-defaults --datadir="$data" --auth-root-authentication-method=normal --skip-test-db \
      --innodb-flush-log-at-trx-commit=0 >>"$run/mariadb/log" 2>&1 || { say_log mariadb; fail "mariadb-install-db failed"; }
    cat > "$run/mariadb/first.sql" <<'C'
alter user root@localhost identified by 'tributary';
create user tributary@'%' identified by 'tributary';
grant all privileges on *.* to tributary@'%' with grant option;
create database depot;
C
    chmod 644 "$run/mariadb/first.sql"; first="--init-file=$run/mariadb/first.sql"
  fi
  start mariadb mysql "$(command -v mariadbd)" --no-defaults --datadir="$data" --socket="$data/socket" --pid-file="$data/pid" \
    --port="$port" --bind-address=127.0.0.1 --skip-name-resolve --server-id=223344 --log-bin=mysql-bin --binlog-format=ROW \
    --binlog-row-image=FULL --binlog-row-metadata=FULL --sync-binlog=0 --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=64M \
    --character-set-server=utf8mb4 --performance-schema=OFF --default-time-zone=+00:00 $first
  export MYSQL_PWD=tributary
  wait_until mariadb "$start_limit" mariadb --no-defaults -h 127.0.0.1 -P "$port" -u tributary -e 'select 1' depot
  touch "$data/ready"
  write_env mariadb <<C
MYSQL_HOST=127.0.0.1
MYSQL_PORT=$port
MYSQL_TCP_PORT=$port
MYSQL_USER=tributary
MYSQL_PASSWORD=tributary
MYSQL_PWD=tributary
MYSQL_DATABASE=depot
C
}

verbs mariadb "$@"
