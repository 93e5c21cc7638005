# memhost: `make run` shows the slot at work, `make test` tests it. Both need Go and nothing else.

GO         ?= go
PLUGINS    := $(GO) run ./internal/authoring/toolchain/cmd/plugins
GOLANGCI   := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
BENCHSTAT  := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
TARGETS    := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: help run test test-live walk backend build plugins check-plugins bootstrap generate check lint fuzz bench cross clean test-nanobot test-mcp test-gateway bench-short bench-docs bench-go

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "make %-14s %s\n", $$1, $$2}'

run: ## the slot at work: record a conversation, ask, swap the memory, serve
	@$(GO) run ./cmd/memhost demo

test: ## all tests that need Go alone, with the race detector where a C compiler exists
	@$(GO) run ./internal/testrun

test-live: ## the tests against a real backend, started here (BACKEND=mem0, memos, graphiti), or at HONCHO_URL (honcho); docs/live.md
	@case "$(BACKEND)" in mem0|memos|graphiti|honcho) ;; *) echo "make test-live BACKEND=mem0, memos, graphiti or honcho"; exit 2;; esac
	$(GO) test -tags live -count=1 -v -timeout 90m -run '^TestLive_$(BACKEND)(_|$$)' ./testenv/...

test-nanobot: ## the Nanobot integration, with the real nanobot-ai (Python 3.11; installs it into a cache folder; LIVE=1: with the real mem0, too)
	@integrations/nanobot/test $(if $(LIVE),-m 'live or not live')

test-mcp: ## the MCP door with the official Python and TypeScript clients, installed once into a cache folder (docs/mcp.md)
	$(GO) test -tags live -count=1 -v -timeout 10m -run '^TestLive_mcp$$' ./testenv/mcpclients/

test-gateway: ## a gateway's own tests, types and lint, against the real database and the stub, and its installation (GATEWAY=mem0, graphiti; docs/live.md)
	@test -f "gateways/$(GATEWAY)/pyproject.toml" || { echo "make test-gateway GATEWAY=name, where gateways/name is a folder"; exit 2; }
	$(GO) test -tags live -count=1 -v -timeout 30m -run '^TestGateway_$(GATEWAY)$$' ./testenv/

backend: ## a real backend to try out, until Ctrl-C (BACKEND=mem0, memos, memos:community, graphiti, ...; docs/live.md)
	@$(GO) run ./testenv/cmd/backend $(BACKEND)

walk: ## docs/new-plugin.md as it stands, in every language: wants TinyGo's packages, node and npm
	WALK=all $(GO) test -count=1 -timeout 20m -run '^TestWalk$$' ./cmd/memhost

build: ## the program, as bin/memhost
	$(GO) build -trimpath -o bin/memhost ./cmd/memhost

plugins: ## build the modules whose sources changed (TINYGO=path for development)
	@$(PLUGINS) build

check-plugins: ## rebuild every module and compare byte for byte
	@$(PLUGINS) check

bootstrap: ## the TinyGo toolchain, in a cache folder outside the tree
	@$(PLUGINS) bootstrap

generate: ## codecs from the contract's types
	$(GO) generate ./...

check: generate ## formatted, vetted, tidy, generated: and then the tree is as committed
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	@git diff --exit-code -- '*_gen.go' go.mod go.sum

lint: ## golangci-lint, built from its module
	GOLANGCI_LINT_CACHE=$(CURDIR)/bin/golangci-lint $(GO) run $(GOLANGCI) run ./...

fuzz: ## every fuzz test for a while (FUZZTIME=30s)
	@$(GO) run ./internal/testrun -fuzz $(or $(FUZZTIME),30s)

bench: build ## what the slot costs, each figure beside its baseline, and what differs from the run before (BENCHFLAGS, see memhost bench host --help)
	@if [ -f bin/bench.json ]; then mv bin/bench.json bin/bench-before.json; fi
	@bin/memhost bench host $(BENCHFLAGS) --out bin/bench.json $$(test ! -f bin/bench-before.json || echo --compare bin/bench-before.json)

bench-short: build ## the same in some seconds, to see that everything runs; its figures say nothing
	@bin/memhost bench host --short

bench-docs: build ## the figures, a million calls and a profile, written into docs/performance.md (half an hour, on an idle machine)
	@bin/memhost bench host --memory $(or $(CALLS),1000000) --profile 10s --out bin/bench.json
	@$(GO) run ./internal/bench/cmd/benchdocs bin/bench.json

bench-go: ## the Go benchmarks of all packages, with benchstat
	@$(GO) run ./internal/testrun -bench -benchstat $(BENCHSTAT)

cross: ## compile for every platform that is offered
	@for t in $(TARGETS); do echo "compile $$t"; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null ./cmd/memhost || exit 1; done

clean: ## what was built in the tree
	rm -rf bin
