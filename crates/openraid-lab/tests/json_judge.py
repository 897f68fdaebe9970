"""Judges documents of --json, one on each line of the standard input, by the schema files of a folder.

Prints a line for each fault. A key that the schema does not name is a fault here, though readers must accept new keys.
"""

import json
import pathlib
import sys

from jsonschema import Draft202012Validator

SAME_VALUE = ("allOf", "anyOf", "oneOf")


def close(schema):
    """Refuse keys that the schema of a value does not name."""
    if any(key in schema for key in ("$ref", "properties", *SAME_VALUE)):
        schema["unevaluatedProperties"] = False
    close_inside(schema)


def close_inside(schema):
    for value in schema.get("properties", {}).values():
        close(value)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            close(schema[key])
    for value in schema.get("prefixItems", []):
        close(value)
    for part in (part for key in SAME_VALUE for part in schema.get(key, [])):
        close_inside(part)
    if "then" in schema:
        close_inside(schema["then"])


def validators(folder):
    """The validator of each form."""
    forms = {}
    for path in sorted(pathlib.Path(folder).glob("*.schema.json")):
        schema = json.loads(path.read_text())
        Draft202012Validator.check_schema(schema)
        close(schema)
        for part in schema["$defs"].values():
            close_inside(part)
        validator = Draft202012Validator(schema)
        forms.update({name: validator for name in schema["properties"]["schema"]["enum"]})
    return forms


def main():
    forms = validators(sys.argv[1])
    for line in sys.stdin:
        document = json.loads(line)
        form = document.get("schema")
        if form not in forms:
            print(f"no schema has the form {form}")
            continue
        for fault in forms[form].iter_errors(document):
            place = "/".join(map(str, fault.absolute_path))
            print(f"{form}: {place}: {fault.message[:300]}")


main()
