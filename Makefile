# The commands of this repository; `make help` lists them.

# Prefer Debian's Python if it is new enough: containers and units use it, and another build may be half as slow again.
DEBIAN_PYTHON := $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/python3)
PYTHON ?= $(or $(DEBIAN_PYTHON),python3)
COMPOSE ?= docker-compose
PROFILE ?= demo
# Let Python and pytest keep compiled files: a stack starts nine programs from the same sources.
unexport PYTHONDONTWRITEBYTECODE
export GO ?= $(or $(shell command -v go),/usr/local/go/bin/go)
GOFMT = $$($(GO) env GOROOT)/bin/gofmt
# Use the flags of released agents for tests and vet too, so that each package is compiled once.
# To use the race detector: CGO_ENABLED=1 GOFLAGS=-race make test-go
export CGO_ENABLED ?= 0
export GOFLAGS := $(sort $(GOFLAGS) -trimpath -buildvcs=false)
BIN := .venv/bin
# Only pyproject.toml states the version.
VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

# The stamp contains a digest of the requirements: only a changed pin leads to an installation.
RUN_STAMP := .venv/.run-$(shell sha256sum requirements.txt | cut -c1-16)
DEV_STAMP := .venv/.dev-$(shell cat requirements.txt requirements-dev.txt | sha256sum | cut -c1-16)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile
# Compile in parallel; pip would use one processor.
COMPILE := $(BIN)/python -m compileall -q -j 0 .venv/lib

# Catalogues are compiled with the environment, and only after a change.
TRANSLATIONS := $(patsubst %.po,%.mo,$(wildcard locale/*/LC_MESSAGES/django.po))

# Python's part waits for the network and Go's for the processor: together they take little longer than one.
BUILD_BOTH = $(MAKE) --no-print-directory -j2

# Linters import the settings but open no connection.
CHECK_ENV := SECRET_KEY=check TOKEN_PEPPER=check BASE_URL=http://localhost \
	DATABASE_URL=postgres://check@127.0.0.1:1/check REDIS_URL=redis://127.0.0.1:1/0

.DEFAULT_GOAL := help
.PHONY: help demo compose-demo dev test test-rows test-lab test-faults test-journeys test-go test-release test-unit test-fast check bench restore-drill chaos chaos-seeds soak scale \
	lock format messages translations migrations openapi agent agent-packages release run-environment dev-environment packages-demo \
	packages-test packages-drills packages-ha ha check-python check-types check-templates check-layers check-go check-migrations check-clients check-prose check-chart docs

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile

demo: packages-demo ## a small ISP in the foreground; Ctrl-C stops all of it (PORT=8000 picks the port)
	@$(BUILD_BOTH) run-environment agent docs
	@exec $(BIN)/python -m devstack.demo

compose-demo: ## the demo in containers (COMPOSE="docker compose" uses the plugin; PROFILE=vpp uses real VPPs)
	@deploy/compose/make-secrets
	LONGLINE_NOC_NEEDS_TOTP=false $(COMPOSE) --profile $(PROFILE) up --detach --build
	@$(COMPOSE) --profile $(PROFILE) logs --no-color --follow demo-order

test: packages-test ## the tests, Python and Go, against real PostgreSQL and Redis (WITH=check runs the linters in parallel)
	@$(BUILD_BOTH) dev-environment docs agent
	@$(MAKE) --no-print-directory --keep-going --jobs=5 --output-sync=target \
		test-go test-lab test-faults test-journeys test-rows $(WITH)

# Lanes: tests that wait for frames, tests that wait for faults, tests from outside, and all others in the gaps.
# All that lanes need is built first: make would give the place of a lane that still waits to linters.
# Linters use the time in which tests wait.
# The fuzzer generates most requests when pytest collects it, and each worker of the rows collects all of them.
LAB := tests/lab tests/path_probes
FAULTS := tests/faults tests/failover
JOURNEYS := tests/browser tests/fuzz tests/journeys
ROWS := tests/contract tests/deploy tests/devstack tests/docs tests/guards tests/integration tests/unit

test-lab: dev-environment agent
	@$(BIN)/python -m pytest -p no:schemathesis $(LAB)

test-faults: dev-environment agent
	@$(BIN)/python -m pytest -p no:schemathesis $(FAULTS)

test-journeys: dev-environment agent docs
	@$(BIN)/python -m pytest $(JOURNEYS)

# Three processes for two cores, because a test waits for PostgreSQL for a quarter of its time.
test-rows: dev-environment
	@nice $(BIN)/python -m pytest -p no:schemathesis --numprocesses 3 $(ROWS)

test-go: agent
	@cd agent && $(GO) test -vet=off -short -timeout 30m ./...

# Slow variants, each of which would take a minute or more of `make test`: docs/develop/testing.md.
test-release: packages-test dev-environment agent ## slow variants of tests, which `make release` requires
	@$(BIN)/python -m pytest -m release --ignore tests/fuzz tests
	@FUZZ_EXAMPLES=50 $(BIN)/python -m pytest tests/fuzz
	@cd agent && $(GO) test -vet=off -timeout 30m ./internal/converge/

test-unit: dev-environment ## tests that need no service, in seconds (T=tests/unit/test_x.py)
	@$(BIN)/python -m pytest --services none -q -p no:schemathesis $(or $(T),--numprocesses 2 tests/unit)

test-fast: packages-demo dev-environment ## unit, guards and integration on a kept database (T=FILE for fewer)
	@$(BIN)/python -m pytest --services kept --reuse-db $(or $(T),tests/unit tests/guards tests/integration)

dev: packages-demo ## the demo on stand-ins; saved changes are served at once
	@$(BUILD_BOTH) dev-environment agent
	@GUNICORN_CMD_ARGS="--reload $$(find templates -name '*.html' -printf '--reload-extra-file %p ')" \
		DEBUG=true VPP_PREFIX=/nonexistent exec $(BIN)/python -m devstack.demo

check: check-python check-types check-templates check-layers check-go check-migrations check-clients check-prose docs ## all linters (-k continues after the first failure)

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

check-migrations: packages-demo $(DEV_STAMP)
	$(CHECK_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(CHECK_ENV) $(BIN)/python -W ignore::RuntimeWarning -m scripts.lint_migrations

migrations: packages-demo $(DEV_STAMP) ## write migrations for changed models (NAME=what_changes)
	$(CHECK_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations $(if $(NAME),--name $(NAME))
	@$(BIN)/ruff format --quiet portal/*/migrations

check-prose: build/vale $(DEV_STAMP) ## plain English in documents, comments, identifiers and texts of pages
	@$(BIN)/python -m scripts.prose

# Vale parses source files with C libraries.
build/vale: tools/vale/go.mod tools/vale/go.sum | packages-test
	@CGO_ENABLED=1 nice $(GO) -C tools/vale build -ldflags "-s -w" -o ../../build/vale github.com/errata-ai/vale/v3/cmd/vale

check-clients: build/clients/checked ## clients for Go and Python, generated from docs/openapi.yaml, compile

CLIENT_GENERATORS := build/clients/bin/ogen build/clients/python/bin/openapi-python-client

# After a successful run, the clients are generated again only if one of these files changes.
build/clients/checked: docs/openapi.yaml $(wildcard tests/clients/*.py tools/clients/*) $(CLIENT_GENERATORS) | $(DEV_STAMP)
	@nice $(BIN)/python -m pytest --services none -q tests/clients
	@touch $@

# Both Go generators, oapi-codegen and ogen.
build/clients/bin/ogen: tools/clients/go.mod tools/clients/go.sum
	@mkdir -p $(@D)
	@nice $(GO) -C tools/clients build -o ../../build/clients/bin/ tool

build/clients/python/bin/openapi-python-client: tools/clients/requirements.txt
	@$(PYTHON) -m venv --clear build/clients/python
	@build/clients/python/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

docs: build/docs/built ## build the documentation site, for staff and for customers, into build/docs

build/docs/built: $(shell find docs tools/docs -type f) pyproject.toml build/sphinx/bin/sphinx-build
	@nice tools/docs/build build/sphinx/bin/sphinx-build build/docs
	@touch $@

build/sphinx/bin/sphinx-build: tools/docs/requirements.txt
	@$(PYTHON) -m venv --clear build/sphinx
	@build/sphinx/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

check-chart: $(DEV_STAMP) build/helm ## check the Helm chart with Helm and the published schemas
	@$(BIN)/python -m pytest --services none -q tests/deploy/test_helm.py

# The first build takes some minutes. Tests do not wait for Helm: they are skipped, and say so.
build/helm: tools/helm/go.mod tools/helm/go.sum
	@$(GO) -C tools/helm build -ldflags "-s -w" -o ../../build/helm helm.sh/helm/v4/cmd/helm

format: $(DEV_STAMP) ## rewrite Python and Go sources in the house style
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .
	cd agent && $(GOFMT) -w .

bench: packages-demo ## one line per figure: bench <name> <value> <unit>
	@$(BUILD_BOTH) run-environment agent
	@exec nice $(BIN)/python -m bench

restore-drill: packages-demo ## back up under load, destroy, restore, reconcile, check; then recover to the second before a mistake (LINES=100000)
	@$(BUILD_BOTH) run-environment agent
	@exec $(BIN)/python -m drills.restore $(LINES)

chaos: packages-drills ## a storm of orders and faults, then an independent check (SEED=1 SECONDS=180)
	@$(BUILD_BOTH) run-environment agent
	@exec $(BIN)/python -m drills.chaos $(or $(SEED),1) $(or $(SECONDS),180)

chaos-seeds: packages-drills ## the storms that found a defect once (drills/chaos/seeds.txt)
	@$(BUILD_BOTH) run-environment agent
	@exec $(BIN)/python -m drills.chaos failed

ha: packages-ha ## run deploy/ha/ on this machine while its parts fail (DRILLS=primary-killed,... ORDERS_PER_S=20; DRILLS=rolling-upgrade UPGRADE_FROM=REVISION)
	@$(BUILD_BOTH) run-environment agent
	@exec nice $(BIN)/python -m drills.ha $(if $(DRILLS),--drills $(DRILLS)) $(if $(ORDERS_PER_S),--orders-per-s $(ORDERS_PER_S)) \
		$(if $(UPGRADE_FROM),--upgrade-from $(UPGRADE_FROM)) $(HA_OPTIONS)

soak: packages-demo ## hours of steady load; prints the growth of memory, queues and latency (HOURS=8, or MINUTES=10)
	@$(BUILD_BOTH) run-environment agent
	@exec nice $(BIN)/python -m drills.soak $(or $(MINUTES),$(shell expr 60 \* $(or $(HOURS),8)))

scale: packages-demo run-environment ## a simulated network, ROUTERS=1000 LINES=100000 MINUTES=30: lags, slopes, costs
	@exec $(BIN)/python -m drills.scale

lock: ## pin and hash requirements*.in
	@PYTHON="$(PYTHON)" scripts/lock-requirements

messages: $(DEV_STAMP) ## update locale/*/LC_MESSAGES/django.po from the sources
	$(CHECK_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py makemessages

openapi: $(DEV_STAMP) ## generate docs/openapi.yaml and docs/reference/errors.md from the views and the errors
	$(CHECK_ENV) $(BIN)/python -W ignore::RuntimeWarning manage.py spectacular --fail-on-warn --validate --file docs/openapi.yaml
	$(CHECK_ENV) $(BIN)/python manage.py shell --no-imports --command \
		'from portal.api.problem_details import markdown; print(markdown(), end="")' > docs/reference/errors.md

agent: ## build the agent and the stand-in, build/longline-agent and build/vppsim
	@mkdir -p build
	@cd agent && $(GO) build -ldflags "-X main.version=$(VERSION)" -o ../build/ ./cmd/...

agent-packages: ## the agent as static programs and Debian packages, amd64 and arm64, in build/release/<version>/
	@VERSION=$(VERSION) scripts/agent-packages build/release/$(VERSION) amd64 arm64

release: dev-environment ## check that this commit can be released, build its files, and print how to tag it
	@$(BIN)/python -m scripts.release

packages-demo packages-test packages-drills packages-ha: packages-%:
	@$(PYTHON) -m devstack.packages $*

packages-test packages-drills packages-ha: | packages-demo # one after another, because apt locks

run-environment: $(RUN_STAMP) translations

dev-environment: $(DEV_STAMP) translations

translations: $(TRANSLATIONS) ## compile the catalogues below locale/

%.mo: %.po
	@command -v msgfmt >/dev/null || $(PYTHON) -m devstack.packages demo
	@msgfmt --check-format --output-file=$@ $<

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
