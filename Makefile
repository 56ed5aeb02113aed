# Everything runs with Go and make alone; the first run downloads pinned modules.

MODULES   := . integration bench
PLATFORMS := linux darwin windows
FUZZTIME  ?= 20s

.PHONY: test check format vet staticcheck tidy fuzz soak bench

# The whole of what a change must pass. The workspace is tested at once, then each
# module by itself, as a consumer without the workspace gets it.
test: check
	go test -race -count=1 work
	@set -e; for module in $(MODULES); do \
		echo "== $$module without the workspace"; \
		(cd $$module && GOWORK=off go test -count=1 ./...); \
	done
	@set -e; for resolver in go cgo; do \
		echo "== egress with the $$resolver resolver"; \
		GODEBUG=netdns=$$resolver go test -count=1 ./webhookcfg/egress; \
	done

check: format vet staticcheck

format:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }

vet:
	@set -e; for module in $(MODULES); do for os in $(PLATFORMS); do \
		echo "== vet $$module for $$os"; \
		(cd $$module && GOWORK=off GOOS=$$os CGO_ENABLED=0 go vet ./...); \
	done; done

staticcheck:
	@set -e; tool=$$(cd tools && GOWORK=off go tool -n staticcheck); for module in $(MODULES); do \
		echo "== staticcheck $$module"; \
		(cd $$module && GOWORK=off "$$tool" ./...); \
	done

# tidy updates every go.mod and go.sum.
tidy:
	@set -e; for module in $(MODULES) tools; do (cd $$module && GOWORK=off go mod tidy); done

# fuzz runs every fuzz target for FUZZTIME each.
fuzz:
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

# soak kills a writing process many times over, at random moments.
soak:
	go test -count=1 -timeout=2h -run '^TestKill$$' ./store -args -killrounds=10000

# bench prints the tables of the README: ratios within one run.
bench:
	cd bench && GOWORK=off go run .
