.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
ONCE ?=
ALL ?=
UP_ARGS ?=

help:  ## list these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/.ready: requirements.txt requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Marlow needs Python 3.11 or newer; say which with: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "Python's venv module is missing: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing the locked requirements into .venv (about a minute, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt -r requirements-dev.txt
	@touch $@

.env:
	@cp .env.example .env

setup: .venv/.ready .env  ## make .venv and install the locked requirements (idempotent)

demo: setup  ## play the Wednesday on real servers and two boxes (ONCE=1: end after the verdict)
	$(BIN)/python manage.py up $(if $(ONCE),--once) $(UP_ARGS)

doctor: setup  ## say what is found, what is missing and what to do
	$(BIN)/python manage.py doctor

check: setup  ## style, types, layers and migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

test: check  ## all of check, then the tests, the live evenings alone (ALL=1: also those that take minutes)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not live$(if $(ALL),, and not slow)" $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m "live$(if $(ALL),, and not slow)" $(PYTEST_ARGS)

lock: .venv/.ready  ## write the requirements' lock files anew
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements.txt requirements.in
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate -o requirements-dev.txt requirements-dev.in

editor:  ## bundle the forms' editor anew (node and npm; only after a change in grading/editor)
	cd grading/editor && npm ci --ignore-scripts --no-fund --no-audit && node build.js

.PHONY: help setup demo doctor check test lock editor
