# Commands that few people run, or only machines. `make help ALL=1` lists them, too. The Makefile includes this file.

# Long proofs.

# Only the folders whose tests use tables.
.PHONY: test-dynamodb-local
test-dynamodb-local: TESTS := tests/larder tests/functions tests/cli tests/proofs
test-dynamodb-local: export ENGINE := dynamodb-local
test-dynamodb-local: $(READY) ## run the tests that use tables, on AWS's DynamoDB Local (about 20 minutes; needs Java 17 and npm)
	@.venv/bin/python -m pytest -n $(WORKERS) --quick $(TESTS) $(ARGS)
	@.venv/bin/python -m pytest -m "slow and not build and not e2e" $(TESTS) $(ARGS)

.PHONY: seeded
seeded: $(READY) ## apply each seeded bug of tests/seeded to a copy, and run the tests that should catch it (about 15 minutes): ARGS="--only NAME", "--all" runs all of `make test` for each
	@.venv/bin/python -m tests.seeded $(ARGS)

.PHONY: faults
faults: $(READY) ## test every fault at every AWS call of every request (about three minutes): ARGS="-k api-key/create"
	@ALL_FAULTS=1 .venv/bin/python -m pytest -n $(WORKERS) tests/proofs/test_faults.py $(ARGS)

.PHONY: capacity
capacity: $(READY) ## measure each request's use of the tables, with 100 and with 100,000 stored items of each kind (about 10 minutes; needs Java 17 and npm)
	@ENGINE=dynamodb-local GROWTH_ITEMS="$${GROWTH_ITEMS:-100000}" .venv/bin/python -m pytest -o faulthandler_timeout=0 tests/proofs/test_growth.py tests/proofs/test_capacity.py $(ARGS)

# hypothesis keeps small objects between the large bodies, and glibc would not free the memory in between.
.PHONY: fuzz
fuzz: export MALLOC_MMAP_THRESHOLD_ := 1000000
fuzz: $(READY) ## send many generated requests to the handlers: API_EXAMPLES=500 to each operation, FUZZ_SEED=0
	@API_EXAMPLES="$${API_EXAMPLES:-500}" .venv/bin/python -m pytest -n 2 -o faulthandler_timeout=0 tests/owasp/test_generated_input.py $(ARGS)

.PHONY: console-proof
console-proof: $(READY) ## page through 100,000 artifacts in the console's lists, and draw a year of data (about five minutes; needs chromium, node, npm and Java 17)
	@ENGINE=dynamodb-local CONSOLE_ARTIFACTS=100000 .venv/bin/python -m pytest -s -n 0 -o faulthandler_timeout=0 tests/e2e/test_console_views.py -k "year_of_data or without_slowing" $(ARGS)

.PHONY: sidecar-proof
sidecar-proof: $(READY) $(COMPILERS) ## run `larder run` with real tools in every arrangement, and print a table (about 20 minutes; needs node, npm and gcc; more rows with root, faketime, gradle, bazel, cargo)
	@.venv/bin/python -m tests.e2e.sidecar_table -n $(WORKERS) -o faulthandler_timeout=0 $(ARGS)

.PHONY: sam-local
sam-local: $(READY) $(SAM) ## run every event of events/ with `sam local invoke` on the build and a running `make serve` (needs Docker): ARGS="get_status" DATA=.larder
	@.venv/bin/python -m tools.sam_local "$(DATA)" $(ARGS)

# Benchmarks, and pages that a run writes.

.PHONY: bench-cold
bench-cold: build $(READY) ## build, then measure how fast every function starts and responds: ARGS="--rounds 7 --write docs/benchmarks-cold.md get_status"
	@.venv/bin/python -m tools.benchmarks.cold $(ARGS)

.PHONY: bench-deployed
bench-deployed: $(READY) ## restore with real turbo over a model of the network and of AWS, and update docs/benchmarks-deployed.md (13 minutes; needs node and npm); QUICK=1 prints a part of it (3 minutes)
	@.venv/bin/python -m tools.benchmarks.deployed $(if $(QUICK),--rounds 1 --mixed 0 --packages 300,--write docs/benchmarks-deployed.md) $(ARGS)

.PHONY: compatibility
compatibility: $(READY) $(COMPILERS) ## update docs/compatibility.md from a run of the client matrix, without and with the edge, and of other build tools
	@CLIENT_MATRIX=full .venv/bin/python -m pytest -n 2 -o faulthandler_timeout=0 --write-compatibility tests/e2e/test_client_matrix.py tests/e2e/test_edge.py \
		tests/e2e/test_build_tool_matrix.py $(ARGS)

.PHONY: screenshots
screenshots: $(READY) ## take the pictures of the console in docs/console/ from a seeded local cloud (needs chromium and chromium-driver)
	@.venv/bin/python -m tests.e2e.screenshots

.PHONY: recording
recording: $(SERVE_READY) ## record `make demo` as docs/demo.svg, the README's picture (needs node and npm)
	@.venv/bin/python -m tools.recording

# Changes of the template and of what is installed.

.PHONY: template-diff
template-diff: $(READY) ## show what deploying template.yaml would change: BASE=main (descriptions are listed separately)
	@.venv/bin/python -m tools.template_diff "$(or $(BASE),main)"

.PHONY: lock
lock: $(UV) ## update the lock files of the tools (for uv.lock: uv lock)
	uv lock --upgrade --project tools
	cd tools && uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" \
		uv-requirements.in --output-file uv-requirements.txt
	for folder in dynamodb-local console; do \
		(cd tools/$$folder && npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error) || exit; \
	done

.PHONY: vendor-console
vendor-console: $(READY) ## bundle the console's libraries after a change in tools/console (needs node and npm)
	@.venv/bin/python -m tools.vendor_console

.PHONY: edge-tools
edge-tools: $(SERVE_READY) ## install what `larder edge` needs on a stack: AWS's runtime, for SigV4A
	@uv sync --quiet --locked --inexact --no-default-groups --group local --group edge --python "$$(cat .tools/interpreter)"

# Releases.

.PHONY: record-release
record-release: $(READY) $(SAM) ## record the data of this version for the upgrade tests of later versions (once per release)
	@.venv/bin/python -m pytest -q --record-release tests/upgrades/test_reading.py -k recorded $(ARGS)
	@.venv/bin/python -m tools.data_resources --record
	@.venv/bin/python -m tools.release.record_types

.PHONY: package
package: unchecked-build $(SERVE_READY) ## build a release in dist/larder-<version>: plain template, archives, checksums, bill of materials (needs python3.13, because Lambda's byte code is its)
	@.venv/bin/python -m tools.release.package

.PHONY: wheel
wheel: package ## build the wheel larder-cache in dist/: the command `larder` with the release inside
	@.venv/bin/python -m tools.release.wheel

.PHONY: reproducible
reproducible: build $(READY) ## check that two clones of the last commit give the same release (2 minutes)
	@CLONES=1 .venv/bin/python -m pytest -o faulthandler_timeout=0 tests/build/test_release.py -k clones $(ARGS)

.PHONY: rehearse-release
rehearse-release: wheel ## pack the next release twice, compare both, verify the wheel and show the notes; publishes nothing
	@.venv/bin/python -m tools.release.rehearse

.PHONY: release
release: $(READY) ## check that this version can be released, run the tests without npm, and package it (CONTRIBUTING.md lists the steps)
	@.venv/bin/python -m tools.release.check
	@$(MAKE) --no-print-directory test check test-build reproducible wheel
	@.venv/bin/python -m tools.release.assets
