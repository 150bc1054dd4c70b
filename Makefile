# debezium-lakehouse: `make help` lists what there is.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Models whose SQL is linted: one of each macro, and of each connector of the demo but Oracle. All others are the same text with other
# names, or too deep for sqlfluff's parser (.sqlfluffignore).
LINTED := models/monitoring/shop models/live/lindorm/live_lindorm__meters.sql models/silver/lindorm/lindorm__meters.sql \
	models/silver/shop/shop__page_views.sql models/staging/huawei models/staging/lindorm models/staging/sqlserver \
	models/staging/mongodb/stg_mongodb__beds.sql models/staging/tencent models/staging/billing/stg_billing__contracts.sql \
	models/staging/shop/stg_shop__stock.sql
# sqlfluff drops what it finds in text that a macro wrote, and a model is nothing else; only these rules look there all the same.
# The others would take two thirds of the time. What sqlfluff cannot parse it always tells. Marts are SQL, and linted by all rules.
LINT_RULES := CV10,JJ01,LT02,LT05,LT12,LT13
export DBT_PROFILES_DIR := $(CURDIR)/profiles
export EVENTS SYSTEM CONNECTOR KEYS SERVERS KAFKA TOPICS KAFKA_CONFIG EVERY SNAPSHOT_DAYS KEEP TABLE KEY

.DEFAULT_GOAL := help
.PHONY: help setup run replay maintain erase report up down sql docs check demo test lint mutate soak bench sbom audit clean

help:  ## this list
	@echo "make run                                    land the sample events and build their tables"
	@echo "make run EVENTS=<path> SYSTEM=<name>        land your own Debezium events and build their tables"
	@echo "make run KAFKA=<servers> TOPICS=<names> SYSTEM=<name>     the same from topics of a Kafka"
	@echo "         KAFKA_CONFIG=<properties file> EVERY=<seconds>   how to get in; go on until Ctrl-C"
	@echo "         CONNECTOR=<name> KEYS='<table>=<col>,<col> …' SERVERS=shards|one    if the events do not say"
	@echo "         HISTORY='<table> …'                              keep the versions of the rows of these tables, too"
	@echo "make setup                                  only the environment, which every command creates where it is missing"
	@echo "make replay SYSTEM=<name>                   read its rejected records again, after a fix"
	@echo "make maintain [SYSTEM=<name>]               compact small files, expire old snapshots, remove orphan files"
	@echo "         KEEP=90d                                         delete batches of bronze that are older and were read, too"
	@echo "make erase SYSTEM=<name> TABLE=<table> KEY='<col>=<value>'   remove what is known of one row, everywhere"
	@echo "make report [SYSTEM=<name>]                 one HTML page: events, delays, rejected records, growth, the last runs"
	@echo "make up, make down                          start and stop a resident Spark for the other commands"
	@echo "make sql                                    a SQL shell on the lakehouse"
	@echo "make docs                                   the documentation site"
	@echo "make check                                  lint, build and test your models on the events in events/<system>/"
	@echo "make test                                   everything that CI runs"
	@echo "make lint, make demo                        the parts of it before the tests: linters, and the demo with all its checks"
	@echo "make mutate                                 which test notices each of a list of slips in the code (an hour or two)"
	@echo "make soak                                   10,000 random histories, kills at every commit, broken events, a server (hours)"
	@echo "make bench                                  the benchmark (about twenty minutes)"
	@echo "make sbom                                   what the project is made of, with hashes and licences"
	@echo "make audit                                  look the Python packages up in the database of known vulnerabilities"
	@echo "make clean                                  remove .lakehouse with all its tables, and all build products"

$(VENV)/ready: requirements.lock scripts/jars.lock scripts/setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
		{ echo "Error: Python 3.10 or newer is needed; set PYTHON=<path> or install it (Debian: apt install python3-venv)."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Error: this Python cannot create environments. Install its venv module (Debian: apt install python3-venv)."; exit 1; }
	@found=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1); \
		case "$$found" in 17 | 21) exit 0 ;; "") told="Java was not found." ;; *) told="Java $$found was found; Spark 4 needs 17 or 21." ;; esac; \
		echo "Error: $$told Install Java 17 or 21 (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME to one."; exit 1
	@echo "Creating the environment in $(VENV) (once, some minutes) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m scripts.setup
	@touch $@

setup: $(VENV)/ready  ## the environment: Python packages by hash, jars by digest

run: $(VENV)/ready  ## land events, build tables, show the result
	@$(BIN)/python -m scripts.run

replay: $(VENV)/ready  ## read rejected records again, after a fix
	@REPLAY=1 $(BIN)/python -m scripts.run

maintain: $(VENV)/ready  ## compact, expire, clean up
	@$(BIN)/python -m scripts.maintain

erase: $(VENV)/ready  ## remove what is known of one row
	@$(BIN)/python -m scripts.erase

report: $(VENV)/ready  ## one HTML page of events, delays, rejected records, growth and the last runs
	@$(BIN)/python -m scripts.report

up: $(VENV)/ready  ## a resident Spark Connect server, which the other commands then use
	@$(BIN)/python -m scripts.server up

down: $(VENV)/ready  ## stop it
	@$(BIN)/python -m scripts.server down

sql: $(VENV)/ready  ## a SQL shell
	@$(BIN)/python -m scripts.sql

docs: $(VENV)/ready  ## the docs site as one file
	@env $$($(BIN)/python -m scripts.server env) $(BIN)/python -m scripts.docs

check: $(VENV)/ready  ## for the CI of your fork: your models, on the events that you keep in events/
	@$(BIN)/python -m scripts.check

lint: export DBT_TARGET_PATH = target/lint
lint: $(VENV)/ready
	@$(BIN)/ruff check scripts tests benchmarks
	@$(BIN)/ruff format --check --quiet scripts tests benchmarks
	@$(BIN)/mypy --no-error-summary & types=$$!; $(BIN)/dbt parse --quiet --no-partial-parse --warn-error-options '{"error": "all", "silence": ["UnusedResourceConfigPath"]}'; \
		parsed=$$?; wait $$types && exit $$parsed
	@$(BIN)/sqlfluff lint --disable-progress-bar --processes 2 --rules $(LINT_RULES) $(LINTED)
	@$(BIN)/sqlfluff lint --disable-progress-bar models/marts

demo: $(VENV)/ready
	@env -u SPARK_REMOTE LAKEHOUSE_DIR=target/demo $(BIN)/python -m scripts.check_demo

test: $(VENV)/ready
	@$(MAKE) --no-print-directory --jobs=2 lint demo
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

mutate: $(VENV)/ready  ## each slip of tests/mutations.yml in a copy of the project, and the first test that fails
	@$(BIN)/python tests/mutate.py

soak: $(VENV)/ready
	@SOAK_WORLDS=$${SOAK_WORLDS:-17} SOAK_KILLS=$${SOAK_KILLS:-20} SOAK_EVENTS=$${SOAK_EVENTS:-1000000} LAKEHOUSE_DRIVER_MEMORY=4g \
		$(BIN)/python -m pytest -n 2 --dist worksteal -o faulthandler_timeout=0 -m 'soak or not soak' \
		tests/engine tests/stories tests/systems

bench: $(VENV)/ready  ## ratios against the hand-written job
	@$(BIN)/python benchmarks/bench.py

sbom: $(VENV)/ready  ## a CycloneDX document of all locked parts
	@$(BIN)/python -m scripts.sbom

audit: $(VENV)/ready  ## needs the package index's own JSON interface
	@[ -x target/audit/bin/pip-audit ] || { $(PYTHON) -m venv target/audit && target/audit/bin/pip install --quiet pip-audit==2.10.1; }
	@target/audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

clean:
	@[ ! -e .lakehouse/server.json ] || LAKEHOUSE_DIR=.lakehouse $(BIN)/python -m scripts.server down
	@rm -rf .lakehouse target logs
