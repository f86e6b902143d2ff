#!/usr/bin/env python3
"""Entry point of the end-to-end tests: run.py [--bin DIR] [--seed N] [pattern...]"""

import argparse
import importlib.util
import os
import pathlib
import secrets
import sys

SYSTEM_PYTHON = "/usr/bin/python3"


def use_python_with_libnbd():
    """The distribution's binding of libnbd belongs to the distribution's own Python."""
    if importlib.util.find_spec("nbd") is None and os.path.exists(SYSTEM_PYTHON) \
            and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) \
            and "WARPRAID_E2E_PYTHON" not in os.environ:
        os.environ["WARPRAID_E2E_PYTHON"] = SYSTEM_PYTHON
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])


def main():
    use_python_with_libnbd()
    import harness

    root = pathlib.Path(__file__).resolve().parents[2]
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bin", default=root / "build" / "release" / "bin",
                         help="where warpraid and warpraidd lie (default: build/release/bin)")
    options.add_argument("--seed", type=int, default=secrets.randbits(32))
    options.add_argument("--keep", action="store_true", help="keep the folders of failed tests")
    options.add_argument("--list", action="store_true", help="name the tests and stop")
    options.add_argument("--verbose", action="store_true")
    options.add_argument("pattern", nargs="*", help="part of a test's name, a glob, or a file")
    chosen = options.parse_args()

    tests = harness.load_tests([pathlib.PurePath(pattern).name for pattern in chosen.pattern])
    if chosen.list:
        print("\n".join(test.name for test in tests))
        return 0
    if not tests:
        print(f"no test fits {' '.join(chosen.pattern)}", file=sys.stderr)
        return 2
    print(f"seed {chosen.seed}", flush=True)
    harness.stop_on_signals()
    settings = harness.Settings(pathlib.Path(chosen.bin).resolve(), chosen.seed, chosen.keep,
                                chosen.verbose)
    return harness.Runner(settings).run(tests)


if __name__ == "__main__":
    sys.exit(main())
