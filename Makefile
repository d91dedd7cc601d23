# make compare    every design of both packages on the seeds' cases, checked against float64; timed where there is a GPU
# make test       the test suite
# make fuzz       properties of every design on fresh seeds, MINUTES=n of them; SEED=s DEPTH=d repeats one round, ONLY=tests/... a file or test of it
# make mutants    break every kernel on purpose, and see the suite notice
# make lint       style
PYTHON ?= python3

.PHONY: compare test fuzz mutants lint clean

compare: .venv/installed
	.venv/bin/python -m perf compare --suite seeds

test: .venv/installed
	.venv/bin/python -m pytest -q -n auto --dist worksteal

MINUTES ?= 5
fuzz: .venv/installed
	.venv/bin/python -m tests.properties.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(DEPTH),--depth $(DEPTH)) $(if $(ONLY),--only '$(ONLY)')

mutants: .venv/installed
	.venv/bin/python -m tests.mutants.run

lint: .venv/installed
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

# Installed once: a stamp newer than requirements.txt means there is nothing to do.
.venv/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python >= 3.10 is needed; name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
