# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= leaktight-demo
# One more than there are cores: tests that start programs wait for them.
TESTERS := $(shell expr `getconf _NPROCESSORS_ONLN` + 1)
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest

.PHONY: demo test test-long fuzz check bench format clean

$(VENV)/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: $(VENV)/installed  ## audit a bundled real data set and write a report
	$(BIN)/leaktight audit --preset quick --out $(OUT)

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

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed  ## run every benchmark, one after the other
	@for file in benchmarks/[!_]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) build dist src/*.egg-info
