"""DuckDB with its Delta extension, loaded from the package that carries it. It reads the newest version, and no change feed."""

import pathlib

import duckdb
import duckdb_extension_delta

import reading

extension = next(pathlib.Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
connection = duckdb.connect()
connection.execute(f"load '{extension}'")
connection.execute("set timezone = 'UTC'")


def rows(entry):
    return connection.sql(f"select * from delta_scan('{entry['path']}')").to_arrow_table()


reading.run(rows)
