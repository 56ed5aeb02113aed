package sqltest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// feed has clients named while many writers change one each, and nobody forgotten.
func (e Engine) feed(t *testing.T) {
	dsn := e.Shared.Get(t).DSN()
	st := e.fresh(t, dsn)
	feed, err := st.WithFeed()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	missed, err := watch(t.Context(), feed, st.Apply)
	if err != nil {
		t.Fatal(err)
	}
	if len(missed) > 0 {
		t.Errorf("%d of %d changes were never named", len(missed), watchWriters*watchEach)
	}
	t.Run("a sequence misses changes", func(t *testing.T) { e.sequenceMisses(t, dsn) })
}

const (
	watchWriters = 8
	watchEach    = 75
)

// watch follows a feed while writers apply changes, and returns the clients that
// changed and were not named.
func watch(ctx context.Context, feed cache.Feed, apply func(context.Context, webhookcfg.Change) error) (missed []string, err error) {
	first, err := feed.Changes(ctx, "")
	if err != nil || !first.Reset {
		return nil, fmt.Errorf("the first answer is %+v, %w", first, err)
	}
	written := make(chan struct{})
	writers, writing := errgroup.WithContext(ctx)
	for w := range watchWriters {
		writers.Go(func() error { return writeMany(writing, w, apply) })
	}
	followers, following := errgroup.WithContext(ctx)
	followers.Go(func() (err error) { missed, err = follow(following, feed, first.Next, written); return err })
	err = writers.Wait()
	close(written)
	return missed, errors.Join(err, followers.Wait())
}

func watched(w, n int) string { return "watched-" + strconv.Itoa(w*watchEach+n) }

func writeMany(ctx context.Context, w int, apply func(context.Context, webhookcfg.Change) error) error {
	for n := range watchEach {
		c := webhookcfg.Set(watched(w, n), webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/"))
		c.Time = time.Unix(1, 0)
		if err := apply(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// follow asks until once more after everything was written.
func follow(ctx context.Context, feed cache.Feed, since string, written <-chan struct{}) (missed []string, err error) {
	named := make(map[string]bool)
	for last := false; ; {
		changes, err := feed.Changes(ctx, since)
		if err != nil {
			return nil, err
		}
		if changes.Reset {
			return nil, errors.New("a reset for no reason")
		}
		for _, client := range changes.Clients {
			named[client] = true
		}
		since = changes.Next
		if last {
			break
		}
		select {
		case <-written:
			last = true
		default:
		}
	}
	for n := range watchWriters * watchEach {
		if client := watched(0, n); !named[client] {
			missed = append(missed, client)
		}
	}
	return missed, nil
}
