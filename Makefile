# PolyCCL. `make demo` and `make check` are all that a newcomer needs. These two, and `make packages`, install the
# Debian packages that they lack (as root); no other target installs a package.
# CMake does the work; see CMakePresets.json.

BUILD = build/release
PREFIX = /usr/local

.PHONY: all demo check bench fuzz fuzz-time install format packages packages-check clean

# Builds the library, the command, the tests and the benchmarks.
all:
	@scripts/build.sh release

# Builds, then compiles, verifies and runs a hierarchical AllReduce on 4 processes.
demo: packages all
	@scripts/demo.sh $(BUILD)

# Every test: release, then sanitizers on a subset, a short fuzz, format and layers.
check: packages-check
	@scripts/check.sh

# Measurements; docs/results.md says which command gives which figure.
bench: all
	@scripts/bench.sh $(BUILD)

# Long fuzzing: SECONDS_EACH for each target (default 600).
fuzz:
	@scripts/packages.sh --require cmake/packages.txt cmake/packages-check.txt
	@tests/fuzz/run.sh $(or $(SECONDS_EACH),600)

# Climbs to the inputs that make a stage work most for their size (tests/fuzz/work.h); keeps them in build/work.
fuzz-time: all
	@mkdir -p build/work
	$(BUILD)/tests/work_climb $(or $(SECONDS_EACH),600)s 1 build/work

# Library, headers, command, manual pages, algorithms, Python package; `make install PREFIX=$HOME/.local`.
install: all
	cmake --install $(BUILD) --prefix $(PREFIX)
	@[ "$$(id -u)" != 0 ] || [ -n "$(DESTDIR)" ] || ldconfig

format:
	scripts/format.sh -i

packages:
	@scripts/packages.sh cmake/packages.txt

packages-check:
	@scripts/packages.sh cmake/packages.txt cmake/packages-check.txt

clean:
	rm -rf build
