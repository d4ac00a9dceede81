"""MERGE by delta-rs: `delta_rs.py TABLE CHANGES.parquet`; prints what it did."""

import json
import sys

import pyarrow.parquet
from deltalake import DeltaTable, WriterProperties

table, source = sys.argv[1:]
changes = pyarrow.parquet.read_table(source)
values = {name: f"s.{name}" for name in changes.schema.names if name != "_op"}
merge = DeltaTable(table).merge(
    changes,
    predicate="t.order_id = s.order_id",
    source_alias="s",
    target_alias="t",
    writer_properties=WriterProperties(compression="ZSTD"),
)
merge = merge.when_matched_delete(predicate="s._op = 'delete'").when_matched_update(updates=values)
metrics = merge.when_not_matched_insert(updates=values, predicate="s._op <> 'delete'").execute()
kinds = {kind: metrics[f"num_target_rows_{kind}"] for kind in ["inserted", "updated", "deleted"]}
print(json.dumps(kinds))
