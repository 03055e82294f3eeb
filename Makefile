# meson and ninja build, scripts/ and tests/ do everything else. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 600

# scripts/setup test installs the node and the Go of the tests there
export PATH := $(CURDIR)/.setup/bin:$(PATH)
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
# On a terminal ninja shows its status line; elsewhere only warnings and errors.
ninja = @if [ -t 1 ]; then ninja -C $(1); else ninja -C $(1) --quiet | sed '/no work to do/d'; fi

# Builds of the same sources: build/ is installed; build-test/ has ASan and UBSan, the unit
# tests and the corpus replay; build-clang/ is the second compiler and libFuzzer; build-tsan/ has the
# unit tests of code that several threads use, with TSan; build-bench/ is build/ with the benchmarks.

.PHONY: build run tour test test-postgres test-replicas check bench bench-convert bench-server bench-memory bench-page bench-graphs bench-replicas pictures fuzz soak tck test-fresh test-image format tidy install clean help
.DEFAULT_GOAL := build

build: build/build.ninja ## build build/dragoman, build/libdragoman.{so,a} and build/libdragoman-agent.{so,a}
	$(call ninja,build)

run: build ## set up, build, and start the server with the built-in agents (ARGS="--listen ..."); FRESH=1 deletes its tasks
	@$(if $(FRESH),rm -f build/run.db build/run.db-wal build/run.db-shm)
	@build/dragoman serve -c examples/run/dragoman.yaml $(ARGS)

tour: build ## take the guided tour of the translator
	@scripts/tour

test: setup-test build/build.ninja build-test/build.ninja build-clang/build.ninja ## set up and run all tests
	$(call ninja,build)
	$(call ninja,build-test)
	$(call ninja,build-clang)
	@tests/tsan/run --build
	@tests/run

test-postgres: setup-test build-test/build.ninja ## all tests with a store, on a PostgreSQL that the tests start
	$(call ninja,build-test)
	@tests/run --postgres

test-replicas: setup-test build/build.ninja build-test/build.ninja ## several servers on one PostgreSQL: faults, failover, PgBouncer, 20 random schedules of faults
	$(call ninja,build)
	$(call ninja,build-test)
	@tests/run --replicas

check: setup-test build-test/build.ninja build-clang/build.ninja ## the quick half of the tests, under a minute
	$(call ninja,build-test)
	@tests/run --quick

bench: bench-convert bench-server bench-replicas bench-memory bench-page ## all benchmarks; figures of the server and the page go to docs/performance.md

bench-convert: build-bench/build.ninja ## the translator against bare yyjson, same bytes, same run
	$(call ninja,build-bench)
	@scripts/bench

bench-server: setup-bench build-bench/build.ninja ## the server against its peer, a bare one and another gateway, same run; needs two quiet cores
	$(call ninja,build-bench)
	@scripts/bench-server

bench-graphs: setup-bench build-bench/build.ninja ## only the rows of LangGraph graphs and workers; docs/performance.md is not changed
	$(call ninja,build-bench)
	@scripts/bench-server --only graph:
	@scripts/bench-server --only worker:

bench-replicas: setup-bench build-bench/build.ninja ## several replicas on one PostgreSQL beside a2a-python's cluster mode, same run; figures go to docs/performance.md
	$(call ninja,build-bench)
	@tests/bench/replicas.py

bench-memory: build ## attacks on the memory of a server: its peak, and how long others wait; needs two quiet cores
	@tests/bench/memory.py

bench-page: setup-test build ## the page in chromium beside a bare reader and an empty page, same run; needs two quiet cores
	@tests/bench/page.mjs

pictures: setup-test build ## create the pictures of the page in docs/pictures
	@tests/browser/pictures.mjs

fuzz: setup-test build-clang/build.ninja ## fuzz every decoder, FUZZ_SECONDS in all (600)
	$(call ninja,build-clang)
	@scripts/fuzz $(FUZZ_SECONDS)

soak: setup-test build/build.ninja build-clang/build.ninja ## tests that take hours: many kills, long fuzzing, a huge stream in little memory, races
	$(call ninja,build)
	$(call ninja,build-clang)
	@scripts/soak

tck: build ## run a conformance kit of A2A: make tck KIT=<checkout of a2aproject/a2a-tck>
	@scripts/tck $(or $(KIT),$(error say where the kit is: make tck KIT=<folder>))

test-fresh: ## the two README commands in clean Debian 12 and 13 (root)
	@scripts/setup fresh
	@scripts/test-fresh

test-image: ## build deploy/Containerfile with buildah and run the image; skipped without buildah (root)
	@scripts/test-image

format: setup-test ## clang-format over all C files
	@scripts/check-format --fix

tidy: setup-test build-test/build.ninja ## clang-tidy with its slow checks (the static analyzer) over all C files
	$(call ninja,build-test)
	@scripts/check-tidy --slow

install: build ## install below $(DESTDIR)$(PREFIX)
	@[ "$$(cat build/.prefix 2>/dev/null || echo /usr/local)" = "$(PREFIX)" ] || \
		{ meson configure build --prefix=$(PREFIX) >/dev/null && ninja -C build >/dev/null && echo $(PREFIX) >build/.prefix; }
	@meson install -C build --quiet --no-rebuild --strip $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	@$(if $(DESTDIR),:,ldconfig 2>/dev/null || :)

clean: ## remove all builds
	rm -rf build build-test build-clang build-tsan build-bench tests/out

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

# ---- the folders -----------------------------------------------------------------------------------

.PHONY: setup-run setup-test setup-bench
setup-run:
	@scripts/setup run
setup-test:
	@scripts/setup test
setup-bench:
	@scripts/setup bench

# meson tells its errors on stdout, among much else: show it only when it fails
configure = @mkdir -p .setup && echo "configuring $@" | sed 's,/.*,,' && \
	$(1) >.setup/meson.log 2>&1 || { cat .setup/meson.log; exit 1; }

# | orders without rebuilding: setup looks every time (and is quick), meson configures once
build/build.ninja: | setup-run
	$(call configure,meson setup build -Db_lto=true)
build-test/build.ninja: | setup-test
	$(call configure,env CC=gcc meson setup build-test --buildtype=debug -Doptimization=1 \
		-Db_sanitize=address$(comma)undefined -Dtests=true)
build-clang/build.ninja: | setup-test
	$(call configure,env CC=clang meson setup build-clang --buildtype=debugoptimized -Dfuzz=true -Db_lundef=false)
build-bench/build.ninja: | setup-run
	$(call configure,meson setup build-bench -Db_lto=true -Dbench=true)

comma := ,
