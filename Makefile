# What people do with this tree every day. `make` alone lists it.

RELEASE := $(or $(CARGO_TARGET_DIR),target)/release/lockward
JOBS ?= 4
SEEDS ?= 1000
SECONDS ?= 60
CASES ?= 20000
MINUTES ?= 30
MODE ?= dedicated
# Which Redis and Valkey the tests use; scripts/get-server finds or fetches one when a target needs it.
REDIS = $$(scripts/get-server redis)
VALKEY = $$(scripts/get-server valkey)

.DEFAULT_GOAL := help
.PHONY: help run build test check wire clients transparency sharing limits contention shield million leaks prometheus packages deb kubernetes-rules page reload upgrade listeners storms conditions sentinel soak chaos baseline screenshots demo bench script-cost instructions sim model fuzz differential clean

help: ## list what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## start lockward on port 6380, with a server of its own behind it
	@scripts/get-server any >/dev/null
	exec $(RELEASE) --with-server

build: ## build the release program
	cargo build --release --locked

test: ## everything: unit and integration tests, scenarios, checks, client libraries, page, Prometheus, on Redis and Valkey
	scripts/test

check: ## the quick look before a commit: format, lints, tests
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	for package in model fuzz fuzz/differential; do \
		cargo fmt --check --manifest-path $$package/Cargo.toml || exit 1; \
		cargo clippy --locked --manifest-path $$package/Cargo.toml --all-targets -- -D warnings || exit 1; \
	done
	LOCKWARD_TEST_REDIS=$(REDIS) LOCKWARD_TEST_VALKEY=$(VALKEY) cargo test --locked

wire: build ## the wire scenarios on both servers
	tests/wire/run.py --jobs $(JOBS) --proxy $(RELEASE) --server $(REDIS)
	tests/wire/run.py --jobs $(JOBS) --proxy $(RELEASE) --server $(VALKEY)

clients: build ## redis-py, python-redis-lock, ioredis and redlock, directly and through lockward
	tests/clients/run.py --proxy $(RELEASE) --server $(REDIS)
	tests/clients/run.py --proxy $(RELEASE) --server $(VALKEY)

transparency: build ## the same bytes directly and through lockward
	tests/checks/transparency.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/transparency.py --proxy $(RELEASE) --server $(VALKEY)

sharing: build ## clients that share connections to the server see nothing of each other; scenarios and transparency so, too
	for server in $(REDIS) $(VALKEY); do \
		tests/checks/sharing.py --proxy $(RELEASE) --server $$server || exit 1; \
		tests/wire/run.py --mode shared --jobs $(JOBS) --proxy $(RELEASE) --server $$server || exit 1; \
		tests/checks/transparency.py --mode shared --proxy $(RELEASE) --server $$server || exit 1; \
	done

limits: build ## a crash with locks held, idle connections, clients that do not read
	tests/checks/limits.py --proxy $(RELEASE) --server $(REDIS)

contention: build ## 64 clients fight for one lock: what lockward shows against what they measured
	tests/checks/contention.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/contention.py --proxy $(RELEASE) --server $(VALKEY)

shield: build ## 64 of 10,000 clients spin on one lock: what reaches redis, and how soon a release is noticed
	tests/checks/shield.py --proxy $(RELEASE) --server $(REDIS)

million: build ## a million lock names: memory and series stay within their bounds
	tests/checks/million.py --proxy $(RELEASE) --server $(VALKEY)

leaks: build ## no token, password or value in anything that lockward shows
	tests/checks/leaks.py --proxy $(RELEASE) --server $(REDIS)

prometheus: build ## metrics, alert rules and dashboard, with promtool
	tests/prometheus/run.py --proxy $(RELEASE) --server $(REDIS) --promtool $$(scripts/get-tool promtool)

packages: build ## units, man pages, completions, schema, Debian package, image, manifests: each shown to its validator, and installed
	tests/packages/run.py --all --proxy $(RELEASE) --server $(REDIS)

deb: build ## the Debian package, in target/debian
	scripts/deb

kubernetes-rules: ## the PrometheusRule anew, out of deploy/prometheus/alerts.yml
	scripts/kubernetes-rules > deploy/kubernetes/monitoring/rules.yaml

page: build ## the live page in a headless Chromium
	tests/page/run.py --proxy $(RELEASE) --server $(REDIS)

reload: build ## other rules, limits and log level for a running lockward, under load
	tests/checks/reload.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/reload.py --mode shared --proxy $(RELEASE) --server $(VALKEY)

listeners: build ## several ways in, PROXY headers, the rights of unix sockets
	tests/checks/listeners.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/listeners.py --mode shared --proxy $(RELEASE) --server $(VALKEY)

upgrade: build ## drains, upgrades and pauses under load, without a request or a lock lost
	tests/checks/upgrade.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/upgrade.py --mode shared --proxy $(RELEASE) --server $(VALKEY)

storms: build ## limits on clients, no descriptor left, 2,000 clients that come back after a restart of the server
	tests/checks/storms.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/storms.py --mode shared --proxy $(RELEASE) --server $(VALKEY)

conditions: build ## a server that is restarted empty, loads, is a replica, is full
	tests/checks/conditions.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/conditions.py --mode shared --proxy $(RELEASE) --server $(VALKEY)

sentinel: build ## real sentinels: a failover that was asked for, a master that was killed, sentinels that are away or lie behind
	tests/checks/sentinel.py --proxy $(RELEASE) --server $(REDIS)
	tests/checks/sentinel.py --mode shared --proxy $(RELEASE) --server $(VALKEY)

soak: build ## half an hour of mixed traffic on 5,000 connections: memory and descriptors stay flat (MINUTES=N, MODE=shared)
	tests/checks/soak.py --verbose --minutes $(MINUTES) --mode $(MODE) --proxy $(RELEASE) --server $(REDIS)

chaos: build ## faults every two seconds, and a checker of what all clients saw (MINUTES=60, MODE=all, SEED=N, JOBS=1)
	tests/chaos/planted.py --proxy $(RELEASE) --server $(REDIS)
	tests/chaos/endings.py --proxy $(RELEASE) --server $(REDIS)
	tests/chaos/series.py --proxy $(RELEASE) --server $(REDIS) --server $(VALKEY) --faketime $$(scripts/get-tool faketime) \
		--minutes $(if $(filter file,$(origin MINUTES)),60,$(MINUTES)) \
		--jobs $(if $(filter file,$(origin JOBS)),1,$(JOBS)) --mode $(if $(filter file,$(origin MODE)),all,$(MODE)) $(if $(SEED),--seed $(SEED))

baseline: build ## legacy clients directly on the server, and the same through lockward
	tests/chaos/baseline.py --proxy $(RELEASE) --server $(REDIS) $(if $(SEED),--seed $(SEED))

screenshots: build ## the pictures in docs/images, from the running program
	scripts/screenshots --proxy $(RELEASE) --server $(REDIS)

demo: build ## the founding bug, on the server and through lockward
	@scripts/get-server any >/dev/null
	$(RELEASE) demo

bench: ## the benchmarks, and lockward beside a direct connection and other proxies
	LOCKWARD_TEST_REDIS=$(REDIS) cargo bench --locked
	scripts/bench

instructions: ## what a request costs in instructions, against what was written down
	tests/checks/instructions.py --server $(REDIS) --valgrind $$(scripts/get-tool valgrind)

script-cost: ## what lock operations cost the server, beside plain commands
	LOCKWARD_TEST_REDIS=$(REDIS) LOCKWARD_TEST_VALKEY=$(VALKEY) cargo bench --locked --profile dev --bench script_cost

sim: ## the simulator with more seeds: make sim SEEDS=5000
	SIM_SEEDS=$(SEEDS) cargo test --locked --release --test sim -- --nocapture

fuzz: ## every fuzz target for SECONDS=60, from the kept seeds; needs cargo-fuzz and a nightly compiler (docs/fuzzing.md)
	fuzz/run.py --seconds $(SECONDS)

differential: build ## the same bytes to a server and through lockward, right, wrong and broken ones: make differential CASES=1000000
	cargo build --release --locked --manifest-path fuzz/differential/Cargo.toml --target-dir fuzz/differential/target
	fuzz/differential/target/release/differential --cases $(CASES) --proxy $(RELEASE) --server $(REDIS) --server $(VALKEY)

model: ## the lock protocol explored exhaustively, and its mutants (QUICK=1: small bounds)
	cargo run --release --locked --manifest-path model/Cargo.toml -- $(if $(QUICK),--quick)

clean: ## remove what was built and fetched
	cargo clean
	rm -rf .cache
