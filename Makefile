# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= leaktight-demo
# One more than there are cores: tests that start programs wait for them.
TESTERS := $(shell expr `getconf _NPROCESSORS_ONLN` + 1)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

define NEXT

Next, in this folder:
  . .venv/bin/activate              so that your shell finds `leaktight`
  leaktight audit --model mlp --data digits --budget 5m --out first
                                    or your own: mine.models:net, mine.npz
  leaktight report first --redact   to pass on, without a private pixel
  leaktight init audit.toml         a plan, with a comment on every setting
endef
export NEXT

.PHONY: demo test test-long fuzz check docs bench format clean

# What Leaktight runs on. Modules are compiled when they are first imported: most of them never are.
$(VENV)/demo: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile --requirement requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

# What tests, checks and documentation need beside it.
$(VENV)/installed: $(VENV)/demo requirements-dev.lock
	$(PIP) --requirement requirements-dev.lock
	touch $@

demo: $(VENV)/demo  ## audit a bundled real data set and write a report
	$(BIN)/leaktight audit --preset quick --out $(OUT)
	@echo "$$NEXT"

test: $(VENV)/installed  ## run every test that does not take long
	$(PYTEST) -m "not long" --numprocesses $(TESTERS) --dist loadfile --no-loadscope-reorder

test-long: $(VENV)/installed  ## run the tests that take long, one after the other
	$(PYTEST) -m long || $(PYTEST) -m long --last-failed

fuzz: $(VENV)/installed  ## ten thousand cases of frames, captures and manifests
	LEAKTIGHT_FUZZ=1500 $(PYTEST) tests/captures/test_fuzz.py tests/wire/test_fuzz.py --numprocesses auto

check: $(VENV)/installed  ## formatting, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/installed  ## build the documentation into build/site, with every warning an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed  ## run every benchmark, one after the other
	@for file in benchmarks/[!_]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) build dist src/*.egg-info
