"""Every route of docs/openapi.json against a real daemon: answers are what the schema says and nothing
besides, and what it forbids is refused."""

import json
import re
import socket
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
        self.seen = set()  # (field, word) of groups, drives and outcomes

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
        check(str(status) in responses, f"{method} {filled}: status {status} is not in the schema")
        if status != 200:
            self.check_refusal(status, answer, f"{method} {filled}")
            return status, answer
        schema = responses["200"]["content"]["application/json"]["schema"]
        equal(self.problems(schema, answer), [],
              f"what is wrong with the answer to {method} {filled}")
        for noun, field in (("groups", "state"), ("drives", "use"), ("outcomes", "outcome")):
            self.seen |= {(noun, one[field]) for one in answer.get(noun, [])}
        return status, answer

    def check_refusal(self, status, answer, what):
        """An error whose code belongs to that status."""
        response = self.document["components"]["responses"][f"Refused{status}"]
        equal(self.problems(response["content"]["application/json"]["schema"], answer), [],
              f"what is wrong with the refusal of {what}")

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
    outcomes = api.ask("POST", "assemble", {"force": False, "preferred_drive": drives[3]})["outcomes"]
    equal([one["outcome"] for one in outcomes], ["incomplete"], "outcomes")
    Path(away).rename(drives[2])
    api.ask("GET", "groups/{group}", pieces=["none"], code="not-found")
    api.ask("GET", "events", query="?limit=0", code="invalid-argument")


def test_states_of_groups(case):
    daemon = Daemon(case).start()
    api = Api(daemon)
    drives = [str(path) for path in daemon.make_drives(6, SMALL)]
    put(drives[5], 1024 + 56, b"\x53\xef")  # as of ext4
    ask_queries(api)
    api.ask("POST", "groups", {"level": "raid1", "drives": drives[:2], "name": "a"})
    api.ask("POST", "groups", {"level": "RAID0", "drives": drives[2:4], "name": "b"})
    api.ask("POST", "groups", {"level": "0", "drives": drives[4:], "name": "c", "force": True})
    daemon.wait_state("optimal", "a")
    ask_queries(api)
    api.ask("POST", "drives/{drive}/fail", {}, [drives[1]])
    ask_queries(api)
    daemon.stop()
    Path(drives[2]).rename(f"{drives[2]}.away")
    daemon.start()
    ask_queries(api)
    states = {group["name"]: group["state"] for group in api.ask("GET", "groups")["groups"]}
    equal(states, {"a": "degraded", "b": "offline", "c": "held"}, "states")
    api.ask("POST", "assemble", {})
    wanted = {("groups", "optimal"), ("groups", "degraded"), ("groups", "offline"),
              ("groups", "held"), ("drives", "unconfigured"), ("drives", "member"),
              ("drives", "missing"), ("outcomes", "incomplete"), ("outcomes", "already-running")}
    equal(sorted(wanted - api.seen), [], "what was not seen")


def test_nothing_but_the_schema_is_served(case):
    api = Api(Daemon(case).start())
    methods = {"get", "post", "put", "patch", "delete", "options"}
    paths = {**api.document["paths"], "/api/v1/nothing": {}, "/api/v1/drives/{drive}/nothing": {}}
    refused = 0
    for path, served in paths.items():
        filled = re.sub(r"\{\w+\}", "none", path.removeprefix("/api/v1/"))
        for method in sorted(methods - set(served)):
            status, answer = api.daemon.http(method.upper(), filled)
            api.check_refusal(status, answer, f"{method} {filled}")
            equal(status, 404, f"{method} {filled}")
            check("there is no " + method.upper() in answer["error"]["message"], str(answer))
            refused += 1
        for method in served:
            status, answer = api.daemon.http(method.upper(), filled + "?unknown=1")
            check(status == 400 and answer["error"]["code"] == "invalid-argument",
                  f"{method} {filled}?unknown=1: {status} {answer}")
    check(refused > 60, f"only {refused} requests were refused")


def test_bounds_of_parameters(case):
    api = Api(Daemon(case).start())
    parameters = api.document["paths"]["/api/v1/events"]["get"]["parameters"]
    schemas = {one["name"]: one["schema"] for one in parameters}
    values = {"after": ((0, 1, (1 << 64) - 1), (-1, 1 << 64, 1.5, "x", "")),
              "limit": ((1, 1000), (0, 1001, 1 << 64, "x", "")),
              "newest": ((True, False), ("yes", 1, "", "True"))}
    equal(sorted(schemas), sorted(values), "parameters")
    for name, (allowed, forbidden) in values.items():
        for value in allowed:
            equal(api.problems(schemas[name], value), [], f"{name}={value}")
            api.ask("GET", "events", query=f"?{name}={json.dumps(value)}")
        for value in forbidden:
            check(api.problems(schemas[name], value), f"the schema allows {name}={value!r}")
            api.ask("GET", "events", query=f"?{name}={value}", code="invalid-argument")
        api.ask("GET", "events", query=f"?{name}=1&{name}=1", code="invalid-argument")


def test_refusals_of_http_itself(case):
    daemon = Daemon(case).start()
    api = Api(daemon)
    start = b"POST /api/v1/assemble HTTP/1.1\r\nHost: localhost\r\n"
    big = b"Content-Length: 2097152\r\n\r\n" + bytes(2 << 20)
    for status, request, path in ((408, start, daemon.socket), (413, start + big, daemon.socket),
                                  (431, start + b"X: " + b"x" * (64 << 10), daemon.socket),
                                  (403, start + b"\r\n", daemon.readonly_socket)):
        found, answer = raw(path, request)
        equal(found, status, f"the status of {request[:80]}: {answer}")
        api.check_refusal(status, answer, f"{request[:80]}")


def raw(path, request):
    """(status, parsed JSON) of what is not a request as a client makes it."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(path))
        try:
            client.sendall(request)
        except OSError:
            pass  # the answer came before the end
        received = b""
        while piece := client.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_what_the_schema_forbids(case):
    """Every field of every body with values of every kind: what the schema forbids is refused before
    anything is looked for."""
    api = Api(Daemon(case).start())
    forbidden = 0
    for method, path, body, is_allowed in bodies_of(api):
        if is_allowed:
            continue
        status, answer = api.send(method, path, body, ["none"] * path.count("{"))
        check(status == 400, f"{method} {path} took {body}: {status} {answer}")
        forbidden += 1
    check(forbidden > 300, f"only {forbidden} bodies are forbidden")
    equal(api.daemon.list("drive"), [], "drives after that")


def test_what_the_schema_allows(case):
    """The same values: what the schema allows, the bounds among it, is refused for nothing that a body
    can be refused for before anything is looked for."""
    api = Api(Daemon(case).start())
    allowed = 0
    for method, path, body, is_allowed in bodies_of(api):
        if not is_allowed:
            continue
        status, answer = api.send(method, path, body, ["none"] * path.count("{"))
        if status != 200:
            message = answer["error"]["message"]
            check(not OF_THE_BODY.search(message), f"{method} {path} refused {body}: {answer}")
        allowed += 1
    check(allowed > 100, f"only {allowed} bodies are allowed")


# How src/api/json_in.cpp begins its refusals, and that of a level.
OF_THE_BODY = re.compile(r"^(the field '|the body |unknown field|nothing to change|'block_bytes' is)"
                         r"|is not a RAID level")
VALUES = (None, True, False, -1, 1.5, 0, 1, (1 << 32) - 1, 1 << 32, (1 << 64) - 1, 1 << 64, "", "x", "6",
          "Raid10", "raid7", "a\0b", [], ["x"], [1], ["a\0b"], ["x"] * 256, ["x"] * 257, {})


def bodies_of(api):
    """(method, path, body, whether the schema allows it): every field of every body with every value,
    without each field that is required, and with one that is unknown."""
    for path, methods in api.document["paths"].items():
        short = path.removeprefix("/api/v1/")
        for method in methods:
            schema = api.request_schema(method, short)
            if schema is None:
                continue
            right = {name: example(schema["properties"][name]) for name in schema.get("required", [])}
            bodies = [{**right, name: value} for name in schema["properties"] for value in VALUES]
            bodies += [{key: value for key, value in right.items() if key != name} for name in right]
            bodies += [right, {**right, "unknown": 1}, [], "x", 1]
            for body in bodies:
                yield method.upper(), short, body, not api.problems(schema, body)


def example(schema):
    if "anyOf" in schema:
        return schema["anyOf"][0]["enum"][0]
    examples = {"string": "none", "array": ["/none"], "integer": 1, "boolean": True}
    if schema["type"] not in examples:
        raise Failure(f"no example of {schema}")
    return examples[schema["type"]]
