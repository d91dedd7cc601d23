# make compare    every design of both packages on the seeds' cases, checked against float64; timed where there is a GPU
# make test       the test suite, on two cores in ten minutes
# make test-core  for work on a kernel: the cases that were the first to notice a mutant, and the cheapest case of every cheap test
# make test-all   every case of every test: all sizes, configs, types and architectures
# make fuzz       properties of every design on fresh seeds, MINUTES=n of them; SEED=s DEPTH=d repeats one round, ONLY=tests/... a file or test of it
# make gpu        prove the library on this machine's GPU, in resumable steps, with the Python that has torch: PYTHON=python3;
#                 STEP=gemm: of one operation or check; GATE="--quick --minutes 9": its options
# make mutants    break every kernel on purpose, and see make test notice; JOBS=n at a time, SHARD=2/8: the second eighth of them
# make report     build/report/index.html: pages of all records: classes and models, and for each operation every loss and win, ladders, rooflines
# make docs       tables and charts of the docs, from records and designs
# make docs-site  the docs as a web site: build/site/index.html, with search, the API, twin pages and the report
# make lint       style, and the types of what users see, in the README's and the docs' snippets, too
PYTHON ?= python3

unexport PYTHONDONTWRITEBYTECODE  # a hundred processes of the tests import our modules, which take longer to compile than to load

.PHONY: compare test test-core test-all fuzz gpu mutants report docs docs-site lint clean

compare: .venv/installed
	.venv/bin/python -m perf compare --suite seeds

test: .venv/installed
	.venv/bin/python -m pytest -q -n auto --dist worksteal --bulk

test-core: .venv/installed
	.venv/bin/python -m pytest -q -n auto --dist worksteal --core

test-all: .venv/basedpyright
	.venv/bin/python -m pytest -q -n auto --dist worksteal --bulk --all

MINUTES ?= 5
fuzz: .venv/installed
	.venv/bin/python -m tests.properties.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(DEPTH),--depth $(DEPTH)) $(if $(ONLY),--only '$(ONLY)')

# On a machine with a GPU, whose own torch it takes: without .venv, which would want a network. STEP=name runs one step, check or family of it.
gpu:
	$(PYTHON) -m perf gate $(if $(STEP),--step $(STEP)) $(if $(COMMIT),--commit $(COMMIT)) $(GATE)

mutants: .venv/installed
	.venv/bin/python -m tests.mutants.run $(if $(JOBS),--jobs $(JOBS)) $(if $(SHARD),--shard $(SHARD))

report: .venv/installed
	.venv/bin/python -m perf report

docs: .venv/installed
	.venv/bin/python -m perf docs

docs-site: .venv/zensical
	.venv/bin/python -m perf site

lint: .venv/basedpyright
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python -m tests.tools.typed

# Installed once: a stamp newer than requirements.txt means there is nothing to do. pip would compile on one core, and what nothing
# imports; some packages hold files for other Pythons, which do not compile.
.venv/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python >= 3.10 is needed; name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements.txt
	.venv/bin/python -m compileall -qq -j 0 -x '/(tests|pip|setuptools|fontTools|pygments)/' .venv/lib || true
	@touch $@

# What make test does without: 90 MB for the site, 280 MB for the check of types.
.venv/zensical: VERSION = 0.0.73
.venv/basedpyright: VERSION = 1.40.2
.venv/zensical .venv/basedpyright: .venv/installed Makefile
	.venv/bin/python -m pip install --quiet --disable-pip-version-check $(notdir $@)==$(VERSION)
	@touch $@

clean:
	rm -rf .venv .nox build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
