"""The checks of documents and of what they promise."""

import json
import os
import re


def _slug(title):
    title = re.sub(r"[`*]", "", title.strip().lower())
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title))


def _outside_fences(text):
    """(number, line) of the lines outside ``` fences."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _anchors(text):
    return {_slug(m.group(1)) for _, line in _outside_fences(text)
            if (m := re.match(r"#+\s+(.*)", line))}


def doc_links(repo):
    """Links between documents lead somewhere, and every document has exactly one title."""
    for path, text in repo.texts.items():
        if not path.endswith(".md"):
            continue
        titles = 0
        for number, line in _outside_fences(text):
            titles += re.match(r"# \S", line) is not None
            for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "``", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                whole = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                if not os.path.exists(os.path.join(repo.root, whole)):
                    yield path, number, "links", f"{target} does not exist"
                elif anchor and whole.endswith(".md") and anchor not in _anchors(repo.texts[whole]):
                    yield path, number, "links", f"{target}: no such heading"
        if titles != 1:
            yield path, 1, "title", f"{titles} titles, a document has one"


def promised_commands(repo):
    """Presets, make targets and files of the repository that documents name exist."""
    presets = set()
    if "CMakePresets.json" in repo.texts:
        content = json.loads(repo.texts["CMakePresets.json"])
        presets = {p["name"] for kind in ("configurePresets", "buildPresets", "testPresets",
                                          "workflowPresets") for p in content.get(kind, [])
                   if not p.get("hidden")}
    targets = set(re.findall(r"(?m)^([a-z][\w-]*):(?!=)", repo.texts.get("Makefile", "")))
    for path, text in repo.texts.items():
        if not path.endswith(".md"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for name in re.findall(r"--preset[ =]([\w-]+)", line):
                if name not in presets:
                    yield path, number, "promise", f"there is no preset {name}"
            for words in re.findall(r"(?:`|^\s*(?:\$ )?)make ([a-z][\w-]*)", line):
                if words not in targets:
                    yield path, number, "promise", f"the Makefile has no target {words}"
            for name in re.findall(r"`((?:src|docs|tests|tidy|bench|fuzz|sim|cmake|\.ci)/[\w./-]+)`",
                                   line):
                if not os.path.exists(os.path.join(repo.root, name)):
                    yield path, number, "promise", f"{name} does not exist"


def preset_pairs(repo):
    """Every visible configure preset has a build preset and a test preset of its name."""
    if "CMakePresets.json" not in repo.texts:
        return
    content = json.loads(repo.texts["CMakePresets.json"])
    for preset in content.get("configurePresets", []):
        for kind in ("buildPresets", "testPresets"):
            names = {p["name"] for p in content.get(kind, [])}
            if not preset.get("hidden") and preset["name"] not in names:
                yield "CMakePresets.json", 1, "presets", f"{preset['name']} is missing in {kind}"


def named_tests(repo):
    """The fault model names the test that shows each promise: every named test exists."""
    path = "docs/fault-model.md"
    known = set()
    for source, text in repo.code():
        if source.endswith("_test.cpp"):
            known |= {f"{suite}.{name}" for suite, name in re.findall(
                r"\b(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+)\s*,\s*(\w+)", text)}
    for number, line in enumerate(repo.texts.get(path, "").split("\n"), 1):
        for name in re.findall(r"`([A-Z]\w+\.\w+)`", line):
            if name not in known and name != "Suite.name":
                yield path, number, "promise", f"there is no test {name}"


def codes_of(table):
    """The stable codes of the table of errors, in its order."""
    return re.findall(r'X\(k\w+,\s*"([\w-]+)"', table)


def error_codes(repo):
    """An operator can look every error code up: docs/operating.md names each."""
    table, manual = "src/base/error_table.h", "docs/operating.md"
    if table not in repo.texts or manual not in repo.texts:
        return
    for code in codes_of(repo.texts[table]):
        if f"`{code}`" not in repo.texts[manual]:
            yield manual, 1, "promise", f"error code `{code}` is not explained"
