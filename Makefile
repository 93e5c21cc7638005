# memhost: `make run` shows the slot at work, `make test` tests it. Both need Go and nothing else.

GO         ?= go
PLUGINS    := $(GO) run ./internal/authoring/toolchain/cmd/plugins
RELEASER   := github.com/goreleaser/goreleaser/v2@v2.16.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.10
GOLANGCI   := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
# RACE=-race tests with the race detector, which needs a C compiler; nothing else of the project does.
RACE       ?=
# Each operating system and each processor once; a release compiles all six.
TARGETS    := linux/amd64 linux/arm64 darwin/arm64 windows/amd64

.PHONY: help run page check-page cluster fill test-cluster load many soak check-deploy test test-all test-long test-hostile tools test-live test-lab test-page test-eval-kill walk backend build plugins check-plugins bootstrap generate check licences lint vulncheck fuzz bench cross release-snapshot test-release image clean test-nanobot test-python test-typescript test-mcp test-agents test-registry test-gateway bench-short bench-docs bench-go

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "make %-14s %s\n", $$1, $$2}'

run: ## the slot at work: record a conversation, ask, swap the memory, serve
	@test -x bin/memhost || echo "building bin/memhost; the first time this takes one to three minutes"
	@$(GO) build -o bin/memhost ./cmd/memhost
	@trap : INT; bin/memhost demo || test $$? -eq 130

# Each run of gotestsum adds a line of its counts to bin/tests.txt, in the folder that `make` runs in.
export TESTS_FILE := $(CURDIR)/bin/tests.txt
GOTESTSUM := --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped \
	--post-run-command 'sh -c "echo $$TESTS_TOTAL $$TESTS_FAILED $$TESTS_SKIPPED $$TESTS_ERRORS >>\"$$TESTS_FILE\""'

# Tests wait for timers and servers, so more of them run than there are cores. Without debug data a test links faster.
TESTFLAGS = -timeout 30m -ldflags=-w -p $(TESTS_AT_ONCE) -parallel $(TESTS_AT_ONCE)
TESTS_AT_ONCE ?= 4
# A program with the race detector otherwise waits a second before it ends.
export GORACE ?= atexit_sleep_ms=0
# What has one thread: guests, and what computes without goroutines. make test-long has it with the race detector.
ONE_THREAD := ./abi/... ./sdk/... ./plugins/... ./examples/... ./internal/test/compat ./internal/engine/... ./internal/text/... \
	./internal/configuration/... ./internal/authoring/... ./internal/test/fakes/... ./internal/signing \
	./eval/build ./eval/lab ./eval/pack ./eval/stats
# The longest come first, so that none of them runs alone at the end.
THREADS = ./host ./cmd/memhost $$($(GO) list ./... | grep -vxF "$$($(GO) list $(ONE_THREAD))")

test: tools ## all tests that need Go alone, in their short form (make test-all: long, and with the race detector)
	@echo "each package is printed when it is done; some minutes on two cores, more the first time"
	@echo "left to make test-all: the race detector, long forms (CONTRIBUTING.md lists them), and real servers and programs"
	@began=$$(date +%s); code=0; : >bin/tests.txt; $(MAKE) -s -k -j2 test-threads test-others || code=1; \
	awk -v s=$$(($$(date +%s)-began)) '{t+=$$1; f+=$$2; k+=$$3; e+=$$4} END {printf "\nTotal: %d tests, %d failed, %d skipped, " \
		"%d build errors, in %d min %02d s\n", t, f, k, e, s/60, s%60}' bin/tests.txt; exit $$code

test-threads: # the longer half of make test
	@bin/gotestsum $(GOTESTSUM) -- $(TESTFLAGS) $(if $(RACE),$(RACE) $(THREADS),./...)

# It ends long before the first half, and is to leave that one the processors.
test-others: TESTS_AT_ONCE = 2
test-others: # the other half: one thread, the tools, and the module for PicoClaw
	@code=0; \
	$(if $(RACE),bin/gotestsum $(GOTESTSUM) -- $(TESTFLAGS) -short $(ONE_THREAD) || code=1;) \
	(cd tools && ../bin/gotestsum $(GOTESTSUM) -- $(TESTFLAGS) $(if $(RACE),-short) ./...) || code=1; \
	(cd integrations/picoclaw && ../../bin/gotestsum $(GOTESTSUM) -- $(TESTFLAGS) $(RACE) ./...) || code=1; \
	exit $$code

test-all: ## the tests with the race detector, then the long forms; wants a C compiler (half an hour)
	$(MAKE) test RACE=-race
	$(MAKE) test-long RACE=-race

tools: # gotestsum and benchstat, in the versions of tools/go.mod, and the benchmarks
	@$(GO) -C tools build -o $(CURDIR)/bin/ gotest.tools/gotestsum golang.org/x/perf/cmd/benchstat ./bench

test-long: export TESTS = long
test-long: ## the long forms that make test leaves out (CONTRIBUTING.md lists them; RACE=-race: with the race detector, too)
	$(if $(RACE),$(GO) test $(TESTFLAGS) $(RACE) -short -count=1 $(ONE_THREAD))
	$(GO) test -count=1 -run 'Crashes|Killed|SwapUnderLoad|BadShadow|ManyEvents' ./host
	$(GO) test -count=1 -run 'Kill|Flipped' ./internal/state ./internal/state/postgres
	$(GO) test -count=1 ./internal/engine/meter
	$(GO) test -count=1 -run '^TestMutated' ./host/internal/guest
	$(GO) test -count=1 -run '^TestEachFault' ./conformance
	$(GO) test -count=1 -run 'TwoThousandProbes|AResumedRun|OrderChanges' ./eval/score
	$(if $(RACE),SCRIPTS_RACE=1 $(GO) test $(RACE) -count=1 -timeout 30m -parallel $(TESTS_AT_ONCE) -run '^TestScripts$$|KilledEvaluation|DocsEval|TheConversation' ./cmd/memhost)
	$(GO) test -count=1 -run 'KilledEvaluation|LocalLab|TheConversation|^TestAFill' ./cmd/memhost
	$(GO) test -count=1 -parallel $(TESTS_AT_ONCE) -run '^TestConformance|S13|ChecksOfAll' ./plugins/...
	$(GO) test -count=1 -parallel $(TESTS_AT_ONCE) -run '^TestOld' ./internal/test/compat

HOSTILE := Hostile|Indent|Refused|Refuses|Never|Forged|Forges|Escap|Secret|Redact|Echo|Override|Header|Origin|Token|Guard|Wall|ReadOnly|Route|Metered|Bound|Table
test-hostile: ## what hostile modules, routes, headers, bodies and texts try, and what holds them (a part of make test)
	$(GO) test -count=1 -run '$(HOSTILE)' ./host/... ./sdk/... ./abi/... ./internal/base/address ./internal/doors/server ./internal/doors/mcpdoor ./internal/engine/... ./internal/state \
		./plugins/conditions/full_history

test-live: ## the tests against a real backend, started here (BACKEND=mem0, memos, graphiti), or at HONCHO_URL (honcho); docs/live.md
	@case "$(BACKEND)" in mem0|memos|graphiti|honcho) ;; *) echo "make test-live BACKEND=mem0, memos, graphiti or honcho"; exit 2;; esac
	$(GO) test -tags live -count=1 -v -timeout 90m -run '^TestLive_$(BACKEND)(_|$$)' ./internal/test/testenv/...

test-lab: ## examples/lab/mem0.yaml with the real mem0, on a small made-up pack (docs/eval.md)
	$(GO) test -tags live -count=1 -v -timeout 30m -run '^TestLab_mem0$$' ./internal/test/testenv/

test-nanobot: ## the Nanobot integration, with the real nanobot-ai (Python 3.11; installs it into a cache folder; LIVE=1: with the real mem0, too)
	@integrations/nanobot/test $(if $(LIVE),-m 'live or not live')

test-python: ## LangChain, Google ADK and the OpenAI Agents SDK with a slot as their memory (Python 3.11; installs them into a cache folder)
	@integrations/python/test

test-typescript: ## the TypeScript client, the Vercel AI SDK, pi, and OpenClaw's and OpenCode's plugins with a slot as their memory (installs Node.js 22, the SDK and pi into a cache folder)
	@integrations/typescript/test

test-mcp: ## the MCP door with the official Python and TypeScript clients and the conformance suite, installed once into a cache folder (docs/mcp.md)
	$(GO) test -tags live -count=1 -v -timeout 10m -run '^TestLive_mcp' ./internal/test/testenv/mcpclients/

test-registry: ## modules in registries with crane, oras, cosign and the CNCF's registry (builds them once into a cache folder: ten minutes)
	$(GO) test -tags live -count=1 -v -timeout 40m -run '^TestLive_registry' ./internal/test/testenv/registryclients/

test-agents: ## the real Claude Code, Codex, OpenClaw and OpenCode with a stub model, in network namespaces of their own (1.9 GB of npm packages into a cache folder; not in .ci/run)
	$(GO) test -tags live -count=1 -v -timeout 60m -run '^TestLive_' ./internal/test/testenv/agents/

test-gateway: ## a gateway's own tests, types and lint, against the real database and the stub, and its installation (GATEWAY=mem0, graphiti; docs/live.md)
	@test -f "gateways/$(GATEWAY)/pyproject.toml" || { echo "make test-gateway GATEWAY=name, where gateways/name is a folder"; exit 2; }
	$(GO) test -tags live -count=1 -v -timeout 30m -run '^TestGateway_$(GATEWAY)$$' ./internal/test/testenv/

test-page: web/node_modules ## the slot's page and the evaluation's report in a real Chromium, by keyboard and screen reader rules, with hostile text (installs Debian's Chromium, and axe-core from npm; writes pictures of the views into bin/page)
	@command -v chromium >/dev/null || { echo "installing Debian's Chromium"; apt-get update -q && apt-get install -yq --no-install-recommends chromium; }
	cd tools && AXE=$(CURDIR)/web/node_modules/axe-core/axe.min.js $(GO) test -tags page -count=1 -timeout 20m ./pagetest

# The page's sources are in web, and what is built of them is committed: make run and make test need Go alone. The same
# lockfile and any Node give the same bytes.
web/node_modules: web/package.json web/package-lock.json
	@command -v npm >/dev/null || { echo "building the page wants Node 20 or later, with npm"; exit 1; }
	cd web && npm ci --ignore-scripts --no-audit --no-fund --silent && touch node_modules

page: web/node_modules ## the slot's page, from web into internal/doors/page/assets, with its types checked (wants Node 20 with npm)
	cd web && npm run --silent types && npm run --silent check && npm run --silent build

check-page: page ## build the page anew and compare byte for byte
	@test -z "$$(git status --porcelain -- internal/doors/page/assets)" || { git status --short -- internal/doors/page/assets; \
		echo "internal/doors/page/assets is not what web gives: run make page, and commit it"; exit 1; }

test-eval-kill: ## an evaluation killed with -9 at random moments and resumed (KILLS=50): the same metrics.json
	KILLS=$(or $(KILLS),50) $(GO) test -count=1 -v -timeout 30m -run '^TestAKilledEvaluation' ./cmd/memhost

# What grep leaves of a test's output does not decide: a test that fails fails the target.
cluster fill: SHELL := bash
cluster fill: .SHELLFLAGS := -o pipefail -c

# With HA=1 over three nodes of PostgreSQL under Patroni, which is installed into PATRONI first (Debian's etcd, PyPI): a
# path that every user may read, as PostgreSQL and Patroni refuse root.
PATRONI := /tmp/memhost-patroni
cluster: ## three hosts of one slot over PostgreSQL (Debian's, in a scratch folder), with faults under load before your eyes, and the count at the end (TIME=2m; HA=1: three nodes under Patroni; POOLER=session or transaction: behind Debian's PgBouncer, installed here, which is killed and stopped, too)
	@if [ -n "$(POOLER)" ]; then command -v pgbouncer >/dev/null || { echo "installing Debian's PgBouncer"; apt-get update -q && apt-get install -yq --no-install-recommends pgbouncer; }; fi
	@if [ -n "$(HA)" ]; then internal/test/patroni/install.sh $(PATRONI); fi
	MEMHOST_CLUSTER_TIME=$(or $(TIME),2m) MEMHOST_CLUSTER_HA=$(if $(HA),$(PATRONI)) MEMHOST_CLUSTER_POOLER=$(POOLER) $(GO) test -count=1 -v -timeout 180m -run '^Test(HostsOfOneSlot|ADeadHosts)' ./cmd/memhost | grep -E 'cluster[a-z]*_test.go|patroni.go|etcd.go|^ +(scope|then|no place|log:)|^(---|ok|FAIL|PASS)'

test-cluster: ## the long run of make cluster HA=1 (TIME=20m)
	$(MAKE) cluster HA=1 TIME=$(or $(TIME),20m)

fill: ## local memories filled from an archive of EVENTS while the slot is killed with -9 again and again, each counted in the end (EVENTS=100000 KILLS=20 PEOPLE=100 MEMORY=bm25; FROM=file: from a file; MEMORY=mem0: the real one, killed too)
	MEMHOST_FILL_EVENTS=$(or $(EVENTS),100000) MEMHOST_FILL_KILLS=$(KILLS) MEMHOST_FILL_PEOPLE=$(PEOPLE) MEMHOST_FILL_MEMORY=$(MEMORY) \
		$(GO) test $(if $(filter mem0,$(MEMORY)),-tags live -run '^TestLive_fill_mem0',-run '^TestAFill$(if $(filter file,$(FROM)),FromAFile)ThatIsKilled') \
		-count=1 -v -timeout 120m ./cmd/memhost | grep -E 'fill(file)?_test.go|^ *(---|ok|FAIL|PASS)'

load: ## record and retrieve for 10,000 people at given rates: one host on a file, one and three over PostgreSQL, as ratios (TIME=4m; COMMIT=1: by synchronous_commit, and NOTIFY; writes bin/load, docs/cluster.md)
	cd tools && LOAD_TIME=$(or $(TIME),4m) LOAD_OUT=$(CURDIR)/bin/load $(GO) test -tags load -count=1 -v -timeout 120m -run '^Test$(if $(COMMIT),(SynchronousCommit|Notify),Load)$$' ./loadtest

many: ## a million events of 10,000 people over PostgreSQL: tables, vacuum, a host's memory, times at the begin and at the end (EVENTS=1000000; writes bin/many, docs/cluster.md)
	cd tools && MANY_EVENTS=$(or $(EVENTS),1000000) LOAD_OUT=$(CURDIR)/bin/many $(GO) test -tags load -count=1 -v -timeout 0 -run '^TestMany$$' ./loadtest

soak: ## three hosts over PostgreSQL under a steady load: fails when memory, goroutines, descriptors, connections, tables or times grow (TIME=60m; writes bin/soak, docs/cluster.md)
	cd tools && SOAK_TIME=$(or $(TIME),60m) SOAK_OUT=$(CURDIR)/bin/soak $(GO) test -tags load -count=1 -v -timeout 0 -run '^TestSoak$$' ./loadtest

HELM        := helm.sh/helm/v3/cmd/helm@v3.19.0
# kubernetes-validate carries the schemas of Kubernetes 1.25 to 1.37: the oldest that the chart is for, and the newest.
KUBERNETES  := 1.30 1.37
COMPOSE     := github.com/compose-spec/compose-go/v2/cmd@v2.9.0
CHART       := examples/operate/helm/memhost --kube-version 1.30.0 --set image.repository=registry.example.com/memhost,existingSecret=memhost
bin/kubernetes-validate: internal/test/testenv/requirements/kubernetes.txt
	@rm -rf $@ && python3 -m venv $@ && $@/bin/pip install -q --no-deps --disable-pip-version-check -r $< && touch $@

check-deploy: bin/kubernetes-validate ## the Helm chart and the compose file: lint, template, schemas of Kubernetes (wants python3-venv; builds Helm: minutes the first time)
	$(GO) run $(HELM) lint $(CHART)
	@mkdir -p bin && $(GO) run $(HELM) template memory $(CHART) --set ingress.enabled=true,ingress.tlsSecret=tls,databaseCA=ca >bin/chart.yaml
	$(GO) run $(COMPOSE) -no-interpolation examples/operate/compose/compose.yaml >/dev/null
	@for version in $(KUBERNETES); do bin/kubernetes-validate/bin/kubernetes-validate --strict -k $$version bin/chart.yaml || exit 1; done
	@sed 's/^  replicas:/  replicaz:/' bin/chart.yaml >bin/chart-wrong.yaml
	@! bin/kubernetes-validate/bin/kubernetes-validate --strict --quiet -k $(lastword $(KUBERNETES)) bin/chart-wrong.yaml >bin/chart-wrong.txt 2>&1 && \
		grep -q replicaz bin/chart-wrong.txt || { echo "a field that Kubernetes does not know is not noticed"; exit 1; }

backend: ## a real backend to try out, until Ctrl-C (BACKEND=mem0, memos, graphiti, ...; ARGS='--port 8888 --data DIR'; docs/live.md)
	@$(GO) run ./internal/test/testenv/cmd/backend $(ARGS) $(BACKEND)

walk: ## docs/new-plugin.md as it stands, in every language: wants TinyGo's packages, node and npm
	WALK=all $(GO) test -count=1 -timeout 20m -run '^TestWalk$$' ./cmd/memhost

build: ## the program, as bin/memhost
	$(GO) build -trimpath -ldflags='-s -w' -o bin/memhost ./cmd/memhost

plugins: ## build the modules whose sources changed (TINYGO=path for development)
	@$(PLUGINS) build

check-plugins: ## rebuild every module and compare byte for byte
	@$(PLUGINS) check

bootstrap: ## the TinyGo toolchain, in a cache folder outside the tree
	@$(PLUGINS) bootstrap

generate: ## codecs from the contract's types
	$(GO) generate ./...

check: generate ## formatted, vetted, tidy, generated: and then the tree is as committed (both modules)
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
	@git diff --exit-code -- '*_gen.go' go.mod go.sum tools/go.mod tools/go.sum

licences: ## docs/licences.md: what the program contains, with licences
	$(GO) -C tools run ./licences -C ..

lint: ## golangci-lint, built from its module, and actionlint on the workflow of a new plugin
	GOLANGCI_LINT_CACHE=$(CURDIR)/bin/golangci-lint $(GO) run $(GOLANGCI) run ./...
	cd tools && GOLANGCI_LINT_CACHE=$(CURDIR)/bin/golangci-lint $(GO) run $(GOLANGCI) run ./...
	@rm -rf bin/new && mkdir -p bin/new && $(GO) build -o bin/new/memhost ./cmd/memhost
	@bin/new/memhost new sample --memhost . --dir bin/new/go
	@bin/new/memhost new sample --lang assemblyscript --dir bin/new/assemblyscript
	$(GO) run $(ACTIONLINT) bin/new/*/.github/workflows/*.yml
	cd integrations/picoclaw && GOLANGCI_LINT_CACHE=$(CURDIR)/bin/golangci-lint $(GO) run $(GOLANGCI) run ./...

vulncheck: ## known vulnerabilities that the program calls, by Go's database (VULNDB=file:///folder for a copy of it)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 $(if $(VULNDB),-db $(VULNDB)) ./cmd/memhost

fuzz: ## every fuzz test for a while (FUZZTIME=30s)
	@git grep -l '^func Fuzz' -- '*_test.go' | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			$(GO) test "./$$(dirname "$$file")" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(or $(FUZZTIME),30s) </dev/null || exit 1; \
		done; \
	done

bench: tools ## what the slot costs, each figure beside its baseline, and by benchstat beside the run before (BENCHFLAGS, see bin/bench -help)
	@if [ -f bin/bench.txt ]; then mv bin/bench.txt bin/bench-before.txt; fi
	@bin/bench $(BENCHFLAGS) -out bin/bench.txt
	@if [ -f bin/bench-before.txt ]; then bin/benchstat bin/bench-before.txt bin/bench.txt; fi

bench-short: tools ## the same in some seconds, to see that everything runs; its figures say nothing
	@bin/bench -short

bench-docs: tools ## the figures and a million calls, written into docs/performance.md (half an hour, on an idle machine)
	@bin/bench -memory $(or $(CALLS),1000000) -docs docs

bench-go: tools ## the Go benchmarks of all packages, with benchstat
	@$(GO) test -run '^$$' -bench . -benchmem -timeout 60m -count 6 -p 1 ./... >bin/bench-go.txt; bin/benchstat bin/bench-go.txt

cross: ## compile for every platform that is offered
	@for t in $(TARGETS); do echo "compile $$t"; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null ./cmd/memhost || exit 1; done

release-snapshot: ## bin/dist: archives for six platforms, deb and rpm, checksums, as GoReleaser makes them for a release
	COMMIT=$$(git rev-parse --short=12 HEAD) COMMIT_DATE=$$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd) \
		COMMIT_TIME=$$(git log -1 --format=%ct) $(GO) run $(RELEASER) release --snapshot --clean

test-release: ## what release-snapshot made: deb and rpm installed, started, upgraded, removed; the container image; and go install from the module's zip
	$(GO) -C tools test -tags release -count=1 -timeout 40m ./releasetest

image: ## the container image of release-snapshot's programs, pushed (BASE=registry/name TO=registry/name:tag VERSION=0.2.0)
	$(GO) -C tools run ./image -base "$(BASE)" -dist ../bin/dist -version "$(VERSION)" \
		-created "$$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)" "$(TO)"

clean: ## what was built in the tree
	rm -rf bin
