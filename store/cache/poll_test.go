package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store/cache"
)

// unsupportedFeed is a store whose feed depends on its configuration, and which has none.
// Its versions are optional too.
type unsupportedFeed struct {
	stagedVersions
	noVersions     bool
	feeds, checked *atomic.Int64
}

func (s unsupportedFeed) Changes(context.Context, string) (cache.Changes, error) {
	s.feeds.Add(1)
	return cache.Changes{}, fmt.Errorf("feed: %w", errors.ErrUnsupported)
}

func (s unsupportedFeed) Versions(ctx context.Context, clients []string) ([]string, error) {
	s.checked.Add(1)
	if s.noVersions {
		return nil, fmt.Errorf("versions: %w", errors.ErrUnsupported)
	}
	return s.stagedVersions.Versions(ctx, clients)
}

// TestUnsupportedPolls: the cache makes a call that the store doesn't support only once. It
// then polls versions. Without them, it reads an entry again once it's as old as the bound.
func TestUnsupportedPolls(t *testing.T) {
	for _, tt := range []struct {
		noVersions     bool
		reads, checked int64
	}{{false, 1 + 1, 39}, {true, 10, 1}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := newStage()
			hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
			st := unsupportedFeed{stagedVersions{stagedPlain{s}, s}, tt.noVersions, new(atomic.Int64), new(atomic.Int64)}
			copied := copyOf(t, st, cache.Options{MaxStale: bound, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			clock := newClock()
			for at := 5; at < 1000; at += 10 {
				clock.at(at)
				expect(t, copied.Store(), 1, "while nothing changes")
			}
			if n := st.feeds.Load(); n != 1 {
				t.Errorf("%d calls of Changes", n)
			}
			if reads, checked := s.reads.Load(), st.checked.Load(); reads != tt.reads || checked != tt.checked {
				t.Errorf("without versions %v: %d reads and %d checks, want %d and %d", tt.noVersions, reads, checked, tt.reads, tt.checked)
			}
			hooktest.Apply(t, s, hooktest.SetAll("acme", 2))
			clock.at(1100)
			expect(t, copied.Store(), 2, "beyond the bound after a change")
			_ = copied.Close()
			if strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "doesn't support this kind of poll") {
				t.Errorf("logged %s", log.String())
			}
		})
	}
}

// failingFeed is a feed whose later polls fail with an error that matches ErrUnsupported.
type failingFeed struct {
	stagedFeed
	calls *atomic.Int64
}

func (s failingFeed) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if s.calls.Add(1) == 2 {
		return cache.Changes{}, fmt.Errorf("read: %w", syscall.EOPNOTSUPP)
	}
	return s.stagedFeed.Changes(ctx, since)
}

// TestSupportedPollsGoOn: after a poll has succeeded, the cache goes on polling even if one
// is unsupported.
func TestSupportedPollsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
		st := failingFeed{stagedFeed{s}, new(atomic.Int64)}
		copied := copyOf(t, st, cache.Options{MaxStale: bound})
		clock := newClock()
		clock.at(1000)
		if n := st.calls.Load(); n < 10 {
			t.Errorf("%d polls, want 10 or more", n)
		}
		_ = copied.Close()
	})
}
