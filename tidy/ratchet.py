"""Today's exceptions by name, in limits.txt: they may only shrink, and new ones are refused.

Lines: `file <path> <lines>`, `function <path>:<name> <lines>`, `ban <rule>:<path> <count>`."""

import os
import subprocess

PATH = "tidy/limits.txt"


def parse(text):
    limits = {}
    for line in text.split("\n"):
        line = line.split("#")[0].strip()
        if line:
            kind, name, value = line.split()
            limits[(kind, name)] = int(value)
    return limits


def render(limits):
    head = ("# Exceptions to the sizes and bans of rules.py that exist today. They may only shrink:\n"
            "# `tidy/tidy.py --shrink` lowers them, nothing raises them.\n")
    return head + "".join(f"{kind} {name} {value}\n" for (kind, name), value in sorted(limits.items()))


def load(root):
    path = os.path.join(root, PATH)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return parse(file.read())


def committed(root, revision):
    """The limits of a commit; None when there is no git, no such commit, or no such file in it."""
    shown = subprocess.run(["git", "-C", root, "show", f"{revision}:{PATH}"],
                           capture_output=True, check=False) if os.path.exists(
                               os.path.join(root, ".git")) else None
    return parse(shown.stdout.decode()) if shown and shown.returncode == 0 else None


class Ratchet:
    """Judges measured values against the ceiling and the exceptions; remembers what was used."""

    def __init__(self, limits):
        self.limits = limits
        self.used = {}

    def judge(self, kind, name, value, ceiling):
        """None when the value is fine, else why it is not."""
        if value <= ceiling:
            return None
        name = name.replace(" ", "")
        allowed = self.limits.get((kind, name))
        self.used[(kind, name)] = max(value, self.used.get((kind, name), 0))
        if allowed is None:
            return f"{value}, at most {ceiling} are allowed"
        if value > allowed:
            return f"{value}, and its exception in {PATH} may only shrink from {allowed}"
        return None

    def stale(self):
        """Exceptions that are larger than needed, or not needed at all."""
        for key, allowed in sorted(self.limits.items()):
            needed = self.used.get(key, 0)
            if needed < allowed:
                what = f"can shrink to {needed}" if needed else "is not needed any more"
                yield f"exception `{key[0]} {key[1]} {allowed}` {what}: run tidy/tidy.py --shrink"

    def shrunk(self):
        return {key: min(allowed, self.used[key])
                for key, allowed in self.limits.items() if key in self.used}


def raised(before, now):
    """What grew between two versions of the limits."""
    for key, value in sorted(now.items()):
        if key not in before:
            yield f"new exception `{key[0]} {key[1]} {value}`: exceptions may only shrink"
        elif value > before[key]:
            yield f"exception `{key[0]} {key[1]}` raised from {before[key]} to {value}"
