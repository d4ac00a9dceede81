"""What every reader does: the tables of a plan, each read at its version and its changes over a range, into text files.

plan: [{"name", "path", "version", "columns", "feed": null | {"from", "to", "columns"}}]
files: FOLDER/NAME.rows and FOLDER/NAME.feed, or with `-refused` behind and the reason in them
"""

import json
import pathlib
import sys

import canonical


def run(rows_of, changes_of=None):
    """`rows_of(entry)` and `changes_of(entry)` give Arrow tables; without the second the engine has no change feed."""
    plan, folder = sys.argv[1:3]
    for entry in json.loads(pathlib.Path(plan).read_text()):
        file = pathlib.Path(folder) / entry["name"]
        write(file, "rows", lambda: canonical.lines(rows_of(entry), entry["columns"]))
        if entry["feed"] and changes_of:
            write(file, "feed", lambda: canonical.lines(changes_of(entry), entry["feed"]["columns"]))


def write(file, what, lines_of):
    try:
        text = "".join(line + "\n" for line in lines_of())
    except Exception as error:  # one table that cannot be read is reported beside the others
        file.with_name(f"{file.name}.{what}-refused").write_text(f"{type(error).__name__}: {error}")
    else:
        file.with_name(f"{file.name}.{what}").write_text(text, encoding="utf-8")
