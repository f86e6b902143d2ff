"""The checks of code. Each takes the repository and yields (path, line, check, message)."""

import os
import re

import cpp


def layers(repo):
    """Every #include follows the table of layers; third-party headers stay where they are confined."""
    rules = repo.rules
    for path, text in repo.code():
        layer = repo.layer(path)
        if layer is None or layer in rules.UNLAYERED:
            continue
        if layer not in rules.LAYERS:
            yield path, 1, "layers", f"folder src/{layer} is not in the table of layers in tidy/rules.py"
            continue
        allowed = [layer] + rules.LAYERS[layer]
        if repo.is_test(path):
            allowed = allowed + rules.TEST_EXTRA
        for line, header, quoted in cpp.includes(text):
            if quoted:
                target = repo.layer("src/" + header)
                if not os.path.dirname(header):
                    yield path, line, "layers", f'"{header}": includes are written "folder/file.h"'
                elif target not in allowed:
                    yield path, line, "layers", f"{layer} may not include {target} ({header})"
                elif layer == "cli" and target == "api" and not rules.CLI_API_HEADERS.match(header):
                    yield path, line, "layers", f"cli sees only the API's client side, not {header}"
            elif not repo.is_test(path):
                for pattern, homes in rules.CONFINED_HEADERS:
                    if re.match(pattern, header) and layer not in homes:
                        yield (path, line, "layers",
                               f"<{header}> is confined to {', '.join(homes)}, not {layer}")


def links(repo):
    """The libraries that a folder's CMake target links follow the same table."""
    for path, text in repo.texts.items():
        layer = repo.layer(path)
        if not path.endswith("CMakeLists.txt") or layer not in repo.rules.LAYERS:
            continue
        for call in re.finditer(r"warpraid_library\s*\(([^)]*)\)", text):
            for name in re.findall(r"warpraid::(\w+)", call.group(1)):
                target = next((t for t in repo.rules.LAYERS if t.replace("/", "_") == name
                               or t.split("/")[-1] == name), name)
                if target != layer and target not in repo.rules.LAYERS[layer]:
                    line = text.count("\n", 0, call.start()) + 1
                    yield path, line, "links", f"{layer} may not link {target}"


def bans(repo, ratchet):
    """Calls and constructs that have no place here, with what to use instead."""
    for path, text in repo.code():
        layer = repo.layer(path)
        code = cpp.blank(text)
        code = "\n".join(c if not re.match(r"\s*#\s*include", raw) else raw
                         for c, raw in zip(code.split("\n"), text.split("\n")))
        for ban in repo.rules.BANS:
            if not ban.tests and repo.is_test(path):
                continue
            if ban.only is not None and layer not in ban.only and path.split("/")[0] not in ban.only:
                continue
            if any(path == free or path.startswith(free + "/") for free in ban.free):
                continue
            hits = ban.hits(code)
            why = ratchet.judge("ban", f"{ban.name}:{path}", len(hits), 0)
            if why:
                for line in hits:
                    yield path, line, ban.name, f"not here; instead: {ban.instead} ({why})"


def sizes(repo, ratchet):
    """Files and functions stay small enough to be read at once."""
    for path, text in repo.texts.items():
        if path.endswith(cppish := (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".ts", ".tsx")):
            why = ratchet.judge("file", path, text.count("\n"), repo.rules.FILE_LINES_MAX)
            if why:
                yield path, 1, "file-size", f"lines: {why}"
        if path.endswith(cppish[:4]):
            for name, line, lines in cpp.functions(text):
                why = ratchet.judge("function", f"{path}:{name}", lines,
                                    repo.rules.FUNCTION_LINES_MAX)
                if why:
                    yield path, line, "function-size", f"{name}: lines: {why}"


def headers(repo):
    """A header opens by saying what it is for, then #pragma once; and leaks no namespace."""
    for path, text in repo.code():
        if not path.endswith((".h", ".cuh")):
            continue
        if not re.match(r"//\s+\S+\s+\S+", text):
            yield path, 1, "header", "starts with a comment that says what it is for"
        if not re.search(r"(?m)^#pragma once$", text):
            yield path, 1, "header", "needs #pragma once"
        for match in re.finditer(r"(?m)^\s*using\s+namespace\b", cpp.blank(text)):
            yield (path, text.count("\n", 0, match.end()) + 1, "header",
                   "using namespace leaks into every includer")


def text_form(repo):
    """No trailing blanks, tabs or carriage returns; lines of code end before the limit."""
    for path, text in repo.texts.items():
        if path.endswith((".svg", ".lock", "package-lock.json")):
            continue
        if text and not text.endswith("\n"):
            yield path, text.count("\n") + 1, "form", "the last line needs an end"
        # A string may be long: breaking it may make it harder to read.
        is_code = path.endswith((".h", ".cpp", ".cu"))
        code_lines = cpp.blank(text, comments=False).split("\n") if is_code else []
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                yield path, number, "form", "trailing white space"
            if "\t" in line.rstrip("\n") and path.endswith(
                    (".h", ".cpp", ".cu", ".py", ".json", ".cmake", "CMakeLists.txt", ".md")):
                yield path, number, "form", "tab: indent with spaces"
            if is_code and len(code_lines[number - 1].rstrip()) > repo.rules.LINE_COLUMNS_MAX:
                yield path, number, "form", f"longer than {repo.rules.LINE_COLUMNS_MAX} columns"


def leftovers(repo):
    """No marks of unfinished work, and no path of somebody's machine."""
    for path, text in repo.texts.items():
        if path.startswith("tidy/"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            mark = repo.rules.LEFTOVER.search(line)
            if mark and not path.endswith(".json"):
                yield path, number, "leftover", f"{mark.group()}: do it, or file it"
            place = repo.rules.MACHINE_PATH.search(line)
            if place:
                yield path, number, "machine-path", f"path of one machine: {place.group()}"


def registered(repo):
    """Every source is named in a CMakeLists.txt: no test that never runs, no dead file."""
    listed = {}
    for path, text in repo.texts.items():
        if path.endswith("CMakeLists.txt"):
            listed[os.path.dirname(path)] = text
    listed[""] = listed.get("", "") + "".join(
        text for path, text in repo.texts.items() if path.startswith("cmake/"))
    for path, _ in repo.code():
        if not path.endswith((".cpp", ".cu")):
            continue
        folder, name = os.path.split(path)
        while True:
            relative = os.path.relpath(path, folder) if folder else path
            pattern = rf"(?<![\w.-])(?<![\w.]/){re.escape(relative)}(?![\w.])"
            if re.search(pattern, listed.get(folder, "")):
                break
            if not folder:
                what = "a test that never runs" if name.endswith("_test.cpp") else "a dead file"
                yield path, 1, "registered", f"named in no CMakeLists.txt: {what}"
                break
            folder = os.path.dirname(folder)
