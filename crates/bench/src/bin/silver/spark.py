"""MERGE by Spark with Delta: `spark-submit spark.py TABLE CHANGES.parquet`; prints what it did."""

import json
import sys

from pyspark.sql import SparkSession

table, source = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.read.parquet(source).createOrReplaceTempView("changes")
columns = [name for name in spark.table("changes").columns if name != "_op"]
done = spark.sql(
    f"merge into delta.`{table}` t using changes s on t.order_id = s.order_id"
    f" when matched and s._op = 'delete' then delete"
    f" when matched then update set {', '.join(f't.{name} = s.{name}' for name in columns)}"
    f" when not matched and s._op <> 'delete'"
    f" then insert ({', '.join(columns)}) values ({', '.join(f's.{name}' for name in columns)})"
).collect()[0]
print(json.dumps({kind: done[f"num_{kind}_rows"] for kind in ["inserted", "updated", "deleted"]}))
