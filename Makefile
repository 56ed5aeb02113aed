# make test runs the tests of the root module in minutes, with the race detector if there's a C
# compiler, and those of the queue on a database in process. make check is for those who change the
# code: it finds what the formatter and the linters complain about. make integration runs everything
# else, and the long tests in full. It needs Linux, and installs the other programs that it needs.

# PUBLIC lists the modules that a host can require, and EXAMPLES those of programs that have
# requirements of their own. LAB is the module that tests them with real servers and third-party
# tools. Each is tested by itself, with the requirements that a consumer gets. The tests in
# internal/repotest read PUBLIC.
PUBLIC    := . store/etcdstore
EXAMPLES  := examples/admin examples/mounts examples/service
# ENGINES lists the modules with tests on an engine that runs in the test's process. UNRACED leaves
# the engine, which is C translated to Go, without the race detector: it would take five times as long.
ENGINES   := webhookcfg/deliver/outbox/internal/queue/enginetest
UNRACED   := -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false
LAB       := internal/integration
# FULL lists the packages with tests that make test runs with a sample of their cases, and make
# integration with all. They have the flag -full.
FULL      := ./internal/oplog ./internal/repotest ./store ./store/cache ./store/storetest ./webhookcfg/deliver ./webhookcfg/egress ./webhookcfg/mounttest ./webhookcfg/portal
# RELEASES are the supported Go releases, the two latest ones. make test uses the installed Go,
# and make integration also tests PUBLIC with the release that isn't installed, which go
# downloads like a module. When a patch comes out, raise its number here. When a release comes
# out, drop the older line, add the new release, and raise the go lines of all go.mod files to
# the one that is older now.
RELEASES  := go1.26.8 go1.27.4
# RACE turns on the race detector, which needs a C compiler.
RACE       = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
# OTHER are the RELEASES without the installed one, whatever its patch. Tests run with the race
# detector in make test, and without it with these, to save time.
OTHER      = $(filter-out $(shell go env GOVERSION | cut -d. -f1,2).%,$(RELEASES))
PLATFORMS := $(filter-out $(shell go env GOHOSTOS),linux darwin windows)
# RACELESS matches the packages of LAB with a server in their test binary: SQLite, which is
# C translated to Go, or etcd. The race detector slows such a server tenfold and more, and
# other tests run the same code of this repository with it.
RACELESS  := /\(bench\|outbox\|sqlite\|etcd\|admin\|operator\)$$
# AGAIN are the flags with which gotestsum runs a failed test once more, and prints both
# results. It is for tests of third-party servers, whose timing matters.
AGAIN     := --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-abort-on-data-race
FUZZTIME  ?= 20s
BENCHDIR  ?= /var/tmp

export GOWORK := off

# each runs the commands $(2) in the modules $(1), and tool prints the path of a pinned tool.
each = @set -e; for module in $(1); do echo "== $@ $$module"; cd $(CURDIR)/$$module; $(2); done
tool = $$(cd $(CURDIR)/internal/tools && go tool -n $(1))
# again runs the tests of the packages $(1) with the flags $(2), and prints what was skipped,
# with the reason.
again = test -z "$(1)" || "$(call tool,gotestsum)" --format pkgname --packages "$(1)" $(AGAIN) -- -vet=off -count=1 -timeout=90m $(2)

.PHONY: test check format fix vet staticcheck integration picture accept-api tidy registries fuzz soak bench release

test:
	@$(if $(RACE),,echo "There's no C compiler, so the tests run without the race detector.")
	go test -vet=off $(RACE) -count=1 -timeout=30m ./...
	$(call each,$(ENGINES),go test -vet=off -count=1 -timeout=30m ./...)

# check leaves to make integration what compiles for other systems, and the analysis of the
# examples, which reads all of their dependencies.
check: format fix vet staticcheck

format:
	@set -e; gofumpt="$(call tool,gofumpt)"; unformatted=$$("$$gofumpt" -l .); test -z "$$unformatted" || { echo "gofumpt: $$unformatted"; exit 1; }

# fix fails where a newer construct replaces an older one.
fix:
	$(call each,$(PUBLIC) $(EXAMPLES) $(ENGINES),go fix -diff ./...)

vet:
	$(call each,$(PUBLIC) $(EXAMPLES) $(ENGINES),go vet ./...)

staticcheck:
	$(call each,$(PUBLIC),"$(call tool,staticcheck)" ./...)

integration:
	internal/integration/install.sh
	$(call each,$(LAB),go vet ./...; go fix -diff ./...)
	$(call each,$(EXAMPLES) $(ENGINES),"$(call tool,staticcheck)" ./...)
	$(call each,$(PUBLIC),for os in $(PLATFORMS); do GOOS=$$os go vet ./...; done; GOARCH=386 go vet ./...)
	go test -vet=off -race -count=1 -timeout=60m $(FULL) -args -full
	go test -vet=off -count=1 -timeout=60m ./webhookcfg/deliver/outbox/internal/line -args -histories=1000
	$(call each,$(filter-out .,$(PUBLIC)),go test -vet=off -race -count=1 -timeout=30m ./...)
	$(call each,$(EXAMPLES),go test -vet=off -count=1 -timeout=30m ./...)
	$(call each,$(ENGINES),go test -vet=off -race $(UNRACED) -count=1 -timeout=30m ./...)
	$(call each,$(ENGINES),go test -vet=off -count=1 -timeout=60m -run Histories . -args -histories=1000 -processhistories=100)
	$(call each,$(PUBLIC),for release in $(OTHER); do \
		GOTOOLCHAIN=$$release go vet ./...; GOTOOLCHAIN=$$release go test -vet=off -count=1 -timeout=30m ./...; done)
	go test -count=1 -run '^TestKill$$' ./store -args -killrounds=200
	for resolver in go cgo; do GODEBUG=netdns=$$resolver go test -count=1 ./webhookcfg/egress || exit 1; done
	$(call each,examples/mounts examples/service/metrics,go test -race -count=1 ./...)
	$(call each,$(LAB),packages=$$(go list ./...); \
		raced=$$(echo "$$packages" | grep -v '$(RACELESS)' || true); \
		raceless=$$(echo "$$packages" | grep '$(RACELESS)' || true); \
		$(call again,$$raced,-race); $(call again,$$raceless))

# picture takes the picture of package portal in the README. It needs Chromium.
picture:
	cd internal/integration/portal && go test -count=1 -run '^TestPicture$$' . -args -picture $(CURDIR)/webhookcfg/portal/portal.png

# accept-api accepts a change of the exported API: commit its list together with the
# change.
accept-api:
	go test -count=1 -run '^TestAPI$$' ./internal/repotest -args -accept

# tidy updates every go.mod and go.sum.
tidy:
	$(call each,$(PUBLIC) $(EXAMPLES) $(ENGINES) $(LAB) internal/tools,go mod tidy)

# registries downloads IANA's registries of special-purpose addresses, against which the
# tests of package egress check its table, and prints when IANA updated them, for the
# README next to them. It needs curl and the network; the tests use neither.
registries:
	@set -e; cd webhookcfg/egress/testdata; for registry in iana-ipv4-special-registry iana-ipv6-special-registry; do \
		curl --fail --silent --show-error --remote-name --write-out "$$registry, last modified %header{last-modified}\n" \
			https://www.iana.org/assignments/$$registry/$$registry-1.csv; \
	done; sha256sum *.csv

# fuzz runs every fuzz target for FUZZTIME each.
fuzz:
	$(call each,$(PUBLIC),packages=$$(go list ./...); for package in $$packages; do \
		listed=$$(go test -list '^Fuzz' $$package); \
		for target in $$(echo "$$listed" | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done)

# soak kills writing and delivering processes many times over, at random moments, tests the queue
# with random histories and large backlogs, and runs the store in etcd with the race detector.
soak:
	$(call each,$(ENGINES),go test -count=1 -timeout=12h -run Histories . -args -histories=10000 -processhistories=10000)
	go test -count=1 -timeout=2h -run '^TestKill$$' ./store -args -killrounds=10000
	cd internal/integration && go test -count=1 -timeout=2h -run '^TestKill$$' ./service -args -rounds=1000
	cd internal/integration && go test -count=1 -timeout=3h -run '^(TestEveryStatement|TestKilledProcesses|TestKilledServer)$$' ./outbox -args -soak -rounds=1000
	cd internal/integration && go test -count=1 -timeout=2h -run '^(TestCost|TestBloat)$$' ./outbox -args -backlog=1000000 -speed=1h
	cd internal/integration && go test -race -count=1 -timeout=1h ./etcd

# bench writes internal/integration/bench/README.md and its plots. BENCHDIR has to be on a
# disk.
bench:
	cd internal/integration && go run ./bench -dir "$(BENCHDIR)" -out bench

# release makes the release VERSION in this clone, and prints how to publish it. The first one
# also needs MODULE, the path of the module from then on, and REPORT, the address for reports
# of vulnerabilities.
release:
	go run ./internal/release -version "$(VERSION)" -module "$(MODULE)" -report "$(REPORT)"
