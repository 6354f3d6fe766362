# node-authorizer. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := bin/node-authorizer
PLANE := cd test/localplane && go run ./cmd/localplane
TOOL := go tool -modfile=tools/go.mod
# Test processes have small heaps, and by default collect garbage so often that it takes a quarter of
# their time. Those with large heaps keep to the limit. The compiler and the linker keep the default.
# test-vet runs the whole of go vet once.
GOTEST := go test -vet=off -exec 'env GOGC=400 GOMEMLIMIT=2GiB'
# Without this tag, gRPC links tracing pages that use html/template. It looks methods up by
# name, so the linker keeps every exported method, and the binary is half as large again.
TAGS := grpcnotrace
# No symbol table and no debugging information. `make build LDFLAGS=` keeps both.
LDFLAGS := -s -w
# What `node-authorizer version` says is linked into it: the tag, with what follows it. Variables of the
# environment do not count, because VERSION is often another program's.
VERSION = $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || \
	git describe --always --dirty --exclude '*' 2>/dev/null | sed 's/^/v0.0.0-g/')
REVISION = $(shell git rev-parse HEAD 2>/dev/null)
CLI := github.com/node-authorizer/node-authorizer/internal/cli/command
STAMP = -X $(CLI).linkedVersion=$(VERSION) -X $(CLI).linkedRevision=$(REVISION)
# Every Go module of the repository.
MODULES = . test/localplane test/conformance test/e2e test/deploy test/browser tools/release $(if $(simulator),test/tpm)
# The packages with goroutines, whose tests run under the race detector. It makes them several times slower,
# so `make test` runs them with -short: random tests that do not need it have a smaller budget.
RACE := ./graph ./nodeauthz ./rbac ./internal/authz/chain ./internal/apiserver ./internal/state/manifest ./internal/state/source ./internal/staleness ./internal/server/freshness \
	./internal/server/observe ./internal/server/webhook ./internal/server ./internal/join/bootstrap/... ./internal/join/machines ./internal/join/clusterapi ./internal/aws/ec2instances ./internal/join/providers/aws ./internal/join/controller ./internal/informer ./internal/join/ledger \
	./internal/aws/iam/... ./internal/aws/mappings ./internal/audit/auditlog ./internal/audit/replay
# Packages of these whose tests run without the race detector too: -short leaves some of them out.
SLOW := ./internal/server ./internal/audit/replay ./internal/join/controller
# End-to-end tests that run beside the others.
BESIDE := policies probes containment attackpaths mapped setup
FUZZTIME ?= 30s
FUZZ ?= $$(grep -rl --include='*_test.go' '^func Fuzz' . --exclude-dir=test | xargs -n1 dirname | sort -u)
# Part 2/8 is every eighth fuzz target, from the third one.
PART ?= 0/1

# Everything else that tests need is built from Go modules.
BROWSER := $(firstword $(foreach b,chromium chromium-browser google-chrome,$(shell command -v $(b))))
without-browser := $(if $(BROWSER),,; the tests of pages did not run: they need Chromium (apt-get install chromium))

# The simulator of a TPM is written in C.
simulator := $(shell printf '\043include <openssl/aes.h>\n' | $${CC:-cc} -E -x c - >/dev/null 2>&1 && echo yes)
without-tpm := $(if $(simulator),,; a test of TPMs did not run: it needs a C compiler and OpenSSL (apt-get install gcc libssl-dev))
swtpm := $(shell command -v swtpm_setup)
without-swtpm := $(if $(swtpm),,; tests of TPMs did not run: they need swtpm (apt-get install swtpm swtpm-tools))

.PHONY: help
help: ## Show this help.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-20s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/node-authorizer, and bin/kubectl-node_authorizer beside it.
	go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS) $(STAMP)' -o $(BIN) ./cmd/node-authorizer
	ln -sf node-authorizer bin/kubectl-node_authorizer

.PHONY: demo
demo: ## Ask what nodes may do, of a snapshot and then of a control plane with two nodes; open and close a path to the cluster.
	@test/localplane/demo.sh

.PHONY: up
up: ## Start a control plane on this machine and leave it running.
	$(PLANE) up --nodes 2

.PHONY: down
down: ## Stop the control plane that `make up` started.
	$(PLANE) down

.PHONY: test
test: test-build ## Run every test: unit, command line, conformance, and end to end on a real control plane.
	+$(MAKE) -k -j4 test-code test-planes test-planes-beside test-stale
	@echo "all tests passed$(without-browser)$(without-tpm)$(without-swtpm)"

# The groups below run at the same time, and each would compile the same packages if they were not compiled before.
.PHONY: test-build
test-build:
	go build ./...
	go run -exec true ./cmd/node-authorizer # links the program that end-to-end tests run
	cd test/e2e && go build ./...

# `test` runs four groups in parallel: one uses the processors, the others mostly wait.
# Within a group, steps run in order. A step that fails does not stop the next ones.
each = failed=; for step in $(1); do $(MAKE) $$step || failed="$$failed $$step"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

.PHONY: test-code
test-code: ## Run the tests that need no control plane.
	@+$(call each,test-vet test-unit test-race test-conformance test-deploy test-tpm test-browser test-release)

.PHONY: test-vet
test-vet:
	@failed=; for module in $(MODULES); do (cd $$module && go vet ./...) || failed="$$failed $$module"; done; \
	if [ -n "$$failed" ]; then echo "go vet failed in:$$failed"; exit 1; fi

.PHONY: test-unit
test-unit:
	$(GOTEST) -p 4 -timeout 40m $$(go list ./... | grep -vxFf <(go list $(RACE))) $(SLOW)

.PHONY: test-race
test-race:
	$(GOTEST) -p 4 -timeout 40m -race -short $(RACE)
	$(GOTEST) -timeout 20m -race -run 'TestConcurrentUse|TestAllNodes' ./attackpaths

.PHONY: test-conformance
test-conformance:
	@+$(call each,test-differential test-generators test-protocol)

.PHONY: test-differential
test-differential:
	cd test/conformance && $(GOTEST) -count=1 -v .

.PHONY: test-generators
test-generators:
	cd test/conformance && $(GOTEST) -count=1 ./generate ./minors ./remedies

.PHONY: test-protocol
test-protocol:
	cd test/conformance/minors/protocol && $(GOTEST) ./...

.PHONY: test-deploy
test-deploy:
	cd test/deploy && $(GOTEST) -count=1 ./...

# Without a C compiler and OpenSSL this does not run, and `make test` says so. Where CI is set, that is an error.
.PHONY: test-tpm
test-tpm:
ifneq ($(simulator)$(CI),)
	cd test/tpm && $(GOTEST) -count=1 ./...
else
	@echo "NOT RUN: the test with a simulated TPM, which needs a C compiler and OpenSSL: apt-get install gcc libssl-dev"
endif

# The files of a release for one platform. `make release-snapshot` tests those for all.
.PHONY: test-release
test-release:
	cd tools/release && $(GOTEST) -count=1 ./...

# Without Chromium these tests do not run, and `make test` says so. Where CI is set, that is an error.
.PHONY: test-browser
test-browser:
ifneq ($(BROWSER)$(CI),)
	cd test/browser && $(GOTEST) -count=1 ./...
else
	@echo "NOT RUN: the tests of pages, which need Chromium: apt-get install chromium"
endif

.PHONY: screenshots
screenshots: ## Write the pictures of pages in docs/images. Needs Chromium.
	cd test/browser && UPDATE_SCREENSHOTS=1 go test -count=1 -run TestScreenshots .

.PHONY: recording
recording: ## Record docs/images/recording.svg, the picture in the README, again.
	UPDATE_GOLDEN=1 go test -count=1 -run TestRecording ./internal/cli

.PHONY: plane-binaries
plane-binaries:
	$(PLANE) build

.PHONY: test-planes
test-planes: plane-binaries ## Run the tests on real control planes.
	@+$(call each,test-localplane test-e2e)

# One package at a time in each group: control planes and kubelets use up a user's inotify instances.
.PHONY: test-localplane
test-localplane:
	cd test/localplane && $(GOTEST) -p 1 -timeout 20m ./...

.PHONY: test-e2e
test-e2e:
	cd test/e2e && $(GOTEST) -p 1 -timeout 45m $$(go list ./... | grep -vE '/($(subst $() $(),|,$(BESIDE) stale))$$')

# These tests have few kubelets and mostly wait, so they run beside the others.
.PHONY: test-planes-beside
test-planes-beside: plane-binaries ## Run the tests on real control planes that run beside the others.
	cd test/e2e && $(GOTEST) -p 1 -timeout 45m $(addprefix ./,$(BESIDE))

.PHONY: test-stale
test-stale: plane-binaries ## Run the tests of old state, which wait for minutes.
	cd test/e2e && $(GOTEST) -timeout 45m ./stale

DIST := dist
# PLATFORMS=linux/amd64,linux/arm64 limits a snapshot to these.
PLATFORMS =
COMMIT_TIME = $(shell git log -1 --format=%ct)

.PHONY: release-snapshot
release-snapshot: ## Build all files of a release into dist, and test them.
	rm -rf $(DIST)
	cd tools/release && go run . build -version '$(VERSION)' -revision '$(REVISION)' -time '$(COMMIT_TIME)' \
		-source $(CURDIR) -out $(CURDIR)/$(DIST) $(if $(PLATFORMS),-platforms '$(PLATFORMS)')
	cd tools/release && RELEASE_DIST=$(CURDIR)/$(DIST) RELEASE_VERSION='$(VERSION)' RELEASE_REVISION='$(REVISION)' \
		RELEASE_TIME='$(COMMIT_TIME)' RELEASE_PLATFORMS='$(PLATFORMS)' go test -count=1 ./...

# Needs GITHUB_TOKEN, or `docker login ghcr.io` and `gh auth login`.
.PHONY: release-publish
release-publish: ## Publish dist, which make release-snapshot has built from the tag of the release.
	@[[ '$(VERSION)' =~ ^v[0-9]+\.[0-9]+\.[0-9]+$$ ]] || { echo "$(VERSION) is not the tag of a release"; exit 1; }
	@[[ $$(find $(DIST) -name '*_$(VERSION)_*.tar.gz' -o -name '*_$(VERSION)_*.zip' | wc -l) -eq 6 ]] || \
		{ echo "$(DIST) has not all platforms of $(VERSION): run make release-snapshot first"; exit 1; }
	cd tools/release && go run . push -out $(CURDIR)/$(DIST)
	gh release create '$(VERSION)' --verify-tag --title '$(VERSION)' --notes-file $(DIST)/notes.md $(DIST)/*

.PHONY: lint
lint: ## Check formatting and run the linters.
	@unformatted=$$($(TOOL) gofumpt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "run make fmt for:"; echo "$$unformatted"; exit 1; fi
	@long=$$(git ls-files '*.go' | xargs awk '{ columns = 0; rest = $$0; while (at = index(rest, "\t")) \
		{ columns += at - 1; columns += 4 - columns % 4; rest = substr(rest, at + 1) }; \
		if (columns + length(rest) > 140) print FILENAME ":" FNR }'); \
	if [ -n "$$long" ]; then echo "longer than 140 columns:"; echo "$$long"; exit 1; fi
	$(TOOL) actionlint -shellcheck= -pyflakes=
	@failed=; for module in $(MODULES); do (cd $$module && $(lint-module)) || failed="$$failed $$module"; done; \
	if [ -n "$$failed" ]; then echo "lint failed in:$$failed"; exit 1; fi
	@found=$$($(TOOL) deadcode -test ./...); dead=$$(grep -v 'func: Example' <<<"$$found" || true); \
	if [ -n "$$dead" ]; then echo "nothing calls:"; echo "$$dead"; exit 1; fi

lint-tool = go tool -modfile=$(CURDIR)/tools/go.mod
lint-module = go vet ./... && $(lint-tool) staticcheck ./... && $(lint-tool) go-errorlint ./... && \
	$(lint-tool) unparam ./... && $(lint-tool) bodyclose -test=false ./...

.PHONY: fmt
fmt: ## Format the Go code.
	$(TOOL) gofumpt -w $$(git ls-files '*.go')

.PHONY: conformance
conformance: ## Compare over a million decisions with Kubernetes' own.
	cd test/conformance && CONFORMANCE=full go test -count=1 -v -timeout 60m .

.PHONY: conformance-minors
conformance-minors: ## Compare with every supported Kubernetes minor; writes docs/evidence/kubernetes-versions.md.
	cd test/conformance && CONFORMANCE=minors go test -count=1 -v -timeout 120m .

.PHONY: remedies
remedies: ## Carry out the remedies of a million random refusals, from a new seed; prints the seed.
	cd test/conformance && REMEDIES_REFUSALS=1000000 REMEDIES_SEED=$$((RANDOM << 30)) go test -count=1 -v -timeout 120m ./remedies

.PHONY: race
race: ## Run the tests of packages with goroutines under the race detector, random tests with their whole budget.
	$(GOTEST) -race -count=1 -timeout 30m $(RACE)
	ATTACKPATHS=full $(GOTEST) -race -count=1 -timeout 30m -run 'TestConcurrentUse|TestAllNodes' ./attackpaths

.PHONY: attack-paths
attack-paths: ## Compare attack paths, remedies and advice with exhaustive searches of thousands of random clusters.
	ATTACKPATHS=full go test -count=1 -v -timeout 60m ./attackpaths

.PHONY: parts
parts: ## Answer random questions about 150 clusters from the parts that an answer depends on, and from the whole.
	PARTS_CLUSTERS=150 go test -count=1 -v -timeout 30m -run 'Parts|TestRestrictedUsersGetNoOtherAnswer' ./internal/cli/query

.PHONY: executor
executor: ## Carry out all rights of the table, and all attack paths of 200 random clusters, on a real control plane.
	cd test/e2e && ATTACKPATHS_RIGHTS=all ATTACKPATHS_CLUSTERS=200 go test -count=1 -v -timeout 60m \
		-run 'TestCases|TestNodeScopes|TestRights|TestRandomClusters' ./attackpaths

.PHONY: containment
containment: ## Put ten million random requests to NodeScopes and Quarantines: nothing is allowed that was refused before.
	CONTAINMENT_REQUESTS=10000000 go test -count=1 -v -timeout 30m -run TestNothingIsAllowedThatWasRefusedBefore ./internal/authz/evaluate

.PHONY: discovery
discovery: ## Write what API servers of each minor serve to attackpaths/testdata/discovery.txt; starts one of the newest minor.
	cd test/localplane && go run ./cmd/discovery -out $(CURDIR)/attackpaths/testdata/discovery.txt

.PHONY: attack-matrix
attack-matrix: ## Attack two control planes with a stolen kubelet certificate; writes docs/evidence/attack-matrix.
	cd test/e2e && UPDATE_GOLDEN=1 go test -count=1 -v -timeout 15m -run TestAttackMatrix .

.PHONY: containment-matrix
containment-matrix: ## Try each rule of the NodeScopes in scopes on a real control plane; writes docs/evidence/containment-matrix.md.
	cd test/e2e && UPDATE_GOLDEN=1 go test -count=1 -v -timeout 15m -run TestMatrix ./containment

.PHONY: containment-campaign
containment-campaign: ## Measure 100 Quarantines on two API servers, make 200 times too many, and flood with 10,000 objects of each kind.
	cd test/e2e && QUARANTINE_REPETITIONS=100 QUARANTINE_ROUNDS=200 CONTAINMENT_FLOOD=10000 go test -count=1 -v -timeout 60m \
		-run 'TestQuarantineTakesEffectEverywhere|TestServersAgreeAtTheLimit|TestFlood' ./containment

.PHONY: bench
bench: build ## Measure side by side with the in-tree authorizer; writes docs/evidence/benchmarks.md.
	cd test/conformance && go run ./bench -out $(CURDIR)/docs/evidence/benchmarks.md

# Without -fuzzminimizetime, the fuzzer minimizes one new input of a few kilobytes for a minute,
# and tries nothing else. With a time instead of a number, it sometimes fails at the end of the time.
# FUZZ=./graph limits it to a package.
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME: a time (default 30s) or a number of executions (1000000x).
	@failed=; place=0; for package in $(FUZZ); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$package/*_test.go | cut -d' ' -f2); do \
			place=$$((place + 1)); \
			if [ $$(((place - 1) % $(notdir $(PART)))) != $(patsubst %/,%,$(dir $(PART))) ]; then continue; fi; \
			echo "== $$package $$target"; \
			$(GOTEST) $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x \
				-toolexec $(CURDIR)/tools/fuzzcompile.sh || failed="$$failed $$package.$$target"; \
		done; \
	done; if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi
