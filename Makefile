# fedrepro: `make` lists the commands. Each is a thin wrapper of snakemake, which can also be called directly.
.DEFAULT_GOAL := help
.PHONY: help setup reproduce test test-slow coverage lint format plan explain data report publish check-reference docs bench lock sbom audit clean
.SUFFIXES:

SCALE ?= demo
ONLY ?=
STUDIES ?=
DATA_DIR ?=
PROFILE ?= local
CORES ?=
DEVICE ?=
# GPUs of this machine: one training job per GPU at a time (on a cluster the scheduler assigns them)
GPUS ?=
ifeq ($(value GPUS),)
GPUS := $(shell nvidia-smi -L 2>/dev/null | grep -c '^GPU')
endif
ARGS ?=
SERVICE ?= pypi
CLAIM ?=
BUDGET ?= 20min
# The build of torch: cpu, cuda, or auto (cuda where there is an NVIDIA driver or DEVICE=cuda). Not given: that of .venv
TORCH ?=
# address of an index with the CPU builds; empty: PyTorch's own (envs/install.sh)
TORCH_INDEX ?=
ifeq ($(value TORCH),)
# a .venv from before there was a choice has the build of the lock: with CUDA, but for macOS
OF_THE_LOCK = $(if $(filter Darwin,$(shell uname -s)),cpu,cuda)
override TORCH := $(or $(shell cat .venv/.torch 2>/dev/null),$(if $(wildcard .venv/.ready-*),$(OF_THE_LOCK),auto))
endif

# Values are text: neither make nor the shell runs anything in them. Only line breaks cannot be quoted in a recipe.
define NEWLINE


endef
VARIABLES := SCALE ONLY STUDIES DATA_DIR PROFILE CORES DEVICE GPUS ARGS SERVICE CLAIM BUDGET TORCH TORCH_INDEX
$(foreach name,$(VARIABLES),$(eval override $(name) := $$(value $(name)))\
	$(if $(findstring $(NEWLINE),$($(name))),$(error $(name): a line break is not possible in it)))
ifeq ($(filter 1-auto 1-cpu 1-cuda,$(words $(TORCH))-$(TORCH)),)
$(error TORCH=$(TORCH): must be auto, cpu or cuda)
endif
quote = '$(subst ','\'',$(1))'
WORDS = $(foreach word,$(ARGS),$(call quote,$(word)))
RESULTS = results/$(SCALE)
SETUP_FILES := envs/requirements.lock pyproject.toml envs/setup.sh envs/install.sh envs/torch.sh envs/torch_cpu.py
READY := .venv/.ready-$(shell cat $(SETUP_FILES) | cksum | tr ' ' '-')
BUILD := $(if $(filter auto,$(TORCH)),$(if $(filter cuda,$(DEVICE)),cuda,$(shell sh envs/torch.sh auto)),$(TORCH))
STAMP := $(READY)-$(BUILD)
BENCH_STAMP := .venv-bench/.ready-$(shell cat envs/requirements.lock envs/bench.sh envs/bench.txt | cksum | tr ' ' '-')
BIN := .venv/bin
LOCAL = $(filter local,$(PROFILE))
CONFIG = scale=$(call quote,$(SCALE)) $(if $(ONLY),only=$(call quote,$(ONLY))) $(if $(STUDIES),studies=$(call quote,$(STUDIES))) \
	$(if $(DATA_DIR),data_dir=$(call quote,$(DATA_DIR))) $(if $(DEVICE),device=$(call quote,$(DEVICE)))
# GNU env holds signals back until launch.py handles them: Python itself ends with a traceback, or without a word
HOLD = $(shell env --block-signal=INT true 2>/dev/null && echo env --block-signal=INT,HUP,TERM)
SNAKEMAKE = PATH=$(call quote,$(CURDIR)/$(BIN)):"$$PATH" $(HOLD) $(BIN)/python -m fedrepro.workflow.launch \
	--profile $(call quote,workflow/profiles/$(PROFILE)) $(if $(CORES),--cores $(call quote,$(CORES))) \
	$(if $(LOCAL),$(if $(filter-out 0,$(GPUS)),--resources gpu=$(call quote,$(GPUS)))) --config $(CONFIG)

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24
	@echo
	@echo '  SCALE=smoke|demo|workstation|paper  ONLY="STUDY STUDY/ARTEFACT"  STUDIES=folder:folder  DATA_DIR=…  PROFILE=local|slurm|generic  CORES=…  DEVICE=auto|cpu|cuda|mps  GPUS=…  TORCH=auto|cpu|cuda'

$(STAMP): $(SETUP_FILES)
	@TORCH=$(BUILD) TORCH_INDEX=$(call quote,$(TORCH_INDEX)) sh envs/setup.sh $(READY)

setup: $(STAMP) ## create .venv with the exact versions of envs/requirements.lock (every other command does this first)

reproduce: $(STAMP) ## run every study and build the report
	@$(if $(LOCAL),FEDREPRO_WARM="$${FEDREPRO_WARM:-early}") $(SNAKEMAKE) $(WORDS) -- all
	@printf 'report: %s\n' $(call quote,$(CURDIR)/$(RESULTS)/report/index.html)

test: $(STAMP) lint ## run lint, unit and contract tests, and the smoke workflow
	@$(BIN)/python -m pytest -n "$${PYTEST_WORKERS:-2}" --dist worksteal $(WORDS)

test-slow: $(STAMP) ## run the tests with many repetitions (marked slow), such as 2,000 mutations of config files
	@$(BIN)/python -m pytest -m slow $(WORDS)

coverage: $(STAMP) ## run the tests with the lines and branches of src that they reach; fails below 90 % of the lines
	@rm -f .coverage .coverage.*
	@$(BIN)/python -m pytest -n "$${PYTEST_WORKERS:-2}" --dist worksteal --cov --cov-report= $(WORDS)
	@$(BIN)/python -m coverage report
	@$(BIN)/python -m tests.covered 90

lint: $(STAMP) ## check style, types, import layers, workflow files, and that notebooks have no outputs
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check --diff .
	@$(BIN)/lint-imports --no-cache >.lint.log 2>&1 || { cat .lint.log; rm -f .lint.log; exit 1; }
	@$(BIN)/mypy --no-error-summary --cache-dir=.mypy_cache
	@$(BIN)/snakefmt --check Snakefile workflow 2>.lint.log || { cat .lint.log; rm -f .lint.log; exit 1; }
	@$(BIN)/snakemake --lint >/dev/null 2>.lint.log || { cat .lint.log; rm -f .lint.log; exit 1; }
	@rm -f .lint.log
	@$(BIN)/nbstripout --verify notebooks/*.ipynb

format: $(STAMP) ## format with ruff and snakefmt, in place
	@$(BIN)/ruff check --quiet --fix . && $(BIN)/ruff format --quiet . && $(BIN)/snakefmt Snakefile workflow

plan: $(STAMP) ## show jobs, gradient steps, and estimates of time, GPU-hours and disk for the chosen scale
	@$(BIN)/fedrepro plan $(CONFIG)

explain: $(STAMP) ## run the other values of what the paper leaves open: which of them decides CLAIM=STUDY/CLAIM, within BUDGET=20min
	@$(BIN)/fedrepro explain $(call quote,$(CLAIM)) --budget $(call quote,$(BUDGET)) --profile $(call quote,$(PROFILE)) \
		$(if $(CORES),--cores $(call quote,$(CORES))) $(if $(DATA_DIR),--data-dir $(call quote,$(DATA_DIR))) $(WORDS)

data: $(STAMP) ## fetch and verify the real data sets (ONLY="mnist cifar10") into DATA_DIR, or into the cache
	@$(BIN)/python -m fedrepro.data.fetch $(if $(DATA_DIR),--to $(call quote,$(DATA_DIR))) $(WORDS) -- $(call quote,$(ONLY))

report: $(STAMP) ## rebuild the report from the existing results
	@$(SNAKEMAKE) --forcerun build_report $(WORDS) -- all

publish: $(STAMP) ## write the results of SCALE (of the studies ONLY) as a folder for an archive: results/publish/<scale>
	@$(BIN)/fedrepro publish $(WORDS) $(if $(STUDIES),--studies=$(call quote,$(STUDIES))) -- $(call quote,$(RESULTS)) $(if $(ONLY),$(call quote,$(ONLY)))

check-reference: $(STAMP) ## compare the results of a fresh run (of SCALE) with results/reference
	@$(BIN)/fedrepro reference check $(call quote,$(RESULTS))

docs: $(STAMP) ## build the documentation as pages into site/, with all links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@printf 'documentation: %s\n' $(call quote,$(CURDIR)/site/index.html)

$(BENCH_STAMP): $(STAMP) envs/bench.sh envs/bench.txt
	@sh envs/bench.sh $@

bench: $(BENCH_STAMP) ## benchmark the engine against pfl, Flower and bare PyTorch, its strategies, growth, study parts, data, and the last run of SCALE; into results/bench
	@.venv-bench/bin/python -m fedrepro.bench $(WORDS)
	@$(BIN)/python -m fedrepro.bench.strategies
	@$(BIN)/python -m fedrepro.bench.growth
	@$(BIN)/python -m fedrepro.bench.studies
	@[ ! -d $(call quote,$(RESULTS)/benchmarks) ] || $(BIN)/python -m fedrepro.bench.workflow $(call quote,$(RESULTS))
	@$(BIN)/python -m fedrepro.bench.data $(if $(DATA_DIR),$(call quote,$(DATA_DIR)))

lock: $(STAMP) ## resolve pyproject.toml into envs/requirements.lock again (needs uv)
	@uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --extra dev \
		--no-annotate --no-header --no-emit-index-url --generate-hashes --override envs/overrides.txt pyproject.toml -o envs/requirements.lock

sbom: $(STAMP) ## write a software bill of materials of the lock, with licences: results/sbom.cdx.json
	@mkdir -p results
	@$(BIN)/fedrepro bill >results/sbom.cdx.json
	@sed -n 's/.*"value": "\(.* of .* packages\)".*/bill of materials: results\/sbom.cdx.json, licences of \1/p' results/sbom.cdx.json

audit: $(STAMP) ## look up the packages of the lock in a database of known vulnerabilities (SERVICE=pypi|osv)
	@sh envs/audit.sh $(call quote,$(SERVICE))

clean: ## remove results (not results/reference), the built documentation and snakemake's records; keep .venv
	@find results -mindepth 1 -maxdepth 1 ! -name reference ! -name .gitkeep -exec rm -rf {} +
	@rm -rf .snakemake site
