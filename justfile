# Recipes. `./dev RECIPE` runs them on a fresh machine; CI runs these and nothing else.

export CARGO_TARGET_DIR := env("CARGO_TARGET_DIR", env("HOME") / ".cache/tributary-target")
export RUST_BACKTRACE := "1"

# List the recipes.
default:
    @just --list

# Install what the recipes need beyond the Rust toolchain (done by `./dev` on the way).
install:
    @./dev --version >/dev/null && echo "all there"

# Format and lint check; the lints run in the compile that the tests use.
lint:
    cargo fmt --all --check
    scripts/clippy-build test --workspace --all-targets --no-run

# Check the repository's bundle: every file, reference, job and pipeline, offline.
bundle-validate *ARGS:
    cargo run --quiet -p tributary-cli --bin tributary -- validate {{ARGS}}

# Everything CI checks.
test:
    scripts/test

# Light crates and the unit tests of the others; no crash points, no demo. Under three minutes once built.
test-fast:
    scripts/test fast

# What takes long or heavy servers: the services themselves, the chain in a longer fire, the DAG in a real Airflow.
test-slow: _e2e-built
    tests/services/selftest.sh
    just e2e 120 2
    just fire 10
    just soak 20
    just interop
    just interop-control
    just interop-control auto_cdc
    tests/services/dag.sh

# Recorded changes of a real Postgres and a real MariaDB become bronze, silver and gold; silver is compared with the databases.
demo *ARGS:
    cargo run --quiet -p tributary-cli --bin tributary -- demo {{ARGS}}

# Kill the retail pipeline at every store operation, restart, compare; then prove that each broken rule is noticed.
crash:
    @scripts/crash

# Real databases, Debezium, broker and registry: fidelity, hostile, avro and transactions, or the parts named; all compared.
e2e SECONDS="45" SEED="1" *PARTS: _e2e-built
    "$CARGO_TARGET_DIR/debug/e2e" {{SECONDS}} {{SEED}} {{PARTS}}

# Continuous processes killed, paused and restarted at random while the workload runs and the broker is bounced; then the comparison.
fire MINUTES="3" SEED="1": _e2e-built
    "$CARGO_TARGET_DIR/debug/fire" {{MINUTES}} {{SEED}}

# The same with fencing switched off in bronze must find doubled records.
fire-control MINUTES="0.7" SEED="1": _e2e-built
    scripts/fire-control {{MINUTES}} {{SEED}}

# Runs of silver, appenders and an optimizer on the same tables, killed and stopped at random while changes come; then the comparison.
soak MINUTES="3" SEED="1": _binaries-built
    "$CARGO_TARGET_DIR/debug/soak" {{MINUTES}} {{SEED}}

# The same with a silver that does not plan lost races again, and with one that is not fenced, must find lost or doubled rows.
soak-control MINUTES="0.3" SEED="1": _binaries-built
    scripts/soak-control {{MINUTES}} {{SEED}}

_e2e-built: && _binaries-built
    tests/services/install.sh core

_binaries-built:
    scripts/clippy-build build --quiet -p tributary-bronze-bin -p tributary-silver-bin -p tributary-gold-bin -p tributary-cli -p tributary-e2e --bins

# Tables of every kind that we write, read by delta-rs, DuckDB and Spark, Spark's by us, and auto_cdc; or the engines named.
interop *ENGINES:
    tests/services/install.sh interop
    scripts/clippy-build build --quiet -p tributary-interop
    "$CARGO_TARGET_DIR/debug/interop" {{ENGINES}}

# The same with one row altered must find it.
interop-control ENGINE="duckdb":
    tests/services/install.sh interop
    scripts/clippy-build build --quiet -p tributary-interop
    "$CARGO_TARGET_DIR/debug/interop" {{ENGINE}} --histories 1 --control | grep ': {{ENGINE}} differs'

# Run one benchmark (release build): decode, bronze, silver, gold, sql.
bench NAME *ARGS:
    scripts/bench {{NAME}} {{ARGS}}

# Run the laws (properties and model tests) for a time each.
laws SECONDS="30":
    TRIBUTARY_LAW_SECONDS={{SECONDS}} cargo test --quiet --workspace law -- --nocapture

# Write generated files anew: settings page, example settings, pipeline schema, public API lists.
generate:
    TRIBUTARY_BLESS=1 cargo test --quiet --workspace generated

# Accept changed golden files after reading the difference.
bless:
    TRIBUTARY_BLESS=1 cargo test --quiet --workspace golden

# Start Redpanda, Debezium Connect, Postgres and MySQL in containers, make the topics, register the connectors.
compose-up:
    docker compose --project-name tributary --file docker/compose.yml up --detach --wait
    scripts/connectors

# Stop them; `--volumes` also forgets their data.
compose-down *ARGS:
    docker compose --project-name tributary --file docker/compose.yml down {{ARGS}}

# Rows and changes in the databases of the containers, once or so many times.
seed TIMES="1":
    scripts/seed {{TIMES}}

# Bronze, silver and gold of the retail pipeline from the containers' broker, continuously, until interrupted.
run-streaming *ARGS:
    cargo run --quiet -p tributary-cli --bin tributary -- run --pipeline retail_kafka --kafka-bootstrap localhost:19092 --stream --processing-time 5 {{ARGS}}
