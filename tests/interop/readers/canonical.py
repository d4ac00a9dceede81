"""Rows as text, one line a row, in the words that src/canonical.rs uses; see there."""

import json
import math
import struct

import pyarrow as pa
import pyarrow.types as types


def lines(table, columns):
    """The rows of an Arrow table, these columns of it."""
    table = table.select(columns)
    arrays = [column.combine_chunks() if column.num_chunks != 1 else column.chunk(0) for column in table.columns]
    for row in range(table.num_rows):
        yield "\t".join(text(array[row]) for array in arrays)


def text(scalar):
    """A value."""
    kind = scalar.type
    if not scalar.is_valid:
        return "null"
    if types.is_dictionary(kind):
        return text(pa.scalar(scalar.as_py(), type=kind.value_type))
    if types.is_boolean(kind):
        return "true" if scalar.as_py() else "false"
    if types.is_integer(kind):
        return str(scalar.as_py())
    if types.is_float32(kind) or types.is_float64(kind):
        value = scalar.as_py()
        letter = "f" if types.is_float32(kind) else "d"
        return letter + ("nan" if math.isnan(value) else struct.pack(">" + letter, value).hex())
    if types.is_decimal(kind):
        return format(scalar.as_py(), "f")
    if types.is_date32(kind):
        return f"day {scalar.value}"
    if types.is_timestamp(kind):
        return f"{'at' if kind.tz else 'clock'} {micros(scalar)}"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return json.dumps(scalar.as_py(), ensure_ascii=False)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return "x" + scalar.as_py().hex()
    if types.is_map(kind):
        entries = [(text(entry["key"]), text(entry["value"])) for entry in scalar.values]
        return "{" + ",".join(f"{key}=>{value}" for key, value in sorted(entries)) + "}"
    if types.is_struct(kind):
        return "(" + ",".join(f"{kind.field(at).name}={text(scalar[at])}" for at in range(kind.num_fields)) + ")"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind):
        return "[" + ",".join(text(value) for value in scalar.values) + "]"
    raise TypeError(f"no words for {kind}")


def micros(scalar):
    """Microseconds since the epoch."""
    unit = scalar.type.unit
    if unit == "us":
        return scalar.value
    if unit == "ns" and scalar.value % 1000 == 0:
        return scalar.value // 1000
    return {"s": 1_000_000, "ms": 1_000}[unit] * scalar.value
