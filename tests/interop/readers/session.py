"""A Spark session with Delta. SPARK_JARS names the folder that tests/services/install.sh fills."""

import os
import pathlib
import tempfile

import pyspark
from pyspark.sql import SparkSession


def session():
    own = {jar.name.rsplit("-", 1)[0] for jar in pathlib.Path(pyspark.__file__).parent.joinpath("jars").glob("*.jar")}
    jars = [jar for jar in pathlib.Path(os.environ["SPARK_JARS"]).glob("*.jar") if jar.name.rsplit("-", 1)[0] not in own]
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
