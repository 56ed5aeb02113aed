# Everything runs with Go, make and a C compiler. The first run downloads pinned
# modules and, where none is installed, a database server.

# PUBLIC lists the modules that a host can require, MODULES all that have tests. Each is
# tested by itself, with the requirements that a consumer gets.
PUBLIC    := . store/etcdstore
MODULES   := $(PUBLIC) examples/mounts examples/service internal/integration internal/integration/programs
PLATFORMS := linux darwin windows
# RACELESS matches the packages with a server in their test binary: SQLite, which is C
# translated to Go, PocketBase and etcd. The race detector slows such a server tenfold and
# more, and other tests run the same code of this repository with it.
RACELESS  := /internal/integration/bench\|/examples/service\|/integration/sqlite$$\|/integration/etcd$$\|/integration/programs$$
# TESTS runs the tests of the packages $(1), and prints what was skipped, with the reason,
# after the packages. AGAIN runs a failed test once more, and prints both results: in the
# modules that no host requires, where the timing of third-party servers is part of tests.
TESTS      = "$(call tool,gotestsum)" --format pkgname --packages "$(1)"
TESTFLAGS := -count=1 -timeout=90m
AGAIN     := --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-abort-on-data-race
FUZZTIME  ?= 20s
BENCHDIR  ?= /var/tmp

export GOWORK := off

# each runs the commands $(2) in the modules $(1), and tool prints the path of a pinned tool.
each = @set -e; for module in $(1); do echo "== $@ $$module"; cd $(CURDIR)/$$module; $(2); done
tool = $$(cd $(CURDIR)/internal/tools && go tool -n $(1))

.PHONY: test check format fix vet staticcheck accept-api tidy registries fuzz soak bench contract

# test is all that a change must pass. It leaves the working tree as it found it.
test: check
	@before=$$(git status --porcelain 2>&1); set -e; for module in $(MODULES); do \
		echo "== test $$module"; cd $(CURDIR)/$$module; packages=$$(go list ./...); \
		raced=$$(echo "$$packages" | grep -v '$(RACELESS)' || true); \
		raceless=$$(echo "$$packages" | grep '$(RACELESS)' || true); \
		case " $(PUBLIC) " in *" $$module "*) again=;; *) again="$(AGAIN)";; esac; \
		test -z "$$raced" || $(call TESTS,$$raced) $$again -- $(TESTFLAGS) -race; \
		test -z "$$raceless" || $(call TESTS,$$raceless) $$again -- $(TESTFLAGS); \
	done; \
	cd $(CURDIR); for resolver in go cgo; do \
		echo "== test egress with the $$resolver resolver"; \
		GODEBUG=netdns=$$resolver $(call TESTS,./webhookcfg/egress) -- $(TESTFLAGS); \
	done; \
	test "$$before" = "$$(git status --porcelain 2>&1)" || { echo "the tests changed the working tree:"; git status --short; exit 1; }

check: format fix vet staticcheck

format:
	@unformatted=$$($(call tool,gofumpt) -l .); test -z "$$unformatted" || { echo "gofumpt: $$unformatted"; exit 1; }

# fix fails where a newer construct replaces an older one.
fix:
	$(call each,$(MODULES),go fix -diff ./...)

vet:
	$(call each,$(PUBLIC),for os in $(PLATFORMS); do GOOS=$$os CGO_ENABLED=0 go vet ./...; done)
	$(call each,$(filter-out $(PUBLIC),$(MODULES)),go vet ./...)

staticcheck:
	$(call each,$(MODULES),"$(call tool,staticcheck)" ./...)

# accept-api accepts a change of the exported API: commit its list together with the
# change.
accept-api:
	go test -count=1 -run '^TestAPI$$' ./internal/repotest -args -accept

# tidy updates every go.mod and go.sum.
tidy:
	$(call each,$(MODULES) internal/integration/caddy internal/tools,go mod tidy)

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
	$(call each,$(PUBLIC),for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done)

# soak kills writing and delivering processes many times over, at random moments, and runs
# the store in etcd with the race detector.
soak:
	go test -count=1 -timeout=2h -run '^TestKill$$' ./store -args -killrounds=10000
	cd internal/integration && go test -count=1 -timeout=2h -run '^TestKill$$' ./service -args -rounds=1000
	cd internal/integration && go test -count=1 -timeout=1h -run '^TestWithoutBinaryLog$$' ./mariadb -args -soak
	cd internal/integration && go test -race -count=1 -timeout=1h ./etcd

# bench writes internal/integration/bench/README.md and its plots. BENCHDIR has to be on a
# disk.
bench:
	cd internal/integration && go run ./bench -dir "$(BENCHDIR)" -out bench

# contract also runs third-party tools: two linters, a validating proxy, proxies and clients
# in other languages, and Caddy with the handler as a module, which has more than 900
# packages to build. It needs Node.js 20 or newer and names the other tools that are missing.
contract:
	cd internal/integration && CONTRACT_NPM=1 go test -count=1 -v -timeout=30m ./contract
	cd internal/integration/caddy && go vet . && go test -count=1 .
