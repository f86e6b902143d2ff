# The newcomer's door. Every target installs the packages it lacks when run as root, and otherwise says
# which to install; then it configures and builds with CMake (presets: CMakePresets.json).

JOBS ?= $(shell nproc)
PRESET ?= release
BUILD := build/$(PRESET)
PROGRAMS := warpraid warpraidd warpraid-bench warpraid-sim
# The demo's pool of drives; `make demo DEMO_DIR=/some/fast/disk` puts it elsewhere.
DEMO_DIR ?= demo

.DEFAULT_GOAL := help
.PHONY: help build demo test bench tidy format fuzz clean

help:
	@echo "make demo    build, then RAID 6 on files in ./$(DEMO_DIR): lose two drives, rebuild, verify"
	@echo "make test    build and run every test; the last line is 'N passed, N failed'"
	@echo "make build   build/release/bin/{warpraid,warpraidd,warpraid-bench,warpraid-sim}"
	@echo "make bench   the engine over RAM drives: parity levels against RAID 0, small writes"
	@echo "make tidy    the repository's rules, the format of the sources, clang-tidy 19"
	@echo "make fuzz    every fuzz target for SECONDS=60 each (clang 19)"
	@echo "make format  format the sources with clang-format 19"
	@echo "make clean   remove build/"
	@echo "Variables: JOBS=$(JOBS) PRESET=$(PRESET) DEMO_DIR=$(DEMO_DIR)"

build:
	@sh .ci/packages.sh build
	@# Tests are configured when a test has been asked for before: switching would build twice.
	cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DWARPRAID_TESTS=OFF)
	cmake --build --preset $(PRESET) -j $(JOBS) --target $(PROGRAMS)

demo:
	@sh .ci/packages.sh build demo
	@$(MAKE) --no-print-directory build
	$(BUILD)/bin/warpraidd demo --directory $(DEMO_DIR)

test:
	@sh .ci/packages.sh build test
	cmake --preset $(PRESET) -DWARPRAID_TESTS=ON
	cmake --build --preset $(PRESET) -j $(JOBS)
	@python3 .ci/run_ctest.py --preset $(PRESET) $(TEST_ARGS)

bench: build
	$(BUILD)/bin/warpraid-bench ratios --drives ram:10x256M
	$(BUILD)/bin/warpraid-bench engine --level raid6 --drives ram:10x256M --chunk 64K --bs 4K \
	    --rw randwrite --depth 32 --jobs 4

tidy:
	@sh .ci/packages.sh build test tidy
	python3 tidy/tidy.py
	python3 tidy/test_tidy.py
	python3 tidy/format.py
	cmake --preset $(PRESET) -DWARPRAID_TESTS=ON
	python3 tidy/clang_tidy.py --build $(BUILD) --jobs $(JOBS)

format:
	@sh .ci/packages.sh tidy
	python3 tidy/format.py --fix

fuzz:
	@sh .ci/packages.sh build test fuzz
	sh .ci/fuzz.sh $(or $(SECONDS),60)

clean:
	rm -rf build
