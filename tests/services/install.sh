#!/usr/bin/env bash
# Installs what the services need. `install.sh [GROUP..]`, core unless said; safe to repeat, quick when all is there.
#   core      PostgreSQL, MariaDB, Apache Kafka with Connect, Debezium's connectors and an Avro converter, a schema registry
#   client    a Kafka client for Python, used by selftest.sh
#   spark     the jars that Spark needs for Kafka and Delta tables (Spark itself is PyPI's pyspark)
#   airflow   Apache Airflow in an environment of its own
#   delta_rs  delta-rs's Python package, the peer of `just bench silver`
#   pyspark   Spark for Python, which records what functions answer
#   auto_cdc  Spark for Python of the release that has pipelines, for `scripts/spark-dry-run`
#   duckdb_newest  DuckDB's newest release, the peer of `just bench gold`
#   interop   the readers of tests/interop, each in an environment of its own, and the jars of spark
# Debian packages go where apt puts them; jars and environments below ${SERVICES_DIR:-~/.cache/tributary-services}.
source "$(dirname "$0")/lib.sh"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Installs the Debian packages among PACKAGE.. that are missing, without letting Debian start any server.
debian() {
  local package missing=() policy=/usr/sbin/policy-rc.d ours=
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || fail "missing: ${missing[*]}; install them with your system's package manager"
  if [ ! -e "$policy" ]; then
    ours=yes; printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null; as_root chmod 755 "$policy"
  fi
  as_root apt-get update -q >/dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
  [ -z "$ours" ] || as_root rm -f "$policy"
}

# Stands for all that decides what jars/MODULE holds: its files and the versions that they name.
recipe() {
  local files line; files="$(cat "$here/poms/pom.xml"; find "$here/poms/$1" -type f -exec cat {} +)"
  { echo "$files"; pinned | while IFS= read -r line; do [[ "$files" != *"\${${line%%=*}}"* ]] || echo "$line"; done; } | cksum
}
pinned() { grep -E '^[a-z_0-9]+=' "$here/versions"; }

# Fills jars/MODULE for each MODULE of poms/ whose pom or versions changed; one call of Maven for all.
jars() {
  local module want missing=() properties=() line
  for module in "$@"; do
    want="$(recipe "$module")"
    [ "$(cat "$services_dir/jars/$module/.complete" 2>/dev/null)" = "$want" ] || missing+=("$module")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  while IFS= read -r line; do properties+=("-D$line"); done < <(pinned)
  for module in "${missing[@]}"; do rm -rf "$services_dir/jars/$module"; done
  mvn -B -q -T 4 -f "$here/poms/pom.xml" -pl "$(IFS=,; echo "${missing[*]}")" -Djars="$services_dir/jars" "${properties[@]}" package
  for module in "${missing[@]}"; do
    recipe "$module" > "$services_dir/jars/$module/.complete"
  done
}

java_tools() {
  command -v javac >/dev/null || debian default-jdk-headless
  command -v mvn >/dev/null || debian maven
}

install_core() {
  debian postgresql mariadb-server curl jq python3
  java_tools
  jars kafka debezium-postgres debezium-mariadb avro-converter registry
  if [ ! -s "$services_dir/jars/avro-converter/.manifests" ]; then
    # The converter's jar does not say what it holds in the way Connect now looks for it; Kafka's tool adds that.
    java -cp "$services_dir/jars/kafka/*" org.apache.kafka.tools.ConnectPluginPath sync-manifests \
      --plugin-location "$services_dir/jars/avro-converter" > "$services_dir/jars/avro-converter/.manifests"
  fi
  stored_classes
}

# Starts the Java servers once and lets each store the classes it loaded, which later starts map instead of loading them anew.
stored_classes() {
  local want name; want="$(cat "$services_dir"/jars/{kafka,avro-converter,registry}/.complete; java -version 2>&1)"
  [ "$(cat "$services_dir/jars/.classes" 2>/dev/null)" != "$want" ] || return 0
  mkdir -p "$services_dir/jars/connect"
  for name in kafka connect registry; do
    rm -f "$services_dir/jars/$name/classes.jsa"
    export "${name^^}_JAVA_OPTIONS=-XX:ArchiveClassesAtExit=$services_dir/jars/$name/classes.jsa -Xlog:cds=off"
  done
  local SERVICES_RUN_DIR SERVICES_STOP_SECONDS=180
  SERVICES_RUN_DIR="$(mktemp -d /tmp/tributary-run.XXXXXX)"; export SERVICES_RUN_DIR SERVICES_STOP_SECONDS
  "$here/up.sh" kafka connect registry >/dev/null
  "$here/down.sh"
  unset KAFKA_JAVA_OPTIONS CONNECT_JAVA_OPTIONS REGISTRY_JAVA_OPTIONS
  echo "$want" > "$services_dir/jars/.classes"
}

install_spark() { java_tools; jars spark; }

# A Python environment $services_dir/GROUP with REQUIREMENT.., made by uv.
python_environment() {
  local group="$1" want; shift
  want="$*"
  [ "$(cat "$services_dir/$group/.complete" 2>/dev/null)" != "$want" ] || return 0
  if [ ! -x "$services_dir/uv/bin/uv" ]; then
    debian python3-venv
    python3 -m venv "$services_dir/uv" && "$services_dir/uv/bin/pip" install -q --disable-pip-version-check "uv==$(version uv)"
  fi
  "$services_dir/uv/bin/uv" venv -q --clear "$services_dir/$group"
  "$services_dir/uv/bin/uv" pip install -q --python "$services_dir/$group/bin/python" "$@"
  echo "$want" > "$services_dir/$group/.complete"
}

install_client() { python_environment client "confluent-kafka==$(version confluent_kafka)"; }
install_duckdb_newest() { python_environment duckdb_newest "duckdb==$(version duckdb)"; }
install_airflow() { python_environment airflow "apache-airflow==$(version airflow)"; }

# The environment of a reader of tests/interop, as its requirements say.
reader() { local wanted; mapfile -t wanted < <(grep -v '^#' "$here/../interop/requirements-$1.txt"); python_environment "$1" "${wanted[@]}"; }
install_delta_rs() { reader delta_rs; }
install_pyspark() { reader pyspark; }
install_auto_cdc() { reader auto_cdc; }
install_interop() { reader delta_rs; reader duckdb; reader pyspark; install_spark; reader auto_cdc; row_tables; }

# The catalogue that Spark's AUTO CDC merges into, compiled against the Spark of its environment.
row_tables() {
  local source="$here/../interop/auto_cdc/RowTables.java" into="$services_dir/jars/row_tables" want spark
  want="$(cat "$source" "$services_dir/auto_cdc/.complete" | cksum)"
  [ "$(cat "$into/.complete" 2>/dev/null)" != "$want" ] || return 0
  spark="$("$services_dir/auto_cdc/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')"
  rm -rf "$into"; mkdir -p "$into"
  javac -nowarn -d "$into" -cp "$spark/jars/*" "$source"
  echo "$want" > "$into/.complete"
}

mkdir -p "$services_dir"
exec 9>"$services_dir/.lock"; flock 9   # two installations at once would write over each other
[ $# -gt 0 ] || set -- core
for group in "$@"; do
  declare -F "install_$group" >/dev/null || fail "no group $group; there are: core client spark airflow delta_rs pyspark auto_cdc duckdb_newest interop"
  begin="$(clock)"
  "install_$group"
  printf 'installed %-8s %6s s\n' "$group" "$(since "$begin")"
done
