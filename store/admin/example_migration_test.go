package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/semaphore"
)

// movable is a store that moves from src to dst while your service uses it. Everything in your
// service has to use it instead of src. If you need more than a handler does, pass the methods
// through as the package documentation says. Erase is a change: let it wait as Apply does.
type movable struct {
	src, dst listed
	moved    atomic.Bool
	// changes has a slot for each Apply in progress. The end of the move takes all slots, so
	// a change is either in src before the last pass, or goes to dst.
	changes *semaphore.Weighted
}

type listed interface {
	webhookcfg.Store
	webhookcfg.Lister
}

const allSlots = math.MaxInt64

func newMovable(src, dst listed) *movable {
	return &movable{src: src, dst: dst, changes: semaphore.NewWeighted(allSlots)}
}

func (m *movable) current() listed {
	if m.moved.Load() {
		return m.dst
	}
	return m.src
}

// Apply waits while the move ends. The handler responds 503 if that takes longer than its Timeout.
func (m *movable) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := m.changes.Acquire(ctx, 1); err != nil {
		return err
	}
	defer m.changes.Release(1)
	return m.current().Apply(ctx, c)
}

// Resolve never waits for the move. Neither does List.
func (m *movable) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	return m.current().Resolve(ctx, client, entity)
}

func (m *movable) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	return m.current().List(ctx, client, after, limit)
}

// move copies src to dst and switches to dst. Just before it switches, it calls prepareRestart,
// which must make the next start of your service use dst. A restart would otherwise serve src,
// without the changes since the move. After an error, the service still uses src.
//
// Keep src open until the process ends, because reads of it can be in progress.
func (m *movable) move(ctx context.Context, prepareRestart func() error) error {
	if m.moved.Load() {
		return nil
	}
	feed, ok := m.src.(cache.Feed)
	if !ok {
		return errors.New("the store has no feed")
	}
	seen, err := feed.Changes(ctx, "") // before the copy, so that no change is missed
	if err != nil {
		return err
	}
	// To repeat a move that failed, set Replace.
	if _, err := admin.Copy(ctx, m.dst, m.src, nil); err != nil {
		return err
	}
	pass := func() (changes int, err error) {
		if seen, err = feed.Changes(ctx, seen.Next); err != nil {
			return 0, err
		}
		options := &admin.CopyOptions{Replace: true, Clients: append([]string{}, seen.Clients...)}
		if seen.Reset {
			options.Clients = nil // any client may have changed: compare them all
		}
		report, err := admin.Copy(ctx, m.dst, m.src, options)
		return report.Changes, err
	}
	const few, passes = 100, 10
	for range passes {
		changes, err := pass()
		if err != nil {
			return err
		}
		if changes < few {
			break
		}
	}
	if err := m.changes.Acquire(ctx, allSlots); err != nil { // waits for each Apply in progress
		return err
	}
	defer m.changes.Release(allSlots)
	if _, err := pass(); err != nil {
		return err
	}
	verified, err := admin.Verify(ctx, m.dst, m.src, nil)
	if err != nil {
		return err
	}
	if verified.Different > 0 {
		return fmt.Errorf("%d webhooks differ, for example %v", verified.Different, verified.Differences[0])
	}
	if err := prepareRestart(); err != nil {
		return err
	}
	m.moved.Store(true)
	return nil
}

// You can move to another store while your service runs, if only this process changes the
// store. Changes wait for the last pass and the comparison. Reads don't wait.
func Example_migration() {
	ctx := context.Background()
	src, dst := store.NewMemory(), store.NewMemory() // for example, a file and a database
	webhooks := newMovable(src, dst)                 // for your handler and your senders

	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in"))
	change.Time = time.Now().UTC().Truncate(time.Microsecond)
	if err := webhooks.Apply(ctx, change); err != nil {
		log.Fatal(err)
	}
	prepareRestart := func() error {
		fmt.Println("the next start uses the new store") // for example, rename a new configuration file into place
		return nil
	}
	if err := webhooks.move(ctx, prepareRestart); err != nil {
		log.Fatal(err)
	}
	hook, err := dst.Resolve(ctx, "acme", "e1")
	fmt.Println(hook.URL, err)
	// Output:
	// the next start uses the new store
	// https://hooks.example.com <nil>
}
