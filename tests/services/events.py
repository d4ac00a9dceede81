"""Looks into topics for selftest.sh: events.py count TOPIC | has TOPIC TEXT | schema_id TOPIC | aborted TOPIC | login PASSWORD.

Reads committed records only. count prints the number of records, has succeeds when one's value or key holds TEXT, schema_id prints the
id that the first record's value carries in front, aborted writes one committed and one aborted transaction and prints how many records
each isolation level sees, login succeeds when the listener that asks for a password takes this one.
"""
import logging
import os
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP = os.environ["KAFKA_BOOTSTRAP"]


def records(topic, isolation="read_committed"):
    """All records of a topic up to the ends seen at the start."""
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "selftest", "isolation.level": isolation,
                         "enable.auto.commit": False, "enable.partition.eof": True})
    found = consumer.list_topics(topic, timeout=10).topics[topic]
    if found.error:
        return []
    waiting = set(found.partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in waiting])
    seen = []
    while waiting:
        message = consumer.poll(10)
        if message is None:
            sys.exit(f"no answer from {topic}")
        if message.error():
            waiting.discard(message.partition())
        else:
            seen.append(message)
    consumer.close()
    return seen


def write(topic, transaction, values, commit):
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": transaction})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.flush(20)
    producer.commit_transaction(20) if commit else producer.abort_transaction(20)


verb, topic = sys.argv[1:3]
if verb == "count":
    print(len(records(topic)))
elif verb == "has":
    text = sys.argv[3].encode()
    sys.exit(not any(text in (message.value() or b"") or text in (message.key() or b"") for message in records(topic)))
elif verb == "schema_id":
    first = next((message.value() for message in records(topic)), b"")
    if len(first) < 6 or first[0] != 0:
        sys.exit(f"{topic} has no record with a schema id")
    print(int.from_bytes(first[1:5], "big"))
elif verb == "login":
    refused = []
    admin = AdminClient({"bootstrap.servers": os.environ["KAFKA_SASL_BOOTSTRAP"], "security.protocol": "SASL_PLAINTEXT",
                         "sasl.mechanism": "PLAIN", "sasl.username": os.environ["KAFKA_SASL_USERNAME"], "sasl.password": topic,
                         "error_cb": lambda error: refused.append(error.code()), "logger": logging.getLogger("quiet")})
    try:
        admin.list_topics(timeout=10)
    except KafkaException:
        admin.poll(0)
        sys.exit(3 if KafkaError._AUTHENTICATION in refused else "no answer")
elif verb == "aborted":
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    write(topic, "kept", [b"a", b"b", b"c"], commit=True)
    write(topic, "dropped", [b"d", b"e"], commit=False)
    print(len(records(topic)), len(records(topic, "read_uncommitted")))
