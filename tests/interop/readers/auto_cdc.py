"""Spark's own AUTO CDC, without Delta: `auto_cdc.py PLAN FOLDER`.

plan: {"histories": [{"name", "columns", "batches": [[file, ..], ..]}], "flows": [{"name", "sql", "columns"}], "unknown": {clause: sql}}
A run of one pipeline with all flows after each batch; then the rows of every flow's target, as reading.py writes them. A statement of
`unknown` is registered alone, and what Spark says of it is written down. ROW_TABLES is the folder of RowTables' classes.
"""

import json
import os
import pathlib
import shutil
import sys

import canonical
import reading

os.environ["PYSPARK_SUBMIT_ARGS"] = (
    f"--driver-class-path {os.environ['ROW_TABLES']} --driver-memory 2g"
    " --driver-java-options '-XX:+UseSerialGC -XX:TieredStopAtLevel=1' pyspark-shell"
)

import pyspark.pipelines as pipelines
from pyspark.pipelines.add_pipeline_analysis_context import add_pipeline_analysis_context
from pyspark.pipelines.graph_element_registry import graph_element_registration_context
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.catalog.rows": "RowTables",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    # small data: no code is worth compiling, no shuffle worth splitting
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.pipelines.execution.streamstate.pollingInterval": "1",
}

plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
folder = pathlib.Path(sys.argv[2])
builder = SparkSession.builder.remote("local[2]")
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()


def arrived(history):
    return folder / "arrived" / history["name"]


def graph(sql):
    """A pipeline of these statements, with a stream for each history."""
    identity = create_dataflow_graph(spark, default_catalog="rows", default_database="default", sql_conf={})
    registry = SparkConnectGraphElementRegistry(spark, identity)
    with graph_element_registration_context(registry):
        with add_pipeline_analysis_context(spark=spark, dataflow_graph_id=identity, flow_name=None):
            for history in plan["histories"]:
                stream(history)
        registry.register_sql(sql, pathlib.Path("flows.sql"))
    return identity


def stream(history):
    @pipelines.temporary_view(name=history["name"])
    def events():
        return spark.readStream.schema(history["columns"]).parquet(str(arrived(history)))


def run():
    identity = graph("".join(flow["sql"] for flow in plan["flows"]))
    storage = (folder / "storage").as_uri()
    events = start_run(spark, identity, full_refresh=[], full_refresh_all=False, refresh=[], dry=False, storage=storage)
    said = [result["pipeline_event_result"].event.message for result in events if "pipeline_event_result" in result]
    if not any("Run is COMPLETED" in message for message in said):
        raise RuntimeError("the run is not complete:\n" + "\n".join(said))


for history in plan["histories"]:
    arrived(history).mkdir(parents=True)
for batch in range(max(len(history["batches"]) for history in plan["histories"])):
    for history in plan["histories"]:
        for file in history["batches"][batch : batch + 1]:
            for at, path in enumerate(file):
                shutil.copy(path, arrived(history) / f"{batch}-{at}.parquet")
    run()
for flow in plan["flows"]:
    table = spark.table(f"rows.default.{flow['name']}").toArrow()
    reading.write(folder / flow["name"], "rows", lambda: canonical.lines(table, flow["columns"]))
for clause, sql in plan["unknown"].items():
    reading.write(folder / clause, "rows", lambda: [graph(sql)])
spark.stop()
