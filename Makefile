# Needs python3 with its venv module; `make help` says what there is.

# The system's own first: every user may run it, which one below somebody's home can't promise.
PYTHON ?= $(or $(shell for python in /usr/bin/python3 python3; do \
	$$python -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo $$python && break; done),$(error no python3 >= 3.11 with venv here: apt-get install python3-venv))
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Most of a test's time is waiting for a process.
WORKERS ?= 4
STAMP := $(VENV)/.set-up
BINARY_STAMP := $(VENV)/.set-up-binary
FLEET_STAMP := $(VENV)/.set-up-fleet
# Bytecode without the columns that a traceback would underline: a quarter less to read at each start.
COMPACT := -X no_debug_ranges
SHIPPED := sigwrap/policy/shipped.py
SOURCES := $(wildcard docs/*.md) docs/sigwrap.1 docs/policy.schema.json $(shell find sigwrap policies -name '*.py' -o -name '*.yaml' -o -path '*/page_parts/*' -o -path '*/page/parts/*')

.PHONY: help setup demo picture test test-all test-fleet test-programs test-engines test-roots test-kernels lint mutants binary \
	binary-older zipapp bench endurance clean

help:
	@echo 'make setup    .venv, with sigwrap in .venv/bin'
	@echo 'make demo     a small job under sigwrap, and what its log says'
	@echo 'make picture  docs/demo.svg, the moving picture in README.md, from a new recording'
	@echo 'make test     each promise, each documented behaviour, all pure code: five minutes'
	@echo 'make test-all every test that needs no built binary, as both users, and deeper: an hour'
	@echo 'make test-fleet  sigwrap ship with a real S3 store, and the engines that read it'
	@echo 'make test-programs  real programs, natively and under sigwrap (PROGRAMS= POLICY= FORM= USER=)'
	@echo 'make test-roots   dist/sigwrap in root folders of Debian releases (root, debootstrap)'
	@echo 'make test-kernels  dist/sigwrap on the kernels of these, emulated (root, qemu-system-x86, qemu-system-arm)'
	@echo 'make test-engines  sessions in a real OpenTelemetry Collector, Spark and Trino (go, Java, TRINO=)'
	@echo 'make lint     ruff and mypy'
	@echo 'make mutants  changes of the pure modules that no test notices'
	@echo 'make binary   dist/sigwrap: one file, no Python needed (tests: .ci/run)'
	@echo 'make binary-older  dist/older/sigwrap: the same for glibc 2.31 and newer (root, debootstrap)'
	@echo 'make zipapp   dist/sigwrap.pyz: one file for a machine with python3'
	@echo 'make bench    what sigwrap costs here, and what is in dist; writes bench.json'
	@echo 'make endurance  MINUTES=30 of mixed load: whether a session stays the same; writes docs'
	@echo 'make clean    remove what the above made'

setup: $(STAMP) $(SHIPPED)

# The shipped policies, checked.
$(SHIPPED): $(STAMP) $(wildcard policies/*.yaml sigwrap/policy/*/*.py)
	@$(BIN)/python -m sigwrap.policy.tools.shipped $@.unfinished policies/*.yaml
	@mv $@.unfinished $@
	@$(BIN)/python $(COMPACT) -m compileall -q sigwrap/policy

$(STAMP): pyproject.toml build/extension.py sigwrap/exec/_repeated.c
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[dev]'
# Where PYTHONDONTWRITEBYTECODE is set, each start would compile everything.
	@$(BIN)/python $(COMPACT) -m compileall -q sigwrap
	@touch $@

$(BINARY_STAMP): $(STAMP)
	$(INSTALL) -e '.[dev,binary]'
	@touch $@

# Without what chdb-core names: pandas and pyarrow are a gigabyte, and SQL on files needs neither.
FLEET_PACKAGES := import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]
FLEET_PACKAGES += ["optional-dependencies"]; print(*extras["fleet"], *extras["fleet-test"])

$(FLEET_STAMP): $(STAMP)
	$(INSTALL) --no-deps $$($(BIN)/python -c '$(FLEET_PACKAGES)')
	@touch $@

demo: $(STAMP)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh demo/demo.sh

picture: $(STAMP)
	@$(BIN)/python demo/picture.py --sigwrap $(BIN)/sigwrap

# What a failure of the tests would mean is in tests/support/tiers.py.
TIER ?= quick
USERS ?= us
# The tests' own bytecode is kept, whatever the caller's shell says: a third of a short run.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest

test: $(STAMP) $(SHIPPED)
	$(PYTEST) -n $(WORKERS) -m 'not binary and not fleet' --tier=$(TIER) --users=$(USERS) $(ARGS)

test-all: $(STAMP)
	SIGWRAP_TEST_STARTS=1 $(MAKE) test TIER=all USERS=both

test-fleet: $(FLEET_STAMP) $(SHIPPED)
	$(PYTEST) -n 2 -m fleet tests/fleet $(ARGS)

# USER is a variable of every login: only `make USER=…` means this one.
PROGRAMS_ARGS = $(if $(PROGRAMS),--programs '$(PROGRAMS)') $(if $(POLICY),--policy '$(POLICY)') \
	$(if $(FORM),--form '$(FORM)') $(if $(filter command,$(origin USER)),--user '$(USER)') \
	$(if $(WRITE),--write) $(ARGS)

test-programs: $(STAMP)
	$(BIN)/python -m tests.programs $(PROGRAMS_ARGS)

test-engines: $(FLEET_STAMP) $(SHIPPED)
	$(BIN)/python -m tests.fleet.engines.collector
	$(INSTALL) pyspark==4.1.0 trino==0.336.0
	$(BIN)/python -m tests.fleet.engines.sql spark
	$(if $(TRINO),$(BIN)/python -m tests.fleet.engines.sql trino $(TRINO))

test-roots: $(STAMP)
	SIGWRAP_TEST_ROOTS=full $(BIN)/python -m pytest tests/binary/test_roots.py $(ARGS)

test-kernels: dist/sigwrap
	$(BIN)/python -m tests.tools.kernels $(ARGS)

lint: $(STAMP) $(SHIPPED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

mutants: $(STAMP)
	$(BIN)/python tests/tools/mutants.py $(ARGS)

binary: dist/sigwrap

dist/sigwrap: $(BINARY_STAMP) $(SHIPPED) build/sigwrap.spec $(wildcard build/*.py) $(SOURCES)
	$(BIN)/python $(COMPACT) -m PyInstaller --noconfirm --log-level WARN \
		--workpath .work/pyinstaller --distpath dist build/sigwrap.spec
	ln -sf sigwrap dist/sigwrap-forward
	ln -sf sigwrap dist/sigwrap-stub
	ln -sf sigwrap dist/sigwrap-shell
	cd dist && sha256sum sigwrap >sigwrap.sha256

binary-older:
	sh build/older_glibc.sh

zipapp: dist/sigwrap.pyz

dist/sigwrap.pyz: $(STAMP) $(SHIPPED) $(wildcard build/*.py) $(SOURCES)
	$(BIN)/python $(COMPACT) build/zipapp.py $@

bench: $(STAMP)
	$(BIN)/python -m tests.bench.bench $(ARGS)

MINUTES ?= 30

endurance: $(STAMP)
	$(BIN)/python -m tests.endurance.endurance --minutes $(MINUTES) --write $(ARGS)

clean:
	rm -rf $(VENV) dist .work bench.json sigwrap/exec/*.abi3.so $(SHIPPED) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
