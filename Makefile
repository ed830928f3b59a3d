# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= leaktight-demo
CLUSTERS := -m "flower or ray" tests/flower tests/audit/test_ray_workers.py

.PHONY: demo test fuzz check bench format clean

$(VENV)/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: $(VENV)/installed  ## audit a bundled real data set and write a report
	$(BIN)/leaktight audit --preset quick --out $(OUT)

test: $(VENV)/installed  ## run every test
	# These start whole clusters, by themselves and one after the other; what fails is tried once more, and then it has failed.
	OMP_NUM_THREADS=1 $(BIN)/pytest $(CLUSTERS) || OMP_NUM_THREADS=1 $(BIN)/pytest $(CLUSTERS) --last-failed
	OMP_NUM_THREADS=1 $(BIN)/pytest -m "not flower and not ray" --numprocesses auto --dist loadfile

fuzz: $(VENV)/installed  ## ten thousand cases of frames, captures and manifests
	LEAKTIGHT_FUZZ=1500 OMP_NUM_THREADS=1 $(BIN)/pytest tests/captures/test_fuzz.py tests/wire/test_fuzz.py --numprocesses auto

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
