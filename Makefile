# The verbs of this repository; CI calls "make test". "make help" lists them.
SHELL := /bin/bash
GO ?= go
FUZZTIME ?= 10s
BENCH ?= .
BENCHFLAGS ?=
TOOL := $(GO) tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help build test race lint fuzz bench bench-sim microbench interop interop-full nightly gen tidy cover clean

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## compile everything
	$(GO) build ./...

test: ## everything that must pass: judges, vet, all tests (the rest with the race detector), interop
	@scripts/test.sh all

race: ## all tests but interop, with the race detector, in random order
	@scripts/test.sh unit

interop: ## the tests against judges only
	@scripts/test.sh interop

interop-full: ## the same with the long matrices
	@VERBENA_INTEROP=full scripts/test.sh interop

lint: ## gofumpt and golangci-lint, pinned in tools/go.mod
	$(TOOL) golangci-lint run ./...

fuzz: ## every fuzz target for FUZZTIME (10s) each
	@scripts/fuzz.sh $(FUZZTIME)

bench: ## speed beside iperf3, TCP and bare UDP, in ratios; BENCHFLAGS='-only regexp -rounds n -gate …'
	@mkdir -p out
	$(GO) run ./test/bench -json out/bench.json $(BENCHFLAGS)

bench-sim: ## speed and memory of the simulator beside ns-3 and htsim; BENCHFLAGS='-only regexp -rounds n -gate …'
	@mkdir -p out
	$(GO) run ./test/benchsim -json out/bench-sim.json $(BENCHFLAGS)

microbench: ## Go's benchmarks; BENCH=regexp picks
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

nightly: ## what takes too long for every change
	@scripts/fuzz.sh 5m
	@VERBENA_INTEROP=full VERBENA_RUNS=10000 VERBENA_TEST_TIMEOUT=3h scripts/test.sh all

gen: ## regenerate generated files
	$(GO) generate ./...

tidy: ## go.mod, tools/go.mod and formatting
	$(GO) mod tidy
	cd tools && $(GO) mod tidy
	$(TOOL) golangci-lint fmt ./...

cover: ## coverage of the unit tests, as out/cover.html
	@mkdir -p out
	$(GO) test -coverprofile=out/cover.out $$($(GO) list ./... | grep -v /test/interop)
	$(GO) tool cover -html=out/cover.out -o out/cover.html
	@$(GO) tool cover -func=out/cover.out | tail -n 1

clean: ## remove what the verbs made here
	rm -rf out
