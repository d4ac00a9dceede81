"""The stream that the SQL of this folder reads, for Spark's own dry run."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession


@dp.table
def raw():
    rows = SparkSession.active().readStream.format("rate").load()
    return rows.selectExpr("value AS id", "value AS seq", "timestamp AS ts", "'D' AS op", "'{}' AS v")
