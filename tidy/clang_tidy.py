#!/usr/bin/env python3
"""Runs clang-tidy 19 with the list in .clang-tidy over the product's sources of a configured build.

Exit 0: clean. 1: findings. 77: the tool is not here. With --seconds, files that no longer fit the
budget are left out, and how many is said: the order is a shuffle whose seed is printed."""

import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import time

VERSION = "19"


def sources(root, build):
    """The product's .cpp files that the build compiles, tests left out."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    found = set()
    for entry in entries:
        path = os.path.relpath(os.path.realpath(os.path.join(entry["directory"], entry["file"])), root)
        name = os.path.basename(path)
        if path.startswith("src/") and not name.endswith(("_test.cpp", "_test_support.cpp")):
            found.add(path)
    return sorted(found)


def check(tool, root, build, path):
    ran = subprocess.run(
        [tool, "-p", build, "--quiet", "--warnings-as-errors=*",
         "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-error", path],
        cwd=root, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="a configured build folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=None, help="start no file after this long")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("files", nargs="*", help="check only these")
    options = parser.parse_args()
    root = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    build = os.path.realpath(options.build)
    tool = shutil.which(f"clang-tidy-{VERSION}")
    if tool is None:
        print(f"SKIPPED: clang-tidy-{VERSION} is not installed (apt-get install clang-tidy-{VERSION})")
        return 77
    files = options.files or sources(root, build)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    random.Random(seed).shuffle(files)
    started = time.monotonic()
    wrong = left_out = 0

    def one(path):
        if options.seconds is not None and time.monotonic() - started > options.seconds:
            return None
        return check(tool, root, build, path)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(one, files):
            if result is None:
                left_out += 1
            elif result[0] != 0:
                wrong += 1
                print(result[1].strip())
    print(f"clang-tidy: {len(files) - left_out} files checked in {time.monotonic() - started:.0f} s, "
          f"{wrong} with findings, {left_out} left out for time (order seed {seed})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
