"""A query by DuckDB over Parquet files, into a Parquet file: `duckdb.py OUT SETUP QUERY`; prints how much it read."""

import json
import sys

import duckdb

out, setup, query = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute(setup)
rows = connection.execute(f"COPY ({query}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)").fetchall()[0][0]
with open("/proc/self/io", encoding="ascii") as io:
    counters = dict(line.split(": ") for line in io.read().splitlines())
print(json.dumps({"rows": rows, "bytes_read": int(counters["rchar"]), "mode": "full"}))
