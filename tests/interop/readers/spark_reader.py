"""Spark with Delta."""

import reading
from session import session

spark = session()


def rows(entry):
    return spark.read.format("delta").option("versionAsOf", entry["version"]).load(entry["path"]).toArrow()


def changes(entry):
    feed = entry["feed"]
    changes = spark.read.format("delta").option("readChangeFeed", "true")
    return changes.option("startingVersion", feed["from"]).option("endingVersion", feed["to"]).load(entry["path"]).toArrow()


reading.run(rows, changes)
spark.stop()
