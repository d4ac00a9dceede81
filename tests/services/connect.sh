#!/usr/bin/env bash
# Kafka Connect, one distributed worker on loopback, with Debezium's connectors and Apicurio's Avro converter. Verbs: see lib.sh.
# Besides: `connect.sh register NAME FILE.. [KEY=VALUE..]` creates or changes a connector and waits until its task runs; for FILE.. and
# KEY see connector_config.py. `connect.sh unregister NAME` removes it.
source "$(dirname "$0")/lib.sh"

jars="$services_dir/jars"

start_connect() {
  [ -f "$jars/kafka/.complete" ] || fail "Kafka Connect is not installed: run tests/services/install.sh core"
  local dir="$run/connect" port; port="$(port connect)"
  tcp_open "$(port kafka)" || fail "the broker does not answer: start it first"
  mkdir -p "$dir/plugins"
  local plugin
  for plugin in debezium-postgres debezium-mariadb avro-converter; do ln -sfn "$jars/$plugin" "$dir/plugins/$plugin"; done
  # Without the recovery strategy `none` an admin client that finds no broker retries without a pause and floods log and processor.
  cat > "$dir/worker.properties" <<C
bootstrap.servers=127.0.0.1:$(port kafka)
group.id=tributary-connect
listeners=http://127.0.0.1:$port
rest.advertised.host.name=127.0.0.1
plugin.path=$dir/plugins
plugin.discovery=service_load
config.storage.topic=_connect.configs
config.storage.replication.factor=1
offset.storage.topic=_connect.offsets
offset.storage.replication.factor=1
offset.storage.partitions=5
status.storage.topic=_connect.status
status.storage.replication.factor=1
status.storage.partitions=1
topic.creation.enable=true
offset.flush.interval.ms=1000
scheduled.rebalance.max.delay.ms=0
connector.client.config.override.policy=All
task.shutdown.graceful.timeout.ms=10000
producer.max.request.size=8388608
default.api.timeout.ms=${start_limit}000
$(printf '%smetadata.recovery.strategy=none\n' '' admin. producer. consumer.)
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
C
  start connect - java $(java_options connect 512m) ${CONNECT_JAVA_OPTIONS:-} -cp "$jars/kafka/*" \
    org.apache.kafka.connect.cli.ConnectDistributed "$dir/worker.properties"
  wait_http connect "http://127.0.0.1:$port/health" "$start_limit"   # 200 once the worker has joined its group
  write_env connect <<C
CONNECT_URL=http://127.0.0.1:$port
C
}

running() {
  curl -fsS -m 5 "$CONNECT_URL/connectors/$1/status" |
    jq -e '.connector.state == "RUNNING" and (.tasks | length > 0) and all(.tasks[]; .state == "RUNNING")'
}

# Sends a configuration; 404 means that the worker is just starting, 409 that its group is not settled yet, anything else is an answer.
put_config() {
  status="$(curl -sS -m 90 -o "$run/connect/answer" -w '%{http_code}' -X PUT -H 'Content-Type: application/json' --data-binary "$2" \
    "$CONNECT_URL/connectors/$1/config")" && [[ $status != @(404|409) ]]
}

register() {
  local name="$1" body; shift
  body="$(python3 "$here/connector_config.py" "$name" "$@")"
  wait_until connect "$start_limit" put_config "$name" "$body"
  [ "$status" -lt 300 ] || fail "connector $name was refused ($status): $(cat "$run/connect/answer")"
  wait_until connect "$start_limit" running "$name"
}

case "${1:-}" in
  register|unregister)
    need_run_dir; set -a; for file in "$run"/*/env; do source "$file"; done; set +a
    if [ "$1" = register ]; then shift; register "$@"; else curl -fsS -X DELETE "$CONNECT_URL/connectors/$2"; fi ;;
  *) verbs connect "$@" ;;
esac
