# Larder's commands; `make help` lists them. Those that few people run are in tools/more.mk. Everything they install is in
# this folder: .venv and .tools.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PORT ?= 3000
HOST ?= 127.0.0.1
DATA ?= .larder
ENV  ?= default
WORKERS ?= auto

# Always quoted in shell commands, because the folder's name may contain spaces.
export PATH := $(CURDIR)/.tools/uv/bin:$(PATH)
# Trust the operating system's certificates, such as a company proxy's; never download an interpreter.
export UV_SYSTEM_CERTS := 1
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := .venv
# Processes start twice as fast from compiled modules, and the local cloud starts many.
export UV_COMPILE_BYTECODE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export SAM_CLI_TELEMETRY := 0
unexport PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE VIRTUAL_ENV

WORKSPACE := uv.lock pyproject.toml layers/larder/pyproject.toml clients/cli/pyproject.toml clients/sidecar/pyproject.toml
# Marker files: the product and its local cloud; also the development tools; each separate tool.
SERVE_READY := .venv/.ready-to-serve
READY := .venv/.ready
UV := .tools/uv/.ready
SAM := .tools/sam/.ready
CHECKOV := .tools/checkov/.ready
EMULATOR := .tools/emulator/.ready
OIDC := .tools/oidc/.ready
COMPILERS := .tools/compilers/.ready

.PHONY: help
help:
	@awk -v use=" setup serve demo larder deploy smoke cost " 'BEGIN {FS = ":.*## "} \
		function wrapped(text,  words, i, n, line, all) { \
			n = split(text, words, " "); \
			for (i = 1; i <= n; i++) { \
				if (length(line " " words[i]) > 72) {all = all line sprintf("\n%27s", ""); line = words[i]} \
				else line = line (line ? " " : "") words[i]} \
			return all line} \
		/^[a-z0-9-]+:.*## / {group = FILENAME != "Makefile" ? 2 : index(use, " " $$1 " ") > 0; \
			lines[group] = lines[group] sprintf("  make %-19s %s\n", $$1, wrapped($$2))} \
		END {printf "Use Larder:\n%s\nDevelop Larder:\n%s", lines[1], lines[0]; \
			if (lines[2]) printf "\nLong proofs, benchmarks, releases:\n%s", lines[2]}' Makefile $(if $(ALL),tools/more.mk)
	@echo
	@$(if $(ALL),,echo "make help ALL=1 also lists long proofs, benchmarks and releases.")
	@echo "PYTHON=python3.12 chooses the interpreter (CPython 3.11 or newer). By default, the first suitable one is used."

.PHONY: setup
setup: $(READY) ## install everything for development (the other commands do it when needed)

.PHONY: serve
serve: $(SERVE_READY) ## run the local cloud: PORT=3000 DATA=.larder HOST=127.0.0.1; EDGE=1 adds the edge; PROVIDER=0 leaves out the test provider; RUNTIME=1 runs the output of `make build`, as Lambda does; THROTTLE=2000/5000 and CONCURRENCY=10 refuse requests as AWS does; EXTENSIONS=company.larder PYTHONPATH=folder adds functions of your own
	@$(if $(EXTENSIONS),LARDER_EXTENSIONS="$(EXTENSIONS)" PYTHONPATH="$(PYTHONPATH)") PORT="$(PORT)" HOST="$(HOST)" DATA="$(DATA)" RUNTIME="$(RUNTIME)" EDGE="$(EDGE)" PROVIDER="$(PROVIDER)" THROTTLE="$(THROTTLE)" CONCURRENCY="$(CONCURRENCY)" exec .venv/bin/python -m local serve

.PHONY: demo
demo: $(SERVE_READY) ## build a sample monorepo twice with turbo, the second time from the cache, and sign in with a company
	@exec .venv/bin/python -m local demo

.PHONY: larder
larder: $(SERVE_READY) ## run the operator's command on the local cloud: ARGS="--help" DATA=.larder
	@exec .venv/bin/larder --local "$(DATA)" $(or $(ARGS),--help)

.PHONY: test
test: $(READY) ## run the tests that need no build and no npm: ARGS="-k name" WORKERS=auto; AWS_CLIENT=boto3 runs them with boto3 for all calls
	@LARDER_AWS_CLIENT="$(AWS_CLIENT)" .venv/bin/python -m pytest -n $(WORKERS) --quick $(or $(ARGS),--unused-permissions)

# What .ci/run runs: one of each kind of client.
SHORT_E2E := $(patsubst %,tests/e2e/test_%.py,account_client api_key_client browser newest_turbo)

# Only the folders that have such tests, because collecting all others takes each worker longer than most tests.
.PHONY: e2e
e2e: FOLDERS := tests/cli tests/deployed tests/e2e tests/functions tests/larder tests/local tests/machines tests/owasp tests/proofs tests/proxy tests/sso tests/tools tests/upgrades
e2e: $(READY) $(OIDC) $(if $(SHORT),,$(COMPILERS)) ## run the long tests: npm's turbo clients, a browser, crashes, load (needs node, npm, chromium and chromium-driver); SHORT=1 a part of them
	@.venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -o testpaths="$(if $(SHORT),$(SHORT_E2E),$(FOLDERS))" \
		-m "(slow or e2e) and not thorough" $(ARGS)

.PHONY: proofs
proofs: build $(READY) $(OIDC) $(COMPILERS) ## run the crash and load tests and generated requests at full length, 50 builds at once, every cell of docs/compatibility.md, every cause of `larder why` with four versions of turbo, every fault of the local edge, and accessibility in every view of the console (about 50 minutes; needs Java 17)
	@MACHINE_ROUNDS=60 .venv/bin/python -m pytest -n $(WORKERS) -o faulthandler_timeout=0 tests/machines tests/larder/aws/test_alike.py tests/proxy/test_states.py $(ARGS)
	@KILL_POINTS=50 API_EXAMPLES=100 COUNTED_CHANGES=1000 PARALLEL_ROUNDS=6 PUBLISHED_ROUNDS=50 TIMING_ROUNDS=40 USES_IN_A_ROW=2000 OVERLAP_SEEDS=2 HOSTILE=all DELETE_RACES=30 EXCHANGE_ATTACKS=10000 PASSING_MB=2000 \
		.venv/bin/python -m pytest tests/owasp/test_generated_input.py tests/owasp/test_hostile_input.py tests/proofs $(ARGS)
	@.venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -o faulthandler_timeout=0 --ignore tests/proofs \
		--ignore tests/e2e/test_turbo_sidecar_at_scale.py -m thorough $(ARGS)
	@ENGINE=dynamodb-local .venv/bin/python -m pytest tests/proofs/test_refused_by_dynamodb.py $(ARGS)
	@WHY_VERSIONS=all WHY_MIXTURES=100 .venv/bin/python -m pytest -o faulthandler_timeout=0 tests/e2e/test_why.py tests/e2e/test_why_fix.py tests/e2e/test_why_reports.py $(ARGS)
	@TURBO_JOBS=50 CLIENT_MATRIX=full EDGE_PROOFS=all .venv/bin/python -m pytest -o faulthandler_timeout=0 tests/e2e/test_throttled.py tests/e2e/test_client_matrix.py \
		tests/e2e/test_edge.py tests/e2e/test_edge_command.py \
		tests/e2e/test_turbo_sidecar_at_scale.py $(ARGS)
	@CONSOLE_LOOKS=all .venv/bin/python -m pytest tests/e2e/test_console_views.py -k "accessible or words" $(ARGS)

.PHONY: cost
cost: $(SERVE_READY) ## estimate the monthly cost: ARGS="--engineers 20 --large 5MB"
	@.venv/bin/python -m tools.cost $(ARGS)

.PHONY: generate
generate: $(READY) ## update everything generated from the code: parts of template.yaml and docs/, events/, the OpenAPI document
	@.venv/bin/python -m tools.generate

.PHONY: lines
lines: ## count the lines by hand and the generated ones
	@python3 tools/lines.py

# Run separately, because either takes one core half a minute: `make -j2 check`.
.PHONY: check
check: check-code check-template ## check lint, format, types, import contracts, words, the template, that generated files are up to date, and that an upgrade keeps the data

.PHONY: check-code
check-code: $(READY)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	PYTHONPATH=functions .venv/bin/lint-imports
	.venv/bin/codespell
	.venv/bin/python -m tools.generate --check
	.venv/bin/python -m tools.data_resources

# cfn-lint's rules on what SAM makes of the template, and checkov's with every exception explained.
.PHONY: check-template
check-template: $(READY) $(SAM) $(CHECKOV)
	@.venv/bin/python -m tools.check_template

.PHONY: format
format: $(READY) ## apply the formatter and the linter's safe fixes
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# SAM accepts an environment that is not in samconfig.toml, and then lacks options. Many shells already set ENV.
.PHONY: known-environment
known-environment:
	@names=$$(sed -n 's/^\[\([^].]*\)\..*/\1/p' samconfig.toml | sort -u); \
	echo "$$names" | grep -qxF -- "$(ENV)" || { \
		echo "samconfig.toml has no environment \"$(ENV)\": $$(echo $$names | sed 's/ /, /g')" >&2; exit 2; }

# SAM looks for python3.13 on PATH and rejects a shim of another version, so the real folder comes first. `validate` needs
# a region although it calls no service.
ON_LAMBDAS_PYTHON = python=$$(tools/find-python 3.13) && PATH="$$(dirname "$$python"):$$PATH" \
	AWS_DEFAULT_REGION="$${AWS_DEFAULT_REGION:-us-east-1}" .tools/sam/bin/sam
.PHONY: build
build: known-environment $(SAM) ## validate the template and build layer and functions for Lambda (needs python3.13)
	@$(ON_LAMBDAS_PYTHON) validate --lint --config-env "$(ENV)"
	@$(ON_LAMBDAS_PYTHON) build --config-env "$(ENV)"

.PHONY: unchecked-build
unchecked-build: known-environment $(SAM)
	@$(ON_LAMBDAS_PYTHON) build --config-env "$(ENV)"

.PHONY: test-build
test-build: FOLDERS := tests/build tests/local
test-build: unchecked-build $(READY) $(CHECKOV) ## build, then import every built handler and run it under AWS's runtime client
	@.venv/bin/python -m pytest -n 2 --dist loadfile -o testpaths="$(FOLDERS)" -m "build and not thorough" $(ARGS)

# Each file gets a new emulator and deployment, because tests count stored items. They run one after the other, because each needs two cores.
DEPLOYED := tests/deployed tests/e2e/test_client_matrix.py tests/e2e/test_account_client.py tests/e2e/test_api_key_client.py \
	tests/e2e/test_link_and_logout.py tests/e2e/test_login.py tests/e2e/test_smoke.py

.PHONY: deployed
deployed: export CLOUD := deployed
deployed: build $(READY) $(EMULATOR) ## deploy the build to an emulator and run the end-to-end tests on it (about ten minutes; same requirements as e2e): ARGS="-k smoke"
	@.venv/bin/python -m pytest -v --durations=5 $(DEPLOYED) $(ARGS)

.PHONY: bench
bench: build $(READY) ## compare Larder with turborepo-remote-cache and Better Auth, and update docs/benchmarks.md (about five minutes; needs node, npm and python3.13)
	@.venv/bin/python -m tools.benchmarks $(ARGS)

.PHONY: deploy
deploy: known-environment $(READY) $(SAM) ## build, then deploy to AWS with the settings of samconfig.toml: ENV=default or ENV=prod, ARGS="--help"
	@.venv/bin/python -m tools.deploy --env "$(ENV)" $(ARGS)

# The key is passed by a variable, because other users of the machine can see the command line.
.PHONY: smoke
smoke: $(SERVE_READY) ## check a live deployment end to end, and its edge if clients use one: URL=https://... KEY=... [TEAM=slug] [STACK=name, to check its log]
	@TURBO_API="$(URL)" TURBO_TOKEN="$(KEY)" TURBO_TEAM="$(TEAM)" LARDER_STACK="$(STACK)" LARDER_LOCAL="" .venv/bin/larder smoke $(ARGS)

include tools/more.mk

.PHONY: clean
clean: ## delete everything installed or built; the local cloud's data stays
	rm -rf .venv .tools .aws-sam .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Marker files that record what is installed. They are renewed when their dependencies change.

# The interpreter: the one that PYTHON names, else the last one used, else the first suitable one.
.tools/interpreter: FORCE
	@mkdir -p .tools; \
	if [ -n "$(PYTHON)" ] || ! [ -x "$$(cat $@ 2>/dev/null)" ]; then \
		found=$$(tools/find-python 3.11+ "$(PYTHON)") || exit 1; \
		[ "$$found" = "$$(cat $@ 2>/dev/null)" ] || echo "$$found" > $@; \
	fi

$(UV): tools/uv-requirements.txt | .tools/interpreter
	@echo "Setting up (the first time only) ..."
	@"$$(cat .tools/interpreter)" -m venv --clear .tools/uv
	@.tools/uv/bin/python -m pip install --quiet --require-hashes --only-binary :all: -r tools/uv-requirements.txt
	@touch $@

$(SERVE_READY): $(WORKSPACE) .tools/interpreter $(UV)
	@uv sync --quiet --locked --inexact --no-default-groups --group local --python "$$(cat .tools/interpreter)"
	@touch $@

$(READY): $(SERVE_READY)
	@uv sync --quiet --locked --python "$$(cat .tools/interpreter)"
	@touch $@

# Programs with packages of their own. The emulator gets Lambda's version of Python, because it runs the functions.
.tools/emulator/.ready: FIND_PYTHON := tools/find-python 3.13
.tools/%/.ready: tools/uv.lock tools/pyproject.toml $(UV)
	@echo "Installing $* (the first time only) ..."
	@python=$$($(or $(FIND_PYTHON),cat .tools/interpreter)) && \
		UV_PROJECT_ENVIRONMENT="$(CURDIR)/.tools/$*" uv sync --quiet --locked --project tools --only-group $* --python "$$python"
	@touch $@

.PHONY: FORCE
FORCE:
