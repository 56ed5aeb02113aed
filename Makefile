# Everything runs with Go, make and a C compiler; the first run downloads pinned
# modules and, where there is none on the machine, a database server.

# PUBLIC are the modules that a host can require, MODULES all that have tests.
PUBLIC    := . store/etcdstore
MODULES   := $(PUBLIC) bench contract examples/cluster integration mounts
PLATFORMS := linux darwin windows
# RACELESS are the packages with a server in their test binary: SQLite, which is C
# translated to Go, and etcd. The race detector slows it down tenfold and more, and is
# there for our code, which other tests show it.
RACELESS  := /bench\|/examples/cluster\|/integration/sqlite\|/integration/etcd$$
TESTS     := go test -count=1 -timeout=30m
FUZZTIME  ?= 20s
BENCHDIR  ?= /var/tmp

.PHONY: test check format fix vet staticcheck api accept-api tidy fuzz soak bench contract

# The whole of what a change must pass. The workspace is tested at once, then each
# public module by itself, as a host without the workspace gets it.
test: check
	@set -e; packages=$$(go list work); \
		set -x; $(TESTS) -race $$(echo "$$packages" | grep -v '$(RACELESS)'); \
		$(TESTS) $$(echo "$$packages" | grep '$(RACELESS)')
	@set -e; for module in $(PUBLIC); do \
		echo "== $$module without the workspace"; \
		(cd $$module && GOWORK=off $(TESTS) ./...); \
	done
	@set -e; for resolver in go cgo; do \
		echo "== egress with the $$resolver resolver"; \
		GODEBUG=netdns=$$resolver $(TESTS) ./webhookcfg/egress; \
	done

check: format fix vet staticcheck api

# tool prints the path of a pinned tool of the tools module.
tool = $$(cd $(CURDIR)/tools && GOWORK=off go tool -n $(1))

format:
	@unformatted=$$($(call tool,gofumpt) -l .); test -z "$$unformatted" || { echo "gofumpt: $$unformatted"; exit 1; }

# fix fails where there is a newer way to write something.
fix:
	@set -e; for module in $(MODULES); do (cd $$module && GOWORK=off go fix -diff ./...); done

vet:
	@set -e; for module in $(PUBLIC); do for os in $(PLATFORMS); do \
		echo "== vet $$module for $$os"; \
		(cd $$module && GOWORK=off GOOS=$$os CGO_ENABLED=0 go vet ./...); \
	done; done
	@set -e; for module in $(filter-out $(PUBLIC),$(MODULES)); do \
		echo "== vet $$module"; \
		(cd $$module && GOWORK=off go vet ./...); \
	done

staticcheck:
	@set -e; tool=$(call tool,staticcheck); for module in $(MODULES); do \
		echo "== staticcheck $$module"; \
		(cd $$module && GOWORK=off "$$tool" ./...); \
	done

# api fails where what a public module exports is not what was accepted, or does not
# build. After a change that is meant, accept-api takes it over: commit that together
# with the line in the changelog.
api:
	@set -e; tool=$(call tool,apidiff); for module in $(PUBLIC); do \
		echo "== api of $$module"; cd $(CURDIR)/$$module; \
		changes=$$(GOWORK=off "$$tool" -m testdata/accepted.api $$(GOWORK=off go list -m) 2>&1 | grep -v '^Ignoring internal package' || true); \
		test -z "$$changes" || { echo "$$changes"; exit 1; }; \
	done

accept-api:
	@set -e; tool=$(call tool,apidiff); for module in $(PUBLIC); do \
		cd $(CURDIR)/$$module; mkdir -p testdata; \
		GOWORK=off "$$tool" -m -w testdata/accepted.api $$(GOWORK=off go list -m); \
	done

# tidy updates every go.mod and go.sum.
tidy:
	@set -e; for module in $(MODULES) tools; do (cd $$module && GOWORK=off go mod tidy); done

# fuzz runs every fuzz target for FUZZTIME each.
fuzz:
	@set -e; for module in $(PUBLIC); do cd $(CURDIR)/$$module; for package in $$(GOWORK=off go list ./...); do \
		for target in $$(GOWORK=off go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			GOWORK=off go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done; done

# soak kills writing processes many times over, at random moments, and shows the race
# detector the store in etcd at its real server.
soak:
	go test -count=1 -timeout=2h -run '^TestKill$$' ./store -args -killrounds=10000
	cd integration && GOWORK=off go test -count=1 -timeout=1h -run '^TestWithoutBinaryLog$$' ./mariadb -args -soak
	cd integration && GOWORK=off go test -race -count=1 -timeout=1h ./etcd

# bench prints the tables of the README: ratios within one run. BENCHDIR has to be
# on a disk.
bench:
	cd bench && GOWORK=off go run . -dir "$(BENCHDIR)"
	cd integration && GOWORK=off go run ./bench -dir "$(BENCHDIR)"

# contract also runs what others made to judge the interface: two linters, a
# validating proxy, and clients in other languages. It needs Node.js 20 or newer and
# names what else is missing. Installing the packages takes a minute, once.
contract:
	cd contract && GOWORK=off CONTRACT_NPM=1 go test -count=1 -v -timeout=30m .
