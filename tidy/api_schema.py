#!/usr/bin/env python3
"""Makes docs/openapi.json (OpenAPI 3.1) from the tables of docs/api.md, so that both say the same.

Usage: api_schema.py [--fix]. As a check it also compares the routes with those of the server's table
and the words of each field with those that the sources print, and takes the error codes from the table
of errors. What it cannot read is a finding, never nothing. Needs only Python 3."""

import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True

PAGE = "docs/api.md"
SCHEMA = "docs/openapi.json"
ROUTES = "src/api/routes.cpp"
ERRORS = "src/base/error_table.h"

PIECES = {"D": "drive", "G": "group", "V": "volume", "N": "name", "ID": "id"}
ROUTE = re.compile(r"(GET|POST|PATCH|DELETE) `/api/v1/([^`?]+)(?:\?([^`]*))?`$")
WORDS = re.compile(r"`[a-z0-9-]+`(?:, `[a-z0-9-]+`)+")
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
# A row of the server's table: method, pieces, function, whether it takes a query.
ROW = re.compile(r'\s*\{\s*"([A-Z]+)",\s*\{((?:\s*"[^"]+",?)+)\s*\},\s*\w+(,\s*true)?\s*\},')
ERROR_ROW = re.compile(r'X\(k\w+,\s*"([a-z0-9-]+)",\s*\w+,\s*(\d{3})\)')
DESCRIPTION = (
    "Made from docs/api.md by tidy/api_schema.py; that page has the rules that hold everywhere. Served on "
    "Unix sockets: control.sock answers everything, control-ro.sock only GET and HEAD. HEAD is answered "
    "like GET, without the body. Whole numbers are written as digits only: 1.0 is refused.")
NAME = r"^[^\u0000]+$"
ANY_LEVEL = "; in capitals too, and without `raid`"
NOT_OBJECTS = ("", "Requests", "Parameters")
# Which function turns the values of a field into words.
PRINTED = {("Drive", "use"): ("src/api/names.cpp", "control::DriveUse"),
           ("Group", "state"): ("src/api/names.cpp", "control::GroupState"),
           ("Event", "severity"): ("src/api/names.cpp", "control::Severity"),
           ("Progress", "work"): ("src/api/names.cpp", "tasks::Work"),
           ("Member", "state"): ("src/format/record.cpp", "MemberState"),
           ("Member", "reason"): ("src/format/record.cpp", "LeaveReason")}


class Problem(Exception):
    pass


def tables(text):
    """{heading: rows of cells} of the tables under third-level headings, and of all else under ''."""
    found, heading = {}, ""
    for line in text.split("\n"):
        if line.startswith("#"):
            heading = line[4:] if line.startswith("### ") else ""
        elif line.startswith("| ") and not line.startswith(("| field |", "| route |", "| status |")):
            found.setdefault(heading, []).append([cell.strip() for cell in line.split("|")[1:-1]])
    return found


def scalar(kind, meaning):
    if kind == "string":
        words = WORDS.search(meaning)
        if words is None:
            return {"type": "string"}
        words = words.group().replace("`", "").split(", ")
        if ANY_LEVEL not in meaning:
            return {"type": "string", "enum": words}
        numbers = "|".join(word.removeprefix("raid") for word in words)
        return {"type": "string",
                "anyOf": [{"enum": words}, {"pattern": f"^([Rr][Aa][Ii][Dd])?({numbers})$"}]}
    if kind == "integer":
        bounds = re.match(r"from (\d+) to (\d+)(?:\^(\d+) - 1)?$", meaning)
        if not bounds and meaning.startswith("from "):
            raise Problem(f"the bounds '{meaning}' cannot be read")
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
    return {"oneOf": [schema, {"type": "null"}]} if null else schema


def described(schema, name, meaning):
    """With the meaning and, where neither name nor meaning tell it, the unit."""
    text = LINK.sub(r"\1", WORDS.sub("", meaning)).replace("`", "").strip(": ")
    if name.endswith("_bytes") and "bytes" not in text:
        text = f"{text}; bytes" if text else "bytes"
    if name.endswith("_seconds"):
        text = f"{text}; seconds" if text else "seconds"
    if text:
        schema["description"] = text
    return schema


def closed(properties, required):
    """An object with these fields and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def fields_of(rows, names):
    """Of rows of field, type, meaning, or of field, type, bounds, meaning."""
    return {cells[0].strip("`"): described(field_schema(cells[1], cells[2], names),
                                           cells[0].strip("`"), cells[-1]) for cells in rows}


def as_names(schema):
    """The same, its strings neither empty nor with zero bytes."""
    if schema.get("type") == "string" and "anyOf" not in schema:
        return {**schema, "pattern": NAME}
    return {**schema, "items": as_names(schema["items"])} if "items" in schema else schema


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
    schema = closed({name: requests[name] for name in required + optional}, required)
    if "at least one" in text:
        schema["minProperties"] = 1
    return schema


def operation(method, path, query, cells, page):
    """What OpenAPI calls an operation, of a row of one of the tables of routes."""
    parameters = [{"name": piece, "in": "path", "required": True,
                   "schema": {"type": "string", "pattern": NAME}}
                  for piece in re.findall(r"\{(\w+)\}", path)]
    for name in re.findall(r"(\w+)=", query or ""):
        parameters.append({"name": name, "in": "query", "schema": page["parameters"][name]})
    made = {"operationId": "_".join([method.lower(), *re.findall(r"[\w-]+", path)[2:]]),
            "parameters": parameters}
    is_command = method != "GET"
    if len(cells) != (4 if is_command else 2):
        raise Problem(f"the row of {method} {path} has {len(cells)} cells")
    answer = cells[2 if is_command else 1]
    if is_command:
        made["summary"] = cells[3].replace("`", "")
        body = body_schema(cells[1], page["requests"])
        made["requestBody"] = {"required": "required" in body or "minProperties" in body,
                               "content": content(body)}
    made["responses"] = {
        "200": {"description": answer.replace("`", ""),
                "content": content(answer_schema(answer, page["names"]))}}
    for status in page["statuses"]:
        made["responses"][status] = {"$ref": f"#/components/responses/Refused{status}"}
    return made


def refusal_codes(page_rows, errors):
    """{status: codes}, of the table of errors and of what the page says of HTTP itself."""
    found = {}
    own = [(cells[1].strip("`"), cells[0]) for cells in page_rows if re.fullmatch(r"\d{3}", cells[0])]
    for code, status in [*errors.items(), *own]:
        if code not in errors:
            raise Problem(f"there is no error code {code}")
        found.setdefault(status, []).append(code)
    return dict(sorted(found.items()))


def refusals(codes_of):
    """What OpenAPI calls responses: one for each status."""
    schema = {"$ref": "#/components/schemas/Refusal"}
    return {f"Refused{status}": {
        "description": "a refusal, which changes nothing",
        "content": content({"allOf": [schema], "properties": {"error": {"properties": {
            "code": {"enum": codes}}}}})} for status, codes in codes_of.items()}


def errors_of(text):
    """{code: HTTP status} of the table of errors."""
    errors = dict(ERROR_ROW.findall(text))
    if not errors or len(errors) != len(re.findall(r"\bX\(k", text)):
        raise Problem(f"not every row of {ERRORS} can be read")
    return errors


def make(page_text, errors_text):
    found = tables(page_text)
    objects = {name: rows for name, rows in found.items()
               if name not in NOT_OBJECTS}
    errors = errors_of(errors_text)
    codes_of = refusal_codes(found[""], errors)
    page = {"names": set(objects), "statuses": list(codes_of),
            "requests": {name: as_names(schema)
                         for name, schema in fields_of(found["Requests"], set()).items()},
            "parameters": fields_of(found["Parameters"], set())}
    schemas = {}
    for name, rows in objects.items():
        fields = fields_of(rows, page["names"])
        schemas[name] = closed(fields, list(fields))
        for field in fields.values():
            if field.get("description", "").startswith("an error code"):
                field["enum"] = [*errors, ""] if "empty" in field["description"] else list(errors)
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
                     "description": DESCRIPTION},
            "paths": paths,
            "components": {"schemas": schemas, "responses": refusals(codes_of)}}


def render(schema):
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def routes_of_server(text):
    """{(method, pieces): whether it takes a query} of the server's table, every row of it."""
    table = re.search(r"\btable = \{\n(.*?)\n\s*\};", text, re.DOTALL)
    if table is None:
        raise Problem(f"{ROUTES} has no table of routes")
    if not table.group(1).strip():
        raise Problem(f"the table of {ROUTES} is empty")
    rows, found, at = re.sub(r"//[^\n]*", "", table.group(1)).rstrip(), {}, 0
    while at < len(rows):
        row = ROW.match(rows, at)
        if row is None:
            raise Problem(f"a row of {ROUTES} cannot be read: {rows[at:].strip().splitlines()[0]}")
        found[row.group(1), tuple(re.findall(r'"([^"]+)"', row.group(2)))] = bool(row.group(3))
        at = row.end()
    return found


def routes_of_schema(schema):
    return {(method.upper(), tuple("*" if piece.startswith("{") else piece
                                   for piece in path.split("/")[3:])):
            any(parameter["in"] == "query" for parameter in operation_of["parameters"])
            for path, methods in schema["paths"].items()
            for method, operation_of in methods.items()}


def words_printed(text, kind):
    """What the function for that enumeration returns."""
    body = re.search(rf"\((?:{kind}) \w+\) \{{\n(.*?)\n\}}", text, re.DOTALL)
    words = re.findall(r'^ {8,}return "([\w-]+)";', body.group(1), re.MULTILINE) if body else []
    if not words:
        raise Problem(f"the words of {kind} cannot be read")
    return words


def compared(repo, schema):
    """Where the page and the sources say different things."""
    served, written = routes_of_server(repo.texts[ROUTES]), routes_of_schema(schema)
    for method, pieces in sorted(served.keys() ^ written.keys()):
        where = "is not in docs/api.md" if (method, pieces) in served else "is not served"
        yield f"{method} /api/v1/{'/'.join(pieces)} {where}"
    for method, pieces in sorted(served.keys() & written.keys()):
        if served[method, pieces] != written[method, pieces]:
            yield f"{method} /api/v1/{'/'.join(pieces)}: only one side takes a query"
    for (name, field), (path, kind) in PRINTED.items():
        if name not in schema["components"]["schemas"]:
            continue
        listed = schema["components"]["schemas"][name]["properties"][field].get("enum", [])
        if sorted(listed) != sorted(words_printed(repo.texts[path], kind)):
            yield f"the words of {name}.{field} are not those of {path}"


def check(repo):
    """The schema is that of the page, and the page says what the sources do."""
    if not {PAGE, SCHEMA, ROUTES} & set(repo.texts):
        return
    try:
        schema = make(repo.texts[PAGE], repo.texts[ERRORS])
        problems = list(compared(repo, schema))
    except (Problem, KeyError) as problem:
        yield PAGE, 1, "api", f"the tables cannot be read: {problem}"
        return
    for problem in problems:
        yield PAGE, 1, "api", problem
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
