#!/usr/bin/env bash
# Apache Kafka, one KRaft node on loopback: a plain listener and one that asks for a password (SASL/PLAIN). Verbs: see lib.sh.
# KAFKA_JAVA_OPTIONS are added to the broker's, e.g. -XX:TieredStopAtLevel=4 -Xmx1g for a benchmark.
# Besides: `kafka.sh tool CLASS ARGS..` runs one of Kafka's own tools, e.g. `tool kafka.admin.ConfigCommand --help`.
source "$(dirname "$0")/lib.sh"

jars="$services_dir/jars/kafka"

start_kafka() {
  [ -f "$jars/.complete" ] || fail "Kafka is not installed: run tests/services/install.sh core"
  local dir="$run/kafka" plain sasl control
  plain="$(port kafka)"; sasl="$(port kafka-sasl)"; control="$(port kafka-controller)"
  mkdir -p "$dir"
  cat > "$dir/server.properties" <<C
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$control
controller.listener.names=CONTROLLER
listeners=PLAIN://127.0.0.1:$plain,PASSWORD://127.0.0.1:$sasl,CONTROLLER://127.0.0.1:$control
advertised.listeners=PLAIN://127.0.0.1:$plain,PASSWORD://127.0.0.1:$sasl
listener.security.protocol.map=PLAIN:PLAINTEXT,PASSWORD:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
sasl.enabled.mechanisms=PLAIN
listener.name.password.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_tributary="tributary";
log.dirs=$dir/data
num.partitions=1
auto.create.topics.enable=false
message.max.bytes=8388608
replica.fetch.max.bytes=8388608
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=5
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=16777216
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
C
  if [ ! -f "$dir/data/meta.properties" ]; then
    java $(java_options kafka 128m) -cp "$jars/*" kafka.tools.StorageTool format --standalone \
      -t AAAAAAAAQACAAAAAAAAAAQ -c "$dir/server.properties" >>"$dir/log" 2>&1 || { say_log kafka; fail "formatting the log folder failed"; }
  fi
  start kafka - java $(java_options kafka 512m) ${KAFKA_JAVA_OPTIONS:-} -cp "$jars/*" kafka.Kafka "$dir/server.properties"
  wait_tcp kafka "$plain" "$start_limit"
  write_env kafka <<C
KAFKA_BOOTSTRAP=127.0.0.1:$plain
KAFKA_SASL_BOOTSTRAP=127.0.0.1:$sasl
KAFKA_SASL_USERNAME=tributary
KAFKA_SASL_PASSWORD=tributary
C
}

if [ "${1:-}" = tool ]; then
  shift; exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.level=warn -cp "$jars/*" "$@"
fi
verbs kafka "$@"
