"""Spark with Delta writes its tables below FOLDER, which is a schema of a lake: `spark_writer.py FOLDER`."""

import pathlib
import sys

from session import session

spark = session()
folder = sys.argv[1]
FEED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"


def sql(text):
    return spark.sql(text)


def create(name, columns, properties=(), layout=""):
    table = f"delta.`{folder}/{name}`"
    listed = f" tblproperties ({', '.join(properties)})" if properties else ""
    sql(f"create table {table} ({columns}) using delta {layout}{listed}")
    return table


def numbered(table, columns, first, last):
    sql(f"insert into {table} select {columns} from (select explode(sequence({first}, {last})) as n)")


def change(table, generation):
    """Rows are deleted, updated and merged in."""
    sql(f"delete from {table} where id % 17 = {generation}")
    sql(f"update {table} set name = concat(name, '+') where id % 13 = {generation}")
    source = f"(select explode(sequence({150 + generation * 30}, {230 + generation * 30})) as id)"
    sql(
        f"merge into {table} t using {source} s on t.id = s.id when matched and s.id % 5 = 0 then delete"
        f" when matched then update set name = 'merged' when not matched then insert (id, name) values (s.id, 'new')"
    )


ROW = "n as id, concat('n', n) as name"
for name, properties in {"vectors": [FEED, VECTORS], "copied": [FEED, "'delta.enableDeletionVectors' = 'false'"]}.items():
    table = create(name, "id bigint, name string", properties)
    numbered(table, ROW, 1, 200)
    for generation in range(2):
        change(table, generation)

table = create("clustered", "id bigint, name string, day date", [FEED, VECTORS], "cluster by (day, id)")
numbered(table, f"{ROW}, date_add(date'2026-01-01', cast(n % 40 as int)) as day", 1, 200)
sql(f"delete from {table} where id < 20")
sql(f"optimize {table}")

table = create(
    "generated", "id bigint not null, at timestamp, day date generated always as (cast(at as date)), state string default 'new'", [FEED, "'delta.feature.allowColumnDefaults' = 'supported'"]
)
sql(f"insert into {table} (id, at) select n, timestamp_micros(1700000000000000 + n * 40000000000) from (select explode(sequence(1, 50)) as n)")

table = create("constrained", "id bigint not null, amount decimal(12,2) not null", [FEED])
sql(f"alter table {table} add constraint amount_is_positive check (amount > 0)")
numbered(table, "n as id, cast(n / 4 as decimal(12,2)) as amount", 1, 60)

table = create("partitioned", "id bigint, site string, day date, at timestamp", [FEED, VECTORS], "partitioned by (site, day, at)")
sites = ["a/b", "50%", "é", "日本", "a b", "a=b", "x:y", "..", "#1"]
rows = [f"({at}, '{site}', date'2026-01-0{at + 1}', timestamp'2026-01-01 00:00:00.12345{at}')" for at, site in enumerate(sites)]
sql(f"insert into {table} values {', '.join(rows)}, (20, null, null, null)")
sql(f"delete from {table} where id = 3")

table = create("tracked", "id bigint, name string", ["'delta.enableRowTracking' = 'true'", VECTORS])
numbered(table, ROW, 1, 100)
sql(f"update {table} set name = 'changed' where id > 90")

table = create("checkpointed", "id bigint, name string", [FEED, VECTORS, "'delta.checkpointPolicy' = 'v2'", "'delta.checkpointInterval' = '2'"])
for commit in range(3):
    numbered(table, ROW, commit * 20, commit * 20 + 30)
    sql(f"delete from {table} where id = {commit * 20 + 1}")

table = create("timed", "id bigint, name string", [FEED, VECTORS, "'delta.enableInCommitTimestamps' = 'true'"])
numbered(table, ROW, 1, 50)
change(table, 1)

table = create(
    "types",
    "id int, boo boolean, byt tinyint, sho smallint, lon bigint, flo float, dou double, dec decimal(38,18), str string, bin binary, day date,"
    " at timestamp, clock timestamp_ntz, arr array<string>, str2 struct<a:int,b:struct<c:double>>, map map<string,bigint>",
)
sql(
    f"insert into {table} values"
    " (1, true, -128Y, -32768S, -9223372036854775808L, float('nan'), double('-infinity'), 12345678901234567890.123456789012345678, 'é', X'00ff',"
    " date'0001-01-01', timestamp'0001-01-01 00:00:00', timestamp_ntz'9999-12-31 23:59:59.999999', array('a', null),"
    " named_struct('a', 1, 'b', named_struct('c', 1.5D)), map('x', 1L, 'y', null)),"
    " (2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),"
    " (3, false, 0Y, 0S, 0L, float('-0.0'), double('-0.0'), 0, '', X'', date'1582-10-15', timestamp'1900-01-01 00:00:00.000001',"
    " timestamp_ntz'1970-01-01 00:00:00', array(), named_struct('a', null, 'b', named_struct('c', null)), map())"
)

table = create("identity", "id bigint generated always as identity, name string", [FEED])
sql(f"insert into {table} (name) select concat('n', n) from (select explode(sequence(1, 30)) as n)")

table = create("mapped", "id bigint, name string", ["'delta.columnMapping.mode' = 'name'"])
numbered(table, ROW, 1, 10)
sql(f"alter table {table} rename column name to `new name`")

table = create("widened", "id int, name string", ["'delta.enableTypeWidening' = 'true'"])
numbered(table, "cast(n as int) as id, concat('n', n) as name", 1, 10)
sql(f"alter table {table} alter column id type bigint")

table = create("variant", "id bigint, v variant")
sql(f"insert into {table} select 1, parse_json('{{\"a\": 1}}')")

table = create("mapped_by_id", "id bigint, name string", ["'delta.columnMapping.mode' = 'id'"])
numbered(table, ROW, 1, 10)

table = create("legacy", "id bigint, name string", ["'delta.minReaderVersion' = '1'", "'delta.minWriterVersion' = '4'", FEED])
numbered(table, ROW, 1, 50)
sql(f"update {table} set name = 'changed' where id % 7 = 0")

table = create("overwritten", "id bigint, name string, site string", [FEED, VECTORS], "partitioned by (site)")
SITE = f"{ROW}, concat('s', n % 3) as site"
numbered(table, SITE, 1, 60)
sql(f"delete from {table} where id % 4 = 0")
sql(f"insert into {table} replace where site = 's1' select n as id, 'replaced' as name, 's1' as site from (select explode(sequence(61, 70)) as n)")
sql(f"delete from {table} where site = 's2'")
sql(f"insert overwrite {table} select {SITE} from (select explode(sequence(1, 20)) as n)")
sql(f"restore table {table} to version as of 2")
sql(f"update {table} set name = 'after' where id % 5 = 0")
sql(f"truncate table {table}")
numbered(table, SITE, 5, 15)

# files of another table, by absolute paths
clone = f"delta.`{folder}/cloned`"
sql(f"create table {clone} shallow clone delta.`{folder}/vectors`")
sql(f"delete from {clone} where id % 7 = 0")

table = create("grown", "id bigint, name string, at struct<x:bigint>", [FEED, VECTORS])
numbered(table, f"{ROW}, named_struct('x', n) as at", 1, 40)
sql(f"alter table {table} add columns (amount decimal(10,2) after id, at.y string)")
numbered(table, "n as id, cast(n / 2 as decimal(10,2)) as amount, 'grown' as name, named_struct('x', n, 'y', 'y') as at", 41, 60)
sql(f"alter table {table} alter column name first")
sql(f"update {table} set amount = 1 where id % 6 = 0")

spark.conf.set("spark.databricks.delta.checkpoint.partSize", "3")
table = create("parted", "id bigint, name string", [FEED, VECTORS, "'delta.checkpointPolicy' = 'classic'", "'delta.checkpointInterval' = '6'"])
for commit in range(6):
    numbered(table, ROW, commit * 20, commit * 20 + 30)
sql(f"delete from {table} where id = 7")
spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
log = pathlib.Path(folder) / "parted" / "_delta_log"
parts = sorted(log.glob("*.checkpoint.*.parquet"))
assert len(parts) > 1, [file.name for file in log.iterdir()]
for commit in log.glob("*.json"):
    if commit.name < parts[0].name[:20]:
        commit.unlink()

# what silver keeps, as somebody else made it
MERGED = "id bigint, name string, amount decimal(12,2), at timestamp, site string, tier string, __position string"
POSITION = "concat('000000/', lpad('0', 20, '0'), '/', lpad('1', 20, '0'))"
OFTEN = "'delta.checkpointInterval' = '2'"
merged = {
    "merged": (MERGED, [FEED, VECTORS], ""),
    "merged_copied": (MERGED, [FEED], "partitioned by (tier)"),
    "merged_rich": (MERGED, [FEED, VECTORS, OFTEN, "'delta.enableInCommitTimestamps' = 'true'"], "cluster by (id)"),
    "merged_v2": (MERGED, [FEED, VECTORS, OFTEN, "'delta.checkpointPolicy' = 'v2'"], ""),
    "merged_structs": (MERGED, [FEED, VECTORS, OFTEN, "'delta.checkpoint.writeStatsAsJson' = 'false'", "'delta.checkpoint.writeStatsAsStruct' = 'true'"], ""),
    "merged_generated": (f"{MERGED}, day date generated always as (cast(at as date)), state string default 'new'", [FEED, VECTORS, "'delta.feature.allowColumnDefaults' = 'supported'"], ""),
    "merged_grown": (MERGED, [FEED, VECTORS], ""),
    "merged_legacy": (MERGED, [FEED, "'delta.minReaderVersion' = '1'", "'delta.minWriterVersion' = '4'"], ""),
}
for name, (columns, properties, layout) in merged.items():
    table = create(name, columns, properties, layout)
    named = "id, name, amount, at, site, tier, __position"
    sql(
        f"insert into {table} ({named}) select n, concat('spark ', n), cast(n as decimal(12,2)), timestamp_seconds(n), 'there', 'none', {POSITION}"
        " from (select explode(sequence(100, 400)) as n)"
    )
    sql(f"delete from {table} where id % 10 = 0")
sql(f"alter table delta.`{folder}/merged_rich` add constraint amount_is_not_negative check (amount >= 0)")
sql(f"alter table delta.`{folder}/merged_grown` add columns (note string after id, more bigint)")
sql(f"update delta.`{folder}/merged_grown` set note = 'theirs', more = id where id % 3 = 0")
spark.stop()
