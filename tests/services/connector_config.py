"""Prints a connector's configuration: connector_config.py NAME FILE.json.. [KEY=VALUE..].

Settings of a later file replace those of an earlier one. $WORDS in the files are filled from KEY=VALUE, then the environment, then the
defaults below. A KEY with a dot is a setting of the connector itself. An empty setting is left out.
"""
import json
import os
import string
import sys

name, *rest = sys.argv[1:]
given = dict(pair.split("=", 1) for pair in rest if "=" in pair)
words = {"TOPIC_PREFIX": name, "SLOT": name, "SERVER_ID": "5401", "PARTITIONS": "1", "SCHEMAS": "true"} | dict(os.environ) | given
config = {}
for path in (item for item in rest if "=" not in item):
    with open(path) as file:
        config |= {key: string.Template(value).substitute(words) for key, value in json.load(file).items()}
config |= {key: value for key, value in given.items() if "." in key}
print(json.dumps({key: value for key, value in config.items() if value != ""}))
