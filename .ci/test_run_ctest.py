#!/usr/bin/env python3
"""Tests of run_ctest.py over a small project: what passes, fails, is skipped, or was never built."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PRESETS = """{"version": 6, "configurePresets": [{"name": "p", "generator": "Unix Makefiles",
  "binaryDir": "${sourceDir}/build"}], "testPresets": [{"name": "p", "configurePreset": "p"}]}"""
LISTS = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
enable_testing()
add_test(NAME passes COMMAND true)
add_test(NAME prints_its_seed COMMAND sh -c "test -n \\"$WARPRAID_SEED\\"")
add_test(NAME skips COMMAND sh -c "exit 77")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME skips_as_googletest_does COMMAND echo "[  SKIPPED ] it")
set_tests_properties(skips_as_googletest_does PROPERTIES
    SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]")
"""


class Counting(unittest.TestCase):
    def run_over(self, more=""):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (("CMakeLists.txt", LISTS + more), ("CMakePresets.json", PRESETS)):
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            subprocess.run(["cmake", "--preset", "p"], cwd=root, check=True, capture_output=True)
            counts, failures = os.path.join(root, "counts"), os.path.join(root, "failures")
            ran = subprocess.run(
                [sys.executable, os.path.join(HERE, "run_ctest.py"), "--preset", "p"], cwd=root,
                env={**os.environ, "WARPRAID_COUNTS": counts, "WARPRAID_COUNTS_NAME": "small",
                     "WARPRAID_FAILURES": failures},
                capture_output=True, text=True, check=False)
            with open(failures, encoding="utf-8") as file:
                self.failures = file.read()
            with open(counts, encoding="utf-8") as file:
                return ran.returncode, ran.stdout.strip().split("\n"), file.read()

    def test_skipped_is_not_passed(self):
        status, lines, counts = self.run_over()
        self.assertEqual(lines[-1], "2 passed, 0 failed")
        self.assertIn("2 skipped: skips, skips_as_googletest_does", lines)
        self.assertEqual((status, counts), (0, "2 0 2 small\n"))
        self.assertEqual(self.failures, "")

    def test_failures_and_unbuilt_programs_fail(self):
        status, lines, counts = self.run_over(
            "add_test(NAME fails COMMAND sh -c \"seq 100 && exit 1\")\nadd_test(NAME unbuilt COMMAND ./nothing_here)\n")
        self.assertEqual(lines[-1], "2 passed, 2 failed")
        self.assertIn("2 failed: fails, unbuilt", lines)
        self.assertEqual((status, counts), (1, "2 2 2 small\n"))
        self.assertRegex(self.failures, r"^FAILED fails:\n41\n42\n(.*\n)*100\nFAILED unbuilt:\n")


if __name__ == "__main__":
    unittest.main()
