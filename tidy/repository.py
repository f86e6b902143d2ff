"""The files of the repository, read once."""

import os
import subprocess

CODE = (".h", ".cpp", ".cu", ".cuh")
SKIPPED_FOLDERS = {".git", "build", "demo", "node_modules", "__pycache__", ".cache"}
BINARY_FOLDERS = ("fuzz/corpus/", "tests/golden/")


def listed_files(root):
    """Paths relative to root: what git tracks or would track; without git, everything but build output."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, check=True).stdout.decode()
        paths = [p for p in listed.split("\0") if p and os.path.isfile(os.path.join(root, p))]
        if paths:
            return sorted(set(paths))
    except (OSError, subprocess.CalledProcessError):
        pass
    paths = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
        paths += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(paths)


class Repository:
    def __init__(self, root, rules):
        self.root = root
        self.rules = rules
        self.paths = listed_files(root)
        self.texts = {}
        for path in self.paths:
            if path.startswith(BINARY_FOLDERS) or os.path.islink(os.path.join(root, path)):
                continue
            with open(os.path.join(root, path), "rb") as file:
                content = file.read()
            if b"\0" in content:
                continue
            try:
                self.texts[path] = content.decode("utf-8")
            except UnicodeDecodeError:
                continue

    def code(self):
        """(path, text) of the C++ sources."""
        return [(p, t) for p, t in self.texts.items() if p.endswith(CODE)]

    def layer(self, path):
        """The layer a path is in ("io/uring", "base", "sim", "bench", ...); None outside of them."""
        parts = path.split("/")[:-1]
        if parts and parts[0] == "src":
            for length in (2, 1):
                candidate = "/".join(parts[1:1 + length])
                if candidate in self.rules.LAYERS:
                    return candidate
            return "/".join(parts[1:]) or None
        if parts and (parts[0] in self.rules.LAYERS or parts[0] in self.rules.UNLAYERED):
            return parts[0]
        return None

    def is_test(self, path):
        return self.rules.TEST_FILE.search("/" + path) is not None or path.startswith("tests/")
