"""delta-rs's Python package."""

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

import reading


def rows(entry):
    table = DeltaTable(entry["path"], version=entry["version"])
    return pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())


def changes(entry):
    feed = entry["feed"]
    changes = pa.table(DeltaTable(entry["path"]).load_cdf(starting_version=feed["from"], ending_version=feed["to"]).read_all())
    # it gives the instants of commits as wall clocks in UTC
    at = changes.schema.get_field_index("_commit_timestamp")
    instants = changes.column(at).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
    return changes.set_column(at, "_commit_timestamp", instants)


reading.run(rows, changes)
