"""Every route of docs/openapi.json against a real daemon: answers are what the schema says and nothing
besides, and what it forbids is refused."""

import json
import re
import urllib.parse
from pathlib import Path

from daemon import Daemon
from drives import put
from harness import MIB, Failure, Skip, check, equal

try:
    import jsonschema
except ImportError:
    jsonschema = None

SMALL = 96 * MIB
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


class Api:
    """Asks a daemon, and compares what is sent and what comes back with the schema."""

    def __init__(self, daemon):
        if jsonschema is None:
            raise Skip("python3-jsonschema is not installed")
        self.daemon = daemon
        self.document = json.loads(SCHEMA.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(
            {"$defs": self.document["components"]["schemas"]})
        self.asked = set()

    def problems(self, schema, value):
        whole = {**schema, "components": self.document["components"]}
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in
                jsonschema.Draft202012Validator(whole).iter_errors(value)]

    def request_schema(self, method, path):
        operation = self.document["paths"][f"/api/v1/{path}"][method.lower()]
        if "requestBody" not in operation:
            return None
        return operation["requestBody"]["content"]["application/json"]["schema"]

    def send(self, method, path, body, pieces=(), query=""):
        """(status, answer), the answer being of the schema."""
        names = iter(pieces)
        filled = re.sub(r"\{\w+\}", lambda _: urllib.parse.quote(str(next(names)), safe=""), path)
        text = None if body is None else json.dumps(body)
        status, answer = self.daemon.http(method, filled + query, text)
        responses = self.document["paths"][f"/api/v1/{path}"][method.lower()]["responses"]
        schema = responses["200" if status == 200 else "default"]["content"]["application/json"]
        equal(self.problems(schema["schema"], answer), [],
              f"what is wrong with the answer to {method} {filled}")
        return status, answer

    def ask(self, method, path, body=None, pieces=(), query="", code=None):
        """A request that the schema allows; `code`: the refusal that is expected."""
        if body is not None:
            equal(self.problems(self.request_schema(method, path), body), [], f"the body {body}")
        status, answer = self.send(method, path, body, pieces, query)
        found = answer["error"]["code"] if status != 200 else None
        equal(found, code, f"the code of {method} {path} {body}: {answer}")
        self.asked.add((method.lower(), f"/api/v1/{path}"))
        return answer


def ask_queries(api):
    """What can be asked of whatever is there."""
    for path in ("drives", "groups", "volumes", "spares", "exports", "events", "health", "status",
                 "examine", "version"):
        api.ask("GET", path)
    api.ask("GET", "events", query="?after=1&limit=1000&newest=true")
    for group in api.ask("GET", "groups")["groups"]:
        equal(api.ask("GET", "groups/{group}", pieces=[group["uuid"]])["group"]["id"], group["id"],
              "the group's id")


def test_every_route(case):
    daemon = Daemon(case).start()
    api = Api(daemon)
    ask_queries(api)
    drives = [str(case.directory / f"drive-{index}.img") for index in range(8)]
    api.ask("POST", "drives", {"paths": drives, "file_bytes": SMALL})
    api.ask("POST", "groups", {"level": "raid6", "drives": drives[:5], "name": "g",
                               "chunk_bytes": 65536, "exact_size": True})
    api.ask("POST", "spares", {"drives": [drives[5]], "group": "g"})
    api.ask("POST", "volumes", {"group": "g", "size_bytes": 8 * MIB, "count": 2, "name": "v"})
    api.ask("POST", "exports", {"group": "g", "volume": "v1", "read_only": True})
    ask_queries(api)
    api.ask("GET", "drives/{drive}", pieces=[drives[0]])
    api.ask("GET", "volumes/{group}/{volume}", pieces=["g", "v1"])
    api.ask("GET", "spares/{drive}", pieces=[drives[5]])
    api.ask("GET", "exports/{name}", pieces=["v1"])
    api.ask("GET", "events/{id}", pieces=[1])
    daemon.wait_state("optimal")
    # So slow that the pass is still under way when it is stopped.
    api.ask("PATCH", "groups/{group}", {"rebuild_bytes_per_second_max": 65536}, ["g"])
    api.ask("POST", "groups/{group}/verify", pieces=["g"])
    api.ask("GET", "groups")
    api.ask("DELETE", "groups/{group}/verify", pieces=["g"])
    api.ask("PATCH", "groups/{group}", {"rebuild_bytes_per_second_max": 0}, ["g"])
    generation = daemon.group("g")["generation"]
    api.ask("POST", "drives/{drive}/fail", {"generation": generation - 1}, [drives[0]],
            code="stale-token")
    api.ask("POST", "drives/{drive}/fail", {"generation": generation}, [drives[0]])
    ask_queries(api)
    daemon.wait_state("optimal")  # the spare
    api.ask("POST", "drives/{drive}/replace", {"new_drive": drives[6]}, [drives[1]])
    ask_queries(api)
    daemon.wait_state("optimal")
    api.ask("POST", "spares", {"drives": [drives[7]]})
    api.ask("DELETE", "spares/{drive}", pieces=[drives[7]])
    api.ask("PATCH", "groups/{group}", {"name": "h", "rebuild_bytes_per_second_max": 1 << 30}, ["g"])
    api.ask("PATCH", "volumes/{group}/{volume}", {"name": "w"}, ["h", "v0"])
    api.ask("DELETE", "exports/{group}/{volume}", pieces=["h", "v1"])
    api.ask("DELETE", "volumes/{group}/{volume}", pieces=["h", "w"])
    api.ask("DELETE", "groups/{group}", pieces=["h"], query="?clear=false")
    outcomes = api.ask("POST", "assemble", {"group": "h", "destroyed": True})["outcomes"]
    equal([one["outcome"] for one in outcomes], ["started"], "outcomes")
    api.ask("DELETE", "groups/{group}", pieces=["h"], query="?clear=true")
    ask_the_uncommon(api, drives)
    api.ask("DELETE", "drives/{drive}", pieces=[drives[7]])
    every = {(method, path) for path, methods in api.document["paths"].items() for method in methods}
    equal(sorted(every - api.asked), [], "routes that were not asked")


def ask_the_uncommon(api, drives):
    """A group that is held, one that cannot start, and refusals."""
    put(drives[7], 1024 + 56, b"\x53\xef")  # as of ext4
    api.ask("POST", "groups", {"level": "raid0", "drives": drives[6:], "name": "made"},
            code="has-signature")
    api.ask("POST", "groups", {"level": "raid0", "drives": drives[6:], "name": "made",
                               "force": True})
    check(api.ask("GET", "groups/{group}", pieces=["made"])["group"]["undoable"], "it can be undone")
    ask_queries(api)
    api.ask("DELETE", "groups/{group}/undo", pieces=["made"], code="wrong-state")
    api.ask("POST", "groups/{group}/undo", pieces=["made"])
    api.ask("POST", "drives/{drive}/reset-identity", pieces=[drives[7]], code="no-superblock")
    api.ask("POST", "groups", {"level": "raid0", "drives": drives[2:4], "name": "gone"})
    away = f"{drives[2]}.away"
    api.daemon.stop()
    Path(drives[2]).rename(away)
    api.daemon.start()
    equal(api.daemon.group("gone")["state"], "offline", "state without a drive")
    ask_queries(api)
    outcomes = api.ask("POST", "assemble", {"force": False, "preferred_drive": ""})["outcomes"]
    equal([one["outcome"] for one in outcomes], ["incomplete"], "outcomes")
    Path(away).rename(drives[2])
    api.ask("GET", "groups/{group}", pieces=["none"], code="not-found")
    api.ask("GET", "events", query="?limit=0", code="invalid-argument")


def test_what_the_schema_forbids(case):
    """Every field of every body with values of every kind: what the schema forbids is refused before
    anything is looked for."""
    api = Api(Daemon(case).start())
    values = (None, True, -1, 1.5, 0, 1 << 32, 1 << 64, "", "x", [], ["x"], [1], ["x"] * 257, {})
    forbidden = 0
    for path, methods in api.document["paths"].items():
        short = path.removeprefix("/api/v1/")
        pieces = ["none"] * short.count("{")
        for method in methods:
            schema = api.request_schema(method, short)
            if schema is None:
                continue
            right = {name: example(schema["properties"][name]) for name in schema.get("required", [])}
            bodies = [{**right, name: value} for name in schema["properties"] for value in values]
            bodies += [{key: value for key, value in right.items() if key != name} for name in right]
            bodies += [{**right, "unknown": 1}, [], "x", 1]
            for body in bodies:
                if not api.problems(schema, body):
                    continue
                status, answer = api.send(method.upper(), short, body, pieces)
                check(status == 400, f"{method} {short} took {body}: {status} {answer}")
                forbidden += 1
    check(forbidden > 200, f"only {forbidden} bodies are forbidden")
    equal(api.daemon.list("drive"), [], "drives after that")


def example(schema):
    if "enum" in schema:
        return schema["enum"][0]
    examples = {"string": "none", "array": ["/none"], "integer": 1, "boolean": True}
    if schema["type"] not in examples:
        raise Failure(f"no example of {schema}")
    return examples[schema["type"]]
