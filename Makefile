# The commands of this repository; `make help` lists them.

PYTHON ?= python3
COMPOSE ?= docker-compose
PROFILE ?= demo
export GO ?= $(or $(shell command -v go),/usr/local/go/bin/go)
GOFMT = $$($(GO) env GOROOT)/bin/gofmt
BIN := .venv/bin

# A stamp per content of the requirements: a changed pin reinstalls, an unchanged one costs nothing.
RUN_STAMP := .venv/.run-$(shell sha256sum requirements.txt | cut -c1-16)
DEV_STAMP := .venv/.dev-$(shell cat requirements.txt requirements-dev.txt | sha256sum | cut -c1-16)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile
# What pip would do on one processor.
COMPILE := $(BIN)/python -m compileall -q -j 0 .venv/lib

# Python's half waits for the network and Go's for the processor: together they take little longer than one.
BUILD_BOTH = $(MAKE) --no-print-directory -j2

# Linters import the settings but connect to nothing.
CHECK_ENV := SECRET_KEY=check TOKEN_PEPPER=check BASE_URL=http://localhost \
	DATABASE_URL=postgres://check@127.0.0.1:1/check REDIS_URL=redis://127.0.0.1:1/0

.DEFAULT_GOAL := help
.PHONY: help demo compose-demo test check bench lock format openapi agent run-environment dev-environment \
	packages-demo packages-test check-python check-types check-templates check-layers check-go \
	check-migrations

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile

demo: packages-demo ## a small ISP in the foreground; Ctrl-C stops all of it (PORT=8000 picks the port)
	@$(BUILD_BOTH) run-environment agent
	@exec $(BIN)/python -m devstack.demo

compose-demo: ## the demo in containers, with docker-compose (COMPOSE="docker compose": the plugin; PROFILE=vpp: real VPPs)
	@deploy/compose/make-secrets
	LONGLINE_NOC_NEEDS_TOTP=false $(COMPOSE) --profile $(PROFILE) up --detach --build
	@$(COMPOSE) --profile $(PROFILE) logs --no-color --follow demo-order

test: packages-test ## all tests, Python and Go, against real PostgreSQL and Redis
	@$(BUILD_BOTH) dev-environment agent
	@failed=""; \
	$(BIN)/python -m pytest || failed="$$failed pytest"; \
	(cd agent && $(GO) test ./...) || failed="$$failed go-test"; \
	if [ -n "$$failed" ]; then echo "make test: failed:$$failed"; exit 1; fi

check: check-python check-types check-templates check-layers check-go check-migrations ## all linters; with -k past the first complaint

check-python: $(DEV_STAMP)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .

check-types: $(DEV_STAMP)
	$(CHECK_ENV) $(BIN)/mypy

check-templates: $(DEV_STAMP)
	$(BIN)/djlint templates --lint --quiet

check-layers: $(DEV_STAMP)
	$(BIN)/lint-imports

check-go:
	cd agent && $(GO) vet ./...
	@unformatted=$$(cd agent && $(GOFMT) -l .); \
	if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi

check-migrations: $(DEV_STAMP)
	$(CHECK_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

format: $(DEV_STAMP) ## rewrite Python and Go sources in the house style
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .
	cd agent && $(GOFMT) -w .

bench: packages-demo ## one line per figure: bench <name> <value> <unit>
	@$(BUILD_BOTH) run-environment agent
	@exec nice $(BIN)/python -m bench

lock: ## pin and hash requirements*.in anew
	@PYTHON="$(PYTHON)" scripts/lock-requirements

openapi: $(DEV_STAMP) ## docs/openapi.yaml anew, from the views
	$(CHECK_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py spectacular --fail-on-warn --validate --file docs/openapi.yaml

agent: ## build/longline-agent and build/vppsim
	@mkdir -p build
	@cd agent && CGO_ENABLED=0 $(GO) build -buildvcs=false -o ../build/ ./cmd/...

packages-demo packages-test: packages-%:
	@$(PYTHON) -m devstack.packages $*

run-environment: $(RUN_STAMP)

dev-environment: $(DEV_STAMP)

.venv/bin/python: | packages-demo
	@$(PYTHON) -m venv .venv

$(RUN_STAMP): requirements.txt | .venv/bin/python
	@$(PIP_INSTALL) -r requirements.txt
	@$(COMPILE)
	@touch $@

$(DEV_STAMP): requirements.txt requirements-dev.txt | .venv/bin/python
	@$(PIP_INSTALL) -r requirements.txt -r requirements-dev.txt
	@$(COMPILE)
	@touch $@ $(RUN_STAMP)
