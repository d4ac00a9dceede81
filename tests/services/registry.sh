#!/usr/bin/env bash
# Apicurio Registry on loopback; REGISTRY_URL is its Confluent-compatible API. Schemas outlive a restart. Verbs: see lib.sh.
source "$(dirname "$0")/lib.sh"

runner="$services_dir/jars/registry/registry-1-runner.jar"

start_registry() {
  [ -f "$runner" ] || fail "the registry is not installed: run tests/services/install.sh core"
  local dir="$run/registry" port; port="$(port registry)"
  mkdir -p "$dir"
  start registry - java $(java_options registry 256m) ${REGISTRY_JAVA_OPTIONS:-} -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port="$port" \
    -Dquarkus.datasource.jdbc.url="jdbc:h2:$dir/schemas" -Dquarkus.datasource.jdbc.initial-size=1 -Dquarkus.datasource.jdbc.min-size=1 \
    -Dquarkus.datasource.jdbc.max-size=10 -jar "$runner"
  wait_http registry "http://127.0.0.1:$port/apis/ccompat/v7/subjects" "$start_limit"
  write_env registry <<C
REGISTRY_URL=http://127.0.0.1:$port/apis/ccompat/v7
REGISTRY_API_URL=http://127.0.0.1:$port/apis/registry/v2
C
}

verbs registry "$@"
