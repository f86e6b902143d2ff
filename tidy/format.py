#!/usr/bin/env python3
"""Checks the C++ sources with clang-format 19 (its output differs by major version).

Exit 0: formatted. 1: not. 77: the tool is not here, which CTest reports as skipped. --fix formats."""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from repository import CODE, listed_files  # noqa: E402

VERSION = "19"


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    tool = shutil.which(f"clang-format-{VERSION}")
    if tool is None:
        print(f"SKIPPED: clang-format-{VERSION} is not installed (apt-get install clang-format-{VERSION})")
        return 77
    files = [path for path in listed_files(root) if path.endswith(CODE)]
    if "--fix" in sys.argv[1:]:
        return subprocess.run([tool, "-i", *files], cwd=root, check=False).returncode
    ran = subprocess.run([tool, "--dry-run", "-Werror", *files], cwd=root, capture_output=True,
                         text=True, check=False)
    wrong = sorted(set(re.findall(r"(?m)^(.+?):\d+:\d+: error: ", ran.stderr)))
    if ran.returncode != 0 and not wrong:
        print(ran.stderr)
        return 1
    for path in wrong:
        print(f"{path}:1: [format] differs from clang-format-{VERSION}; run tidy/format.py --fix")
    print(f"format: {len(wrong)} of {len(files)} files differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
