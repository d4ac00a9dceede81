"""Prints a connector's configuration: connector_config.py NAME FILE.json.. [KEY=VALUE..].

Settings of a later file replace those of an earlier one; first comes docker/debezium/*.json, what connectors/*.json say is what differs
here. $WORDS in the files are filled from KEY=VALUE, then the environment; $NAME is the connector's. A KEY with a dot is a setting of the
connector itself. An empty setting is left out.
"""
import json
import os
import string
import sys

name, *rest = sys.argv[1:]
given = dict(pair.split("=", 1) for pair in rest if "=" in pair)
words = {"SERVER_ID": "5401"} | dict(os.environ) | given | {"NAME": name}
config = {}
for path in (item for item in rest if "=" not in item):
    with open(path) as file:
        config |= {key: string.Template(value).substitute(words) for key, value in json.load(file).items()}
config |= {key: value for key, value in given.items() if "." in key}
print(json.dumps({key: value for key, value in config.items() if value != ""}))
