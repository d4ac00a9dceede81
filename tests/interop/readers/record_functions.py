"""Records what Spark answers: for each expression or query of crates/spark-sql/tests/expressions/*.txt its types and values, or the
class of its error, into crates/spark-sql/tests/values/*.jsonl. Spark is pyspark as tests/services/install.sh interop installs it, in
ANSI mode, in UTC.

    TZ=UTC python record_functions.py FOLDER [SUBJECT..]     FOLDER: crates/spark-sql/tests

A value is told so that two engines can be compared: numbers of two are JSON numbers, decimals texts, days and instants ISO texts,
bytes hexadecimal digits, structs and lists lists, maps lists of pairs ordered by key; doubles that are no numbers are texts.
"""

import datetime
import decimal
import json
import logging
import math
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql import types as T


def told(value, kind):
    if value is None:
        return None
    if isinstance(kind, (T.DoubleType, T.FloatType)):
        if math.isnan(value) or math.isinf(value):
            return str(float(value))
        return value
    if isinstance(kind, T.DecimalType):
        return format(value, "f")
    if isinstance(kind, T.DateType):
        return value.isoformat()
    if isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        assert isinstance(value, datetime.datetime)
        return value.strftime("%Y").zfill(4) + value.strftime("-%m-%dT%H:%M:%S.%f")
    if isinstance(kind, T.BinaryType):
        return bytes(value).hex()
    if isinstance(kind, T.ArrayType):
        return [told(item, kind.elementType) for item in value]
    if isinstance(kind, T.StructType):
        return [told(item, field.dataType) for item, field in zip(value, kind.fields)]
    if isinstance(kind, T.MapType):
        pairs = [[told(k, kind.keyType), told(v, kind.valueType)] for k, v in value.items()]
        return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
    if isinstance(value, decimal.Decimal):
        raise TypeError(f"a decimal of {kind}")
    if isinstance(kind, (T.DayTimeIntervalType, T.YearMonthIntervalType)):
        return str(value)
    return value


def recorded(spark, text):
    query = text if text.lower().startswith(("select", "values", "with")) else f"select {text} as x"
    try:
        frame = spark.sql(query)
        rows = frame.collect()
        columns = [[field.name, field.dataType.simpleString()] for field in frame.schema.fields]
        values = [[told(value, field.dataType) for value, field in zip(row, frame.schema.fields)] for row in rows]
        return {"text": text, "columns": columns, "rows": values}
    except (OverflowError, ValueError) as error:
        # a day or an instant that Python has not
        return {"text": text, "beyond": type(error).__name__}
    except Exception as error:  # noqa: BLE001: every refusal of Spark is recorded
        condition = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        return {"text": text, "error": condition}


def main():
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    folder = pathlib.Path(sys.argv[1])
    subjects = sys.argv[2:] or sorted(path.stem for path in (folder / "expressions").glob("*.txt"))
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -Duser.timezone=UTC -Duser.language=en -Duser.country=US")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    (folder / "values").mkdir(exist_ok=True)
    for subject in subjects:
        texts = (folder / "expressions" / f"{subject}.txt").read_text().splitlines()
        with ThreadPoolExecutor(2) as pool:
            records = list(pool.map(lambda text: recorded(spark, text), texts))
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        (folder / "values" / f"{subject}.jsonl").write_text("\n".join(lines) + "\n")
        print(subject, len(records), sum("error" in record for record in records), "errors", flush=True)
    print("spark", spark.version)


main()
