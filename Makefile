# memhost: `make run` shows the slot at work, `make test` tests it. Both need Go and nothing else.
# What is typed less often is a program in tools/, which says at its top what it does: tools/live mem0, tools/page test.

GO       ?= go
RELEASER := github.com/goreleaser/goreleaser/v2@v2.16.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
# The workflow of a new plugin (memhost new) is checked by this.
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.10
# RACE=-race tests with the race detector, which needs a C compiler; nothing else of the project does.
RACE     ?=

.PHONY: help run test test-all check lint generate plugins bench results results-check newest cluster release

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "make %-13s %s\n", $$1, $$2}'
	@echo "tools/ has the rest: live, backend, page, performance, plugins, stress, cross, fuzz, check-deploy"

run: ## the slot at work: record a conversation, ask, swap the memory, serve
	@test -x bin/memhost || echo "building bin/memhost; the first time this takes one to three minutes"
	@$(GO) build -o bin/memhost ./cmd/memhost
	@trap : INT; bin/memhost demo || test $$? -eq 130

test: ## the quick tests: go test ./... of every module
	@tools/tests $(RACE)

test-all: ## the tests with the race detector, then the long forms; wants a C compiler (half an hour)
	tools/tests -race
	tools/tests -race -long

check: generate ## formatted, vetted, tidy, generated: and then the tree is as committed (every module)
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags live ./internal/test/testenv/... ./cmd/memhost
	$(GO) mod tidy -diff
	$(GO) -C tools build ./...
	$(GO) -C tools vet ./...
	$(GO) -C tools vet -tags page ./pagetest
	$(GO) -C tools vet -tags release ./releasetest
	$(GO) -C tools vet -tags load ./loadtest
	$(GO) -C tools mod tidy -diff
	$(GO) -C integrations/picoclaw vet ./...
	$(GO) -C integrations/picoclaw mod tidy -diff
	for m in community/*/; do $(GO) -C $$m vet -tags live ./... || exit 1; done
	@git diff --exit-code -- '*_gen.go' go.mod go.sum tools/go.mod tools/go.sum

lint: export GOLANGCI_LINT_CACHE = $(CURDIR)/bin/golangci-lint
lint: ## golangci-lint, actionlint on the workflow of a new plugin, and phrases to read again in changed comments
	$(GO) run $(GOLANGCI) run ./...
	cd tools && $(GO) run $(GOLANGCI) run ./...
	cd integrations/picoclaw && $(GO) run $(GOLANGCI) run ./...
	for m in community/*/; do (cd $$m && $(GO) run $(GOLANGCI) run --build-tags live ./...) || exit 1; done
	$(GO) -C tools run ./plain
	@rm -rf bin/new && mkdir -p bin/new && $(GO) build -o bin/new/memhost ./cmd/memhost
	@bin/new/memhost new sample --memhost . --dir bin/new/go
	@bin/new/memhost new sample --lang assemblyscript --dir bin/new/assemblyscript
	$(GO) run $(ACTIONLINT) bin/new/*/.github/workflows/*.yml

generate: ## codecs and lists from the contract's types
	$(GO) generate ./...

plugins: ## build the modules whose sources changed
	@tools/plugins build

bench: ## what the slot costs, each figure beside its baseline and the run before (BENCHFLAGS=-short: seconds, -help)
	@$(GO) -C tools build -o $(CURDIR)/bin/ golang.org/x/perf/cmd/benchstat ./bench
	@if [ -f bin/bench.txt ]; then mv bin/bench.txt bin/bench-before.txt; fi
	@bin/bench $(BENCHFLAGS) -out bin/bench.txt
	@if [ -f bin/bench-before.txt ]; then bin/benchstat bin/bench-before.txt bin/bench.txt; fi

cluster: ## three hosts of one slot over PostgreSQL under faults, and the count at the end (TIME=2m; HA=1; POOLER=session)
	@tools/stress cluster

results: ## docs/results.md from nothing: what memories retrieve of LoCoMo, with real servers (three to four hours; it goes on where it was stopped; RESULTS='-only mem0', LOCOMO=FILE, HONCHO_SOURCE=DIR, MODEL_URL=URL)
	@$(GO) build -o bin/memhost ./cmd/memhost
	@$(GO) -C tools run ./results $(RESULTS)

results-check: ## docs/results.md computed again, offline, from its record and the run folders in bin/results
	@$(GO) build -o bin/memhost ./cmd/memhost
	@$(GO) -C tools run ./results -check

newest: ## how the backends' newest releases differ from those that memhost was checked against (NEWEST=-kit: and run kit and parity)
	@$(GO) -C tools run ./newest $(NEWEST)

release: ## bin/dist: archives for six platforms, deb and rpm, checksums, as GoReleaser makes them for a release
	COMMIT=$$(git rev-parse --short=12 HEAD) COMMIT_DATE=$$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd) \
		COMMIT_TIME=$$(git log -1 --format=%ct) $(GO) run $(RELEASER) release --snapshot --clean
