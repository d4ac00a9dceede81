"""Prints a connector's configuration: connector_config.py NAME FILE [KEY=VALUE..].

$WORDS in the file are filled from KEY=VALUE, then the environment, then the defaults below. A KEY with a dot is a setting of the
connector itself: it replaces the file's, and an empty value removes it.
"""
import json
import os
import string
import sys

name, path, *pairs = sys.argv[1:]
given = dict(pair.split("=", 1) for pair in pairs)
words = {"TOPIC_PREFIX": name, "SLOT": name, "SERVER_ID": "5401", "PARTITIONS": "1", "SCHEMAS": "true"} | dict(os.environ) | given
with open(path) as file:
    config = json.load(file)
config = {key: string.Template(value).substitute(words) for key, value in config.items()}
config |= {key: value for key, value in given.items() if "." in key}
print(json.dumps({key: value for key, value in config.items() if value != ""}))
