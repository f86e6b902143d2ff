#!/usr/bin/env python3
"""Makes docs/openapi.json (OpenAPI 3.1) from the tables of docs/api.md, so that both say the same.

Usage: api_schema.py [--fix]. As a check it also compares the routes with those of the server's table
and takes the error codes from the table of errors. Needs only Python 3."""

import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import documents  # noqa: E402

PAGE = "docs/api.md"
SCHEMA = "docs/openapi.json"
ROUTES = "src/api/routes.cpp"
ERRORS = "src/base/error_table.h"

PIECES = {"D": "drive", "G": "group", "V": "volume", "N": "name", "ID": "id"}
ROUTE = re.compile(r"(GET|POST|PATCH|DELETE) `/api/v1/([^`?]+)(?:\?([^`]*))?`$")
WORDS = re.compile(r"`[a-z0-9-]+`(?:, `[a-z0-9-]+`)+")


class Problem(Exception):
    pass


def tables(text):
    """{heading: rows of cells} of the tables under third-level headings, and of all else under ''."""
    found, heading = {}, ""
    for line in text.split("\n"):
        if line.startswith("#"):
            heading = line[4:] if line.startswith("### ") else ""
        elif line.startswith("| ") and not line.startswith(("| field |", "| route |")):
            found.setdefault(heading, []).append([cell.strip() for cell in line.split("|")[1:-1]])
    return found


def scalar(kind, meaning):
    if kind == "string":
        words = WORDS.search(meaning)
        return {"type": "string", "enum": words.group().replace("`", "").split(", ")} if words \
            else {"type": "string"}
    if kind == "integer":
        bounds = re.match(r"from (\d+) to (\d+)(?:\^(\d+) - 1)?$", meaning)
        if not bounds:
            return {"type": "integer", "minimum": 0}
        least, most, power = bounds.groups()
        return {"type": "integer", "minimum": int(least),
                "maximum": int(most) ** int(power) - 1 if power else int(most)}
    if kind == "boolean":
        return {"type": "boolean"}
    raise Problem(f"the type '{kind}' is unknown")


def reference(text, names):
    name = next((word for word in re.findall(r"[A-Z]\w+", text) if word in names), None)
    if name is None:
        raise Problem(f"'{text}' names no object of the page")
    return {"$ref": f"#/components/schemas/{name}"}


def field_schema(kind, meaning, names):
    kind, _, null = kind.partition(" or ")
    if kind == "object":
        schema = reference(meaning, names)
    elif kind == "list":
        of_strings = re.search(r"of strings?\b(?:, at most (\d+))?", meaning)
        schema = {"type": "array",
                  "items": {"type": "string"} if of_strings else reference(meaning, names)}
        if of_strings and of_strings.group(1):
            schema["maxItems"] = int(of_strings.group(1))
    else:
        schema = scalar(kind, meaning)
        rest = WORDS.sub("", meaning).replace("`", "").rstrip(": ")
        if rest and "maximum" not in schema:
            schema["description"] = rest
    return {"oneOf": [schema, {"type": "null"}]} if null else schema


def closed(properties, required):
    """An object with these fields and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def fields_of(rows, names):
    return {cells[0].strip("`"): field_schema(cells[1], cells[2], names) for cells in rows}


def answer_schema(text, names):
    """Of the right-hand cell of a route."""
    properties = {"schema_version": {"const": 1}}
    key = re.match(r"`(\w+)`", text)
    if key is None and not text.startswith("nothing"):
        return reference(text, names)
    if key:
        name = key.group(1)
        noun = name.rstrip("s").capitalize() if name != "health" else "Health"
        if "a string" in text:
            properties[name] = {"type": "string"}
        elif name.endswith("s") and name != "health":
            properties[name] = {"type": "array", "items": reference(noun, names)}
        else:
            properties[name] = reference(noun, names)
    return closed(properties, list(properties))


def content(schema):
    return {"application/json": {"schema": schema}}


def body_schema(text, requests):
    required = re.findall(r"(?<!\[)`(\w+)`(?!\])", text)
    optional = re.findall(r"\[`(\w+)`\]", text)
    return closed({name: requests[name] for name in required + optional}, required)


def operation(method, path, query, cells, page):
    """What OpenAPI calls an operation, of a row of one of the tables of routes."""
    parameters = [{"name": piece, "in": "path", "required": True, "schema": {"type": "string"}}
                  for piece in re.findall(r"\{(\w+)\}", path)]
    for name in re.findall(r"(\w+)=", query or ""):
        parameters.append({"name": name, "in": "query", "schema": page["parameters"][name]})
    made = {"operationId": "_".join([method.lower(), *re.findall(r"[\w-]+", path)[2:]]),
            "parameters": parameters}
    if len(cells) == 3:
        body = body_schema(cells[1], page["requests"])
        made["requestBody"] = {"required": "required" in body, "content": content(body)}
    made["responses"] = {
        "200": {"description": cells[-1].replace("`", ""),
                "content": content(answer_schema(cells[-1], page["names"]))},
        "default": {"description": "a refusal, which changes nothing",
                    "content": content({"$ref": "#/components/schemas/Refusal"})}}
    return made


def make(page_text, errors_text):
    found = tables(page_text)
    objects = {name: rows for name, rows in found.items()
               if name not in ("", "Requests", "Parameters")}
    page = {"names": set(objects), "requests": fields_of(found["Requests"], set()),
            "parameters": fields_of(found["Parameters"], set())}
    schemas = {}
    for name, rows in objects.items():
        fields = fields_of(rows, page["names"])
        schemas[name] = closed(fields, list(fields))
    schemas["Error"]["properties"]["code"]["enum"] = documents.codes_of(errors_text)
    schemas["Refusal"] = closed({"error": {"$ref": "#/components/schemas/Error"}}, ["error"])
    paths = {}
    for cells in found[""]:
        route = ROUTE.match(cells[0])
        if route is None:
            continue
        method, path, query = route.groups()
        pieces = ["{" + PIECES[piece] + "}" if piece in PIECES else piece
                  for piece in path.split("/")]
        path = "/".join(["/api/v1", *pieces])
        paths.setdefault(path, {})[method.lower()] = operation(method, path, query, cells, page)
    return {"openapi": "3.1.0",
            "info": {"title": "Warpraid", "version": "1",
                     "description": "Made from docs/api.md by tidy/api_schema.py."},
            "paths": paths, "components": {"schemas": schemas}}


def render(schema):
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def routes_of_server(text):
    return {(method, tuple("*" if piece == "*" else piece
                           for piece in re.findall(r'"([^"]+)"', pieces)))
            for method, pieces in re.findall(r'\{"(GET|POST|PATCH|DELETE)", \{([^}]*)\}', text)}


def routes_of_schema(schema):
    return {(method.upper(), tuple("*" if piece.startswith("{") else piece
                                   for piece in path.split("/")[3:]))
            for path, methods in schema["paths"].items() for method in methods}


def check(repo):
    """The schema is that of the page, and the page's routes are those of the server."""
    if any(path not in repo.texts for path in (PAGE, ROUTES, ERRORS)):
        return
    try:
        schema = make(repo.texts[PAGE], repo.texts[ERRORS])
    except (Problem, KeyError) as problem:
        yield PAGE, 1, "api", f"the tables cannot be read: {problem}"
        return
    served, written = routes_of_server(repo.texts[ROUTES]), routes_of_schema(schema)
    for method, pieces in sorted(served ^ written):
        where = "is not in docs/api.md" if (method, pieces) in served else "is not served"
        yield PAGE, 1, "api", f"{method} /api/v1/{'/'.join(pieces)} {where}"
    if repo.texts.get(SCHEMA) != render(schema):
        yield SCHEMA, 1, "api", "is not that of docs/api.md: run tidy/api_schema.py --fix"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help=f"write {SCHEMA}")
    options = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

    def read(path):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()

    made = render(make(read(PAGE), read(ERRORS)))
    if options.fix:
        with open(os.path.join(root, SCHEMA), "w", encoding="utf-8") as file:
            file.write(made)
        return 0
    is_right = os.path.exists(os.path.join(root, SCHEMA)) and read(SCHEMA) == made
    print(f"{SCHEMA} is {'that of' if is_right else 'older than'} {PAGE}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
