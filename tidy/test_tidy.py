#!/usr/bin/env python3
"""Tests of the repository's self-check: each plants one violation in a small tree and expects it found."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import api_schema  # noqa: E402
import cpp  # noqa: E402
import ratchet  # noqa: E402
import rules  # noqa: E402
import tidy  # noqa: E402

HEADER = "// A thing that is for something.\n#pragma once\n"
PRESETS = ('{"configurePresets": [{"name": "dev"}], "buildPresets": [{"name": "dev"}],'
           ' "testPresets": [{"name": "dev"}]}\n')


class PlantedViolations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        self.write("CMakePresets.json", PRESETS)
        self.write("Makefile", "test:\n\tctest\n")
        self.write("src/io/CMakeLists.txt", "warpraid_library(io SOURCES a.cpp DEPENDS warpraid::base)\n"
                                            "warpraid_test(io_test SOURCES a_test.cpp)\n")
        self.write("src/io/a.h", HEADER + '#include "base/b.h"\n')
        self.write("src/io/a.cpp", '#include "io/a.h"\n')
        self.write("src/io/a_test.cpp", '#include "io/a.h"\n#include "io/uring/c.h"\n')
        self.write("README.md", "# Title\n\n[more](docs/more.md#second-part), `make test`\n")
        self.write("docs/more.md", "# More\n\n## Second part\n")

    def write(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(text)

    def found(self):
        return tidy.findings(self.root, against=())[0]

    def expect(self, path, check, part=""):
        found = self.found()
        self.assertTrue(any(f[0] == path and f[2] == check and part in f[3] for f in found),
                        f"{check} not found at {path}; found: {found}")

    def expect_nothing(self):
        self.assertEqual(self.found(), [])

    def test_a_clean_tree_has_no_findings(self):
        self.expect_nothing()

    def test_include_of_a_higher_layer(self):
        self.write("src/io/a.h", HEADER + '#include "array/engine.h"\n')
        self.expect("src/io/a.h", "layers", "io may not include array")

    def test_include_of_an_implementation_outside_tests(self):
        self.write("src/io/a.cpp", '#include "io/uring/c.h"\n')
        self.expect("src/io/a.cpp", "layers", "io may not include io/uring")

    def test_unknown_folder(self):
        self.write("src/cache/a.h", HEADER)
        self.expect("src/cache/a.h", "layers", "not in the table")

    def test_include_without_folder(self):
        self.write("src/io/a.cpp", '#include "a.h"\n')
        self.expect("src/io/a.cpp", "layers", "folder/file.h")

    def test_confined_header(self):
        self.write("src/io/a.cpp", "#include <liburing.h>\n")
        self.expect("src/io/a.cpp", "layers", "confined to io/uring")

    def test_the_command_line_tool_sees_no_server(self):
        self.write("src/cli/CMakeLists.txt", "add_executable(warpraid main.cpp)\n")
        self.write("src/cli/main.cpp", '#include "api/client.h"\n')
        self.expect_nothing()
        self.write("src/cli/main.cpp", '#include "api/server.h"\n')
        self.expect("src/cli/main.cpp", "layers", "client side")

    def test_link_to_a_higher_layer(self):
        self.write("src/io/CMakeLists.txt", "warpraid_library(io SOURCES a.cpp a_test.cpp\n"
                                            "    DEPENDS warpraid::base warpraid::nbd)\n")
        self.expect("src/io/CMakeLists.txt", "links", "io may not link export/nbd")

    def test_every_ban(self):
        planted = {
            "unbounded-copy": "strcpy(a, b);", "silent-number": "int x = atoi(a);",
            "throwing-number": "auto x = std::stoul(a);", "unseeded-random": "int x = rand();",
            "wall-clock": "auto t = std::chrono::steady_clock::now();",
            "thread": "std::thread t;", "sleep": "usleep(1);", "heap": "int* p = new int;",
            "shared-ownership": "std::shared_ptr<int> p;", "lock": "std::mutex m;",
            "log-on-data-path": "log_info(a);",
            "disk-bytes": "auto* s = reinterpret_cast<const Superblock*>(p);",
            "exception": "throw 1;", "catch": "catch (...) {}", "coroutine": "co_return;",
            "plain-assert": "assert(x);", "console": "std::cout << 1;",
            "environment": 'getenv("A");', "shell": 'system("ls");', "exit": "std::abort();",
            "goto": "goto end;", "too-new": "\n#include <expected>\n"}
        self.assertEqual(set(planted), {ban.name for ban in rules.BANS}, "a ban without a test")
        for name, statement in planted.items():
            ban = next(b for b in rules.BANS if b.name == name)
            folder = "geometry" if ban.only is None or "geometry" in ban.only else "format"
            if ban.only == ["src", "sim"]:
                folder = "meta"
            path = f"src/{folder}/planted.cpp"
            self.write(f"src/{folder}/CMakeLists.txt", "add_library(x planted.cpp)\n")
            self.write(path, f"void f() {{\n    {statement}\n}}\n")
            with self.subTest(name):
                self.expect(path, name)
            os.remove(os.path.join(self.root, path))

    def test_bans_ignore_comments_and_strings(self):
        self.write("src/io/a.cpp", '// throw new std::cout\nconst char* a = "std::cout << rand()";\n'
                                   'const char* b = R"(goto assert(x))";\n/* co_await\n throw */\n')
        self.expect_nothing()

    def test_names_that_look_like_banned_calls(self):
        self.write("src/io/a.cpp", "void f() {\n    g.sleep(1);\n    static_assert(sizeof(int) == 4);\n"
                                   "    system_offset(2);\n    auto p = std::unique_ptr<X>(new X());\n}\n")
        self.expect_nothing()

    def test_header_without_pragma_once(self):
        self.write("src/io/a.h", "// What it is for.\nint x();\n")
        self.expect("src/io/a.h", "header", "#pragma once")

    def test_header_without_opening_comment(self):
        self.write("src/io/a.h", "#pragma once\nint x();\n")
        self.expect("src/io/a.h", "header", "comment")

    def test_using_namespace_in_a_header(self):
        self.write("src/io/a.h", HEADER + "using namespace std;\n")
        self.expect("src/io/a.h", "header", "leaks")

    def test_long_file(self):
        self.write("src/io/a.cpp", "int x;\n" * (rules.FILE_LINES_MAX + 1))
        self.expect("src/io/a.cpp", "file-size")

    def test_long_function(self):
        body = "    int x;\n" * rules.FUNCTION_LINES_MAX
        self.write("src/io/a.cpp", "namespace n {\nA::A(int x) : a_{x}, b_(x) {\n" + body + "}\n}\n")
        self.expect("src/io/a.cpp", "function-size", "A::A")

    def test_trailing_white_space_tab_and_missing_end(self):
        self.write("src/io/a.cpp", "int x; \n")
        self.expect("src/io/a.cpp", "form", "trailing")
        self.write("src/io/a.cpp", "\tint x;\n")
        self.expect("src/io/a.cpp", "form", "tab")
        self.write("src/io/a.cpp", "int x;")
        self.expect("src/io/a.cpp", "form", "end")
        self.write("src/io/a.cpp", "int x;  // " + "y" * rules.LINE_COLUMNS_MAX + "\n")
        self.expect("src/io/a.cpp", "form", "columns")

    def test_marks_of_unfinished_work(self):
        self.write("src/io/a.cpp", "// TO" "DO: later\n")
        self.expect("src/io/a.cpp", "leftover")

    def test_paths_of_one_machine(self):
        for place in ("/ho" "me/somebody/x", "/wo" "rk/x", "/tm" "p/x", "/ro" "ot/x"):
            self.write("docs/more.md", f"# More\n\n## Second part\n\nsee {place}\n")
            with self.subTest(place):
                self.expect("docs/more.md", "machine-path")
        self.write("docs/more.md", "# More\n\n## Second part\n\nsee build/wo" "rk/x, ./tm" "p/x\n")
        self.expect_nothing()

    def test_test_that_never_runs(self):
        self.write("src/io/other_test.cpp", '#include "io/a.h"\n')
        self.expect("src/io/other_test.cpp", "registered", "never runs")

    def test_dead_file(self):
        self.write("src/io/dead.cpp", '#include "io/a.h"\n')
        self.expect("src/io/dead.cpp", "registered", "dead file")

    def test_dead_links_and_anchors(self):
        self.write("README.md", "# Title\n\n[more](docs/none.md)\n")
        self.expect("README.md", "links", "does not exist")
        self.write("README.md", "# Title\n\n[more](docs/more.md#third-part)\n")
        self.expect("README.md", "links", "no such heading")

    def test_two_titles(self):
        self.write("docs/more.md", "# More\n\n## Second part\n\n# Another\n")
        self.expect("docs/more.md", "title")

    def test_promised_preset_target_and_file(self):
        self.write("README.md", "# Title\n\n`cmake --preset none`\n")
        self.expect("README.md", "promise", "no preset none")
        self.write("README.md", "# Title\n\n```\nmake none\n```\n")
        self.expect("README.md", "promise", "no target none")
        self.write("README.md", "# Title\n\nsee `src/none/x.h`\n")
        self.expect("README.md", "promise", "src/none/x.h")

    def test_preset_without_test_preset(self):
        self.write("CMakePresets.json", PRESETS.replace('"testPresets": [{"name": "dev"}]',
                                                        '"testPresets": []'))
        self.expect("CMakePresets.json", "presets", "testPresets")

    def test_promise_without_its_test(self):
        self.write("src/io/a_test.cpp", "TEST(Reads, come_back) {\n}\n")
        self.write("docs/fault-model.md", "# Faults\n\n`Reads.come_back`\n")
        self.expect_nothing()
        self.write("docs/fault-model.md", "# Faults\n\n`Reads.never_existed`\n")
        self.expect("docs/fault-model.md", "promise", "Reads.never_existed")

    def test_error_code_without_explanation(self):
        self.write("src/base/error_table.h", HEADER + '// X(kIo, "io-error", EIO, 500)\n')
        self.write("docs/operating.md", "# Operating\n\n`io-error`\n")
        self.expect_nothing()
        self.write("docs/operating.md", "# Operating\n\nio-errors\n")
        self.expect("docs/operating.md", "promise", "io-error")

    def test_exceptions_only_shrink(self):
        self.write("src/io/a.cpp", "void f() {\n    int* p = new int;\n    p = new int;\n}\n")
        self.expect("src/io/a.cpp", "heap")
        self.write(ratchet.PATH, "ban heap:src/io/a.cpp 2\n")
        self.expect_nothing()
        self.write(ratchet.PATH, "ban heap:src/io/a.cpp 1\n")
        self.expect("src/io/a.cpp", "heap", "may only shrink from 1")
        self.write(ratchet.PATH, "ban heap:src/io/a.cpp 3\n")
        self.expect(ratchet.PATH, "ratchet", "can shrink to 2")
        self.write(ratchet.PATH, "ban heap:src/io/a.cpp 2\nfile src/io/gone.cpp 700\n")
        self.expect(ratchet.PATH, "ratchet", "not needed any more")

    def test_exceptions_may_not_grow_since_a_commit(self):
        self.write("src/io/a.cpp", "void f() {\n    int* p = new int;\n}\n")
        self.write(ratchet.PATH, "ban lock:src/io/b.cpp 1\n")
        git = ["git", "-C", self.root, "-c", "user.name=t", "-c", "user.email=t@example.org"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
            subprocess.run(git + words, check=True)
        self.write(ratchet.PATH, "ban heap:src/io/a.cpp 1\n")
        found = tidy.findings(self.root, against=["HEAD"])[0]
        self.assertTrue(any("new exception `ban heap:src/io/a.cpp 1`" in f[3] for f in found), found)

    def plant_api(self, routes='{"GET", {"things", "*"}, get_thing},'):
        page = ("# The API\n\n| route | answers |\n|---|---|\n"
                "| GET `/api/v1/things/ID` | `thing`: Thing |\n\n## Fields\n\n### Requests\n\n"
                "| field | type | bounds | meaning |\n|---|---|---|---|\n| `force` | boolean | | |\n\n"
                "### Parameters\n\n| field | type | bounds | meaning |\n|---|---|---|---|\n"
                "| `after` | integer | | |\n\n"
                "### Thing\n\n| field | type | meaning |\n|---|---|---|\n"
                "| `state` | string | `fine`, `bad` |\n| `size` | integer or null | |\n\n"
                "### Error\n\n| field | type | meaning |\n|---|---|---|\n| `code` | string | |\n")
        errors = '// Errors.\n#pragma once\nX(kBad, "bad-thing", EINVAL, 400)\n'
        self.write("docs/api.md", page)
        self.write("src/base/error_table.h", errors)
        self.write("src/api/CMakeLists.txt", "warpraid_library(api SOURCES routes.cpp)\n")
        self.write("src/api/routes.cpp", f"table = {{\n{routes}\n}};\n")
        schema = api_schema.make(page, errors)
        self.write("docs/openapi.json", api_schema.render(schema))
        return schema

    def test_the_schema_of_the_api_is_made_of_its_page(self):
        schema = self.plant_api()
        self.expect_nothing()
        thing = schema["components"]["schemas"]["Thing"]
        self.assertEqual(thing["properties"]["state"]["enum"], ["fine", "bad"])
        self.assertEqual(thing["properties"]["size"]["oneOf"][1], {"type": "null"})
        self.assertFalse(thing["additionalProperties"])
        self.write("docs/openapi.json", api_schema.render(schema).replace("fine", "good"))
        self.expect("docs/openapi.json", "api", "not that of docs/api.md")

    def test_routes_that_only_one_side_knows(self):
        self.plant_api('{"GET", {"things", "*"}, get_thing},\n{"POST", {"things"}, post_thing},')
        self.expect("docs/api.md", "api", "POST /api/v1/things is not in docs/api.md")
        self.plant_api('{"GET", {"others"}, get_others},')
        self.expect("docs/api.md", "api", "GET /api/v1/things/* is not served")
        self.plant_api('{"GET", {"things", "*"}, get_thing, true},')
        self.expect("docs/api.md", "api", "only one side takes a query")

    def test_sources_of_the_api_that_cannot_be_read(self):
        for routes in ("", '{kGet, {"things", "*"}, get_thing},'):
            self.plant_api(routes)
            self.expect("docs/api.md", "api", "the tables cannot be read")
        self.plant_api()
        self.write("src/base/error_table.h",
                   '// Errors.\n#pragma once\nX(kBad, "bad-thing", EINVAL, 400)\nX(kBad, TEXT, EINVAL, 400)\n')
        self.expect("docs/api.md", "api", "not every row of src/base/error_table.h")
        self.plant_api()
        os.remove(os.path.join(self.root, "src/api/routes.cpp"))
        self.expect("docs/api.md", "api", "the tables cannot be read")

    def test_an_error_code_that_the_schema_lacks(self):
        self.plant_api()
        self.write("src/base/error_table.h", '// Errors.\n#pragma once\nX(kBad, "bad-thing", EINVAL, 400)\n'
                                             'X(kNew, "new-thing", EINVAL, 404)\n')
        self.expect("docs/openapi.json", "api", "not that of docs/api.md")

    def test_a_type_that_the_schema_does_not_know(self):
        self.plant_api()
        with open(os.path.join(self.root, "docs/api.md"), "a", encoding="utf-8") as page:
            page.write("| `more` | float | |\n")
        self.expect("docs/api.md", "api", "the type 'float' is unknown")

    def test_the_program_exits_1_and_names_the_place(self):
        self.write("src/io/a.cpp", "int x; \n")
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy.py")
        ran = subprocess.run([sys.executable, program, "--root", self.root],
                             capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("src/io/a.cpp:1: [form] trailing", ran.stdout)


class ReadingCpp(unittest.TestCase):
    def names(self, text):
        return [(name, line, lines) for name, line, lines in cpp.functions(text)]

    def test_functions_of_every_shape(self):
        text = ("namespace n {\nstruct S final : B<int(int)> {\n    S() : a_{1}, b_{2} {\n    }\n"
                "    int f() const override {\n        if (a_) {\n        }\n    }\n    int a_{0};\n};\n"
                "enum class E { kA, kB };\nconstexpr int kT[] = {1, 2};\n"
                "auto g(int x = {}) -> int\n{\n    auto l = [] { return 1; };\n}\n"
                "TEST(Suite, Name) {\n}\n}\n")
        self.assertEqual(self.names(text), [("S", 3, 2), ("f", 5, 4), ("g", 13, 4),
                                            ("TEST(Suite,Name)", 17, 2)])

    def test_blank_keeps_lines_and_code(self):
        text = 'a = "x\\"y"; // c\nb = \'{\'; /* d\n */ e = 1\'000;\n'
        self.assertEqual([line.split() for line in cpp.blank(text).split("\n")],
                         [["a", "=", ";"], ["b", "=", ";"], ["e", "=", "1'000;"], []])


if __name__ == "__main__":
    unittest.main()
