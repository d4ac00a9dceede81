#!/usr/bin/env bash
# Runs the DAG of dags/ in a real Airflow, on the retail pipeline of the recorded files: once green, once with bronze killed by
# SIGKILL at its first attempt (retried, then green), once with nothing new (every task skipped), once with a backfill of offsets that no
# feed reads (refused at once), once from an old version of the source for a table that has a position (nothing moves). Ends with one
# line of counts.
#   dag.sh [FOLDER OF THE BINARIES], by default $CARGO_TARGET_DIR/debug
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
binaries="$(cd "${1:-${CARGO_TARGET_DIR:-$HOME/.cache/tributary-target}/debug}" && pwd)"
airflow="${SERVICES_DIR:-$HOME/.cache/tributary-services}/airflow/bin"
"$root/tests/services/install.sh" airflow >&2
for program in bronze silver gold; do [ -x "$binaries/tributary-$program" ] || { echo "no $binaries/tributary-$program: build it first" >&2; exit 2; }; done

work="$(mktemp -d)"; trap '[ -n "${KEEP:-}" ] || rm -rf "$work"' EXIT
export AIRFLOW_HOME="$work/airflow" AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__CORE__DAGS_FOLDER="$root/dags" PATH="$airflow:$PATH"
export PYTHONDONTWRITEBYTECODE=1
airflow db migrate > "$work/migrate.log" 2>&1 || { tail -20 "$work/migrate.log"; exit 1; }

# The recorded events in two parts, the second dropped before the second run.
fixtures="$root/tests/fixtures/debezium"
export TRIBUTARY_PIPELINE="$root/dlt_pipelines/retail" TRIBUTARY_BASE_DATA_PATH="$work/raw" TRIBUTARY_WAREHOUSE="$work/lake"
mkdir -p "$work/raw/shop" "$work/raw/depot"
cp "$fixtures"/mysql-json-schema.jsonl* "$work/raw/depot/"
gunzip -c "$fixtures/postgres-big-workload.jsonl.gz" > "$work/all.jsonl"
head -n 12000 "$work/all.jsonl" > "$work/raw/shop/part-1.jsonl"

# turn NAME BINARIES: one run of the DAG; prints the states of its tasks, "bronze=success gold=success silver=success"
turn() {
  LAYER_PROGRAMS="$2" airflow dags test tributary_retail "2026-01-0$turns" --conf "${CONF:-{\}}" > "$work/$1.log" 2>&1 || true
  python3 - "$AIRFLOW_HOME/airflow.db" <<'PY'
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "select task_id, state from task_instance where run_id = (select run_id from dag_run order by id desc limit 1) order by task_id")
print(" ".join(f"{task}={state}" for task, state in rows))
PY
}
expect() {
  if [ "$2" = "$3" ]; then printf '%-12s %s\n' "$1" "$2"; else printf '%s: %s, but should be %s\n' "$1" "$2" "$3"; tail -40 "$work/$1.log"; exit 1; fi
}

turns=1
expect green "$(turn green "$binaries")" "bronze=success gold=success silver=success"

turns=2
tail -n +12001 "$work/all.jsonl" > "$work/raw/shop/part-2.jsonl"
mkdir "$work/killed"
ln -s "$binaries/tributary-silver" "$binaries/tributary-gold" "$work/killed/"
cat > "$work/killed/tributary-bronze" <<SH
#!/usr/bin/env bash
# the first attempt is killed in the middle of its work
if [ -e "$work/attempted" ]; then exec "$binaries/tributary-bronze" "\$@"; fi
touch "$work/attempted"
"$binaries/tributary-bronze" "\$@" & pid=\$!
sleep 0.1; kill -KILL \$pid; wait \$pid
SH
chmod +x "$work/killed/tributary-bronze"
expect killed "$(turn killed "$work/killed")" "bronze=success gold=success silver=success"
grep -q "exit code 137" "$work/killed.log" || { echo "killed: bronze was not killed"; exit 1; }

turns=3
expect nothing-new "$(turn nothing-new "$binaries")" "bronze=skipped gold=skipped silver=skipped"

turns=4
export CONF='{"starting_offsets": "elsewhere:0=5", "ending_offsets": "elsewhere:0=9"}'
expect backfill "$(turn backfill "$binaries")" "bronze=failed gold=upstream_failed silver=upstream_failed"
grep -q "topic \`elsewhere\`" "$work/backfill.log" || { echo "backfill: the offsets did not reach bronze"; exit 1; }

turns=5
export CONF='{"starting_version": 0, "only": "silver.orders"}'
logs() { find "$work/lake/main" -path '*_delta_log*' -type f | sort | xargs cksum; }
before="$(logs)"
expect old-version "$(turn old-version "$binaries")" "bronze=skipped gold=skipped silver=skipped"
[ "$(logs)" = "$before" ] || { echo "old-version: a table that has a position was written"; exit 1; }
echo "airflow: 5 runs of the DAG, 15 tasks: green, killed and retried, skipped, a backfill refused, a backfill that moves nothing"
