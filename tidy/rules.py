"""The rules of the repository, as data. A change here is a change of the architecture: review it so."""

import re

# Which folders of src/ (or top-level folders) a folder may include, besides itself. This table is the
# architecture diagram of docs/architecture.md; CMake's target links are checked against it as well.
LAYERS = {
    "base": [],
    "geometry": ["base"],
    "parity": ["base"],
    "parity/cpu": ["base", "parity"],
    "parity/cuda": ["base", "parity"],
    "io": ["base"],
    "io/uring": ["base", "io"],
    "block": ["base"],
    "format": ["base", "geometry"],
    "meta": ["base", "geometry", "format", "io"],
    "intent": ["base", "geometry", "format", "io"],
    "array": ["base", "geometry", "parity", "io", "block", "intent"],
    "tasks": ["base", "geometry", "parity", "io", "block", "intent", "array"],
    "export/nbd": ["base", "io", "block"],
    "export/ublk": ["base", "io", "block"],
    "health": ["base", "io"],
    "control": ["base", "geometry", "parity", "format", "io", "block", "meta", "intent", "array",
                "tasks", "export/nbd", "export/ublk", "health"],
    "api": ["base", "geometry", "format", "control"],
    "cli": ["base", "api"],
    # The composition root names everything.
    "daemon": ["base", "geometry", "parity", "parity/cpu", "parity/cuda", "io", "io/uring", "block",
               "format", "meta", "intent", "array", "tasks", "export/nbd", "export/ublk", "health",
               "control", "api"],
    # The simulator brings its own drives: never io/uring, never CUDA.
    "sim": ["base", "geometry", "parity", "parity/cpu", "io", "block", "format", "meta", "intent",
            "array", "tasks", "control"],
}

# Tests of a folder may also name the implementations that only the daemon names.
TEST_EXTRA = ["parity/cpu", "parity/cuda", "io/uring"]

# These see everything: they are not part of the product's layers.
UNLAYERED = ["bench", "fuzz", "tests"]

# The command line tool sees the plain client side of the API, not the server's.
CLI_API_HEADERS = re.compile(r"^api/(client|http_client|unix_client|schema|percent)\w*\.h$")

# Third-party headers that are confined, outside tests: (pattern of the header, folders that may include it).
CONFINED_HEADERS = [
    (r"^liburing", ["io/uring"]),
    (r"^(isa-l|isa-l/)", ["parity/cpu"]),
    (r"^(cuda|cufile|nvtx)", ["parity/cuda"]),
    # control keeps its own state and events as JSON lines; requests and answers are api's.
    (r"^nlohmann/", ["control", "api", "cli", "daemon"]),
    (r"^httplib", ["api"]),
    (r"^CLI/", ["cli", "daemon", "sim"]),
    # Only tests compare with it: daemon/toml_reader.h says why.
    (r"^toml\+\+", []),
    (r"^spdlog/", ["base"]),
]

TEST_FILE = re.compile(r"(_test|_test_support|_test_device)\.(h|cpp)$|/test_[a-z_]+\.(h|cpp)$")

HOT = ["array", "block", "geometry", "intent", "parity", "parity/cpu", "io", "io/uring", "export/nbd",
       "export/ublk"]

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
LINE_COLUMNS_MAX = 100


class Ban:
    """A pattern that must not occur in code (comments and strings are blanked before)."""

    def __init__(self, name, pattern, instead, only=None, free=(), tests=True, but=None):
        self.name = name
        self.pattern = re.compile(pattern)
        self.instead = instead
        self.only = only    # folders in which the ban holds; None: everywhere
        self.free = free    # folders or files in which it does not
        self.tests = tests  # whether it also holds in tests
        self.but = re.compile(but) if but else None  # what looks like it and is fine

    def hits(self, code):
        """Line numbers of the code where the ban is broken."""
        fine = [m.span() for m in self.but.finditer(code)] if self.but else []
        return [code.count("\n", 0, m.start()) + 1 for m in self.pattern.finditer(code)
                if not any(first <= m.start() < end for first, end in fine)]


BANS = [
    Ban("unbounded-copy", r"\b(strcpy|strcat|stpcpy|gets|sprintf|vsprintf|strtok)\s*\(",
        "fmt, std::string or std::copy"),
    Ban("silent-number", r"\b(atoi|atol|atoll|atof|sscanf)\s*\(", "std::from_chars and its error"),
    Ban("throwing-number", r"\bstd::sto(i|l|ll|ul|ull|f|d)\s*\(", "std::from_chars and its error"),
    Ban("unseeded-random", r"(?<![\w:>.])(std::)?s?rand\s*\(|\bstd::random_device\b",
        "base::Random from the constructor (tests print their seed)", free=["src/base/random.cpp"],
        tests=False),
    Ban("wall-clock", r"\b(system_clock|steady_clock|high_resolution_clock)::now\b"
        r"|(?<![\w:>.])(clock_gettime|gettimeofday)\s*\(",
        "base::Clock from the constructor",
        free=["src/base/clock.cpp", "src/io/uring", "src/daemon", "src/cli", "bench", "fuzz", "tests"],
        tests=False),
    Ban("thread", r"\bstd::(thread|jthread|async)\b",
        "the threads of the composition root", only=HOT + ["format", "meta", "tasks"], tests=False),
    Ban("sleep", r"\b(sleep_for|sleep_until)\s*\(|(?<![\w:>.])(usleep|nanosleep|sleep)\s*\(",
        "a timer of the reactor", only=HOT + ["base", "format", "meta", "tasks"], tests=False),
    Ban("heap", r"\bnew\b(?!\s*\()\s+[A-Za-z_:]|(?<![\w:>.])(std::)?(malloc|calloc|realloc|strdup)\s*\(",
        "memory taken at start: std::make_unique in a factory, a pool afterwards",
        only=HOT, tests=False,
        # A factory may hand a new object with a private constructor straight to its owner.
        but=r"\bunique_ptr<[^;(){}]*>\s*\w*\s*[({]\s*new\b"),
    Ban("shared-ownership", r"\bstd::(shared_ptr|make_shared)\b", "one owner and references",
        only=HOT, tests=False),
    Ban("lock", r"\bstd::(mutex|shared_mutex|recursive_mutex|scoped_lock|unique_lock|lock_guard)\b",
        "a message to the owning shard",
        only=[f for f in HOT if f not in ("io", "io/uring")], tests=False),
    Ban("log-on-data-path", r"\blog_(debug|info|warning|error)\s*\(", "a counter",
        only=["geometry", "parity", "parity/cpu", "block"], tests=False),
    Ban("disk-bytes", r"\breinterpret_cast<\s*(const\s+)?(?!(const\s+)?(unsigned\s+)?(char|std::byte|"
        r"std::uint8_t|uint8_t|std::uintptr_t)\b)[\w:]+",
        "the encoders of format/: runtime structs never meet disk bytes",
        only=["format", "meta", "intent", "geometry", "control"]),
    Ban("exception", r"\bthrow\b(?!\s*\()", "Result or Status", only=["src", "sim"]),
    Ban("catch", r"\bcatch\s*\(", "Result or Status; exceptions of libraries end in api, cli, daemon",
        only=["src", "sim"], free=["src/api", "src/cli", "src/daemon"]),
    Ban("coroutine", r"\bco_(await|yield|return)\b", "an operation with a Step and a step function"),
    Ban("plain-assert", r"(?<![\w:])assert\s*\(", "WARPRAID_ASSERT, which ships"),
    Ban("console", r"\bstd::(cout|cerr|clog|endl)\b|(?<![\w:>.])(std::)?(printf|puts|putchar)\s*\(",
        "base/log.h, or a returned string",
        only=["src", "sim"], free=["src/cli", "src/daemon", "src/sim/main.cpp"], tests=False),
    Ban("environment", r"(?<![\w:>.])(std::)?getenv\s*\(", "a value passed in by main",
        only=["src", "sim"], free=["src/cli", "src/daemon"], tests=False),
    Ban("shell", r"(?<![\w:>.])(std::)?(system|popen)\s*\(", "fork and exec with an argument list",
        tests=False),
    Ban("exit", r"(?<![\w:>.])(std::)?(exit|quick_exit|_exit|abort)\s*\(", "a returned error",
        only=["src", "sim"], free=["src/base/assert.cpp", "src/cli", "src/daemon"], tests=False),
    Ban("goto", r"\bgoto\b", "a function"),
    Ban("too-new", r"#\s*include\s*<(format|expected|print|generator)>",
        "fmt and base/result.h: g++ 12 has none of these"),
]

# Marks of unfinished work, looked for in comments too.
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

# Paths of one machine have no place in a repository. (/home/me is everybody, in examples.)
MACHINE_PATH = re.compile(r"(?<![\w.}/$-])/(work|home(?!/me/)|root|Users)/[\w.-]|"
                          r"(?<![\w.}/$-])/tmp/(?![\w.-]*XXXXXX)[\w.-]")
