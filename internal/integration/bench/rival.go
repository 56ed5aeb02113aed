package main

import (
	"context"
	"encoding/binary"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
)

// rival is a durable store to be measured. All of them get the same records, and
// answer a set once a crash of the machine cannot undo it.
type rival struct {
	name string
	// budget is what the ratio of our sets to its sets is to be.
	budget string
	// open opens a new one in a new folder.
	open func(dir string) (*contender, error)
}

// contender is a rival that is open.
type contender struct {
	// ways are ways to make its sets durable. The best of them counts.
	ways []way
	// load makes the first n sets as fast as it can.
	load func(n int) error
	// url returns which URL an entity of a client has.
	url   func(client, entity string) (string, error)
	close func() error
}

// way is one way to make a set durable.
type way struct {
	name string
	// set returns when the set is durable. It is called by many goroutines at once.
	set func(context.Context, webhookcfg.Change) error
	// syncs returns how many syncs of the disk it took so far, all sets together. It
	// is called while none is made.
	syncs func() int64
}

// rivals returns all of them, ours first and the references next.
func rivals() []rival {
	return []rival{
		{"store.File", "", openFile},
		{"minimal log", "≥ 0.9", openMinimal},
		{"Pebble", "> 1 from 8 writers on", openPebble},
		{"bbolt", "> 1", openBolt},
		{"SQLite", "> 1", openSQLite},
	}
}

// applyAll makes the first n sets, many of them at once.
func applyAll(set func(context.Context, webhookcfg.Change) error, n int, nth func(int) webhookcfg.Change) error {
	const writers = 1000
	errs := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < n && errs[w] == nil; i += writers {
				errs[w] = set(context.Background(), nth(i))
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// commitAll has commit make the first n sets in transactions of some size.
func commitAll(commit func([]webhookcfg.Change) error, n int) error {
	const size = 10_000
	for first := 0; first < n; first += size {
		var changes []webhookcfg.Change
		for i := first; i < min(n, first+size); i++ {
			changes = append(changes, nthSet(i))
		}
		if err := commit(changes); err != nil {
			return err
		}
	}
	return nil
}

// The key and the value of a set where a store has only those.
func keyOf(client, entity string) []byte {
	key := make([]byte, 0, len(client)+1+len(entity))
	key = append(append(key, client...), 0)
	return append(key, entity...)
}

func valueOf(c webhookcfg.Change) []byte {
	url := c.URL.Reveal()
	value := make([]byte, 0, len(url)+8)
	return binary.LittleEndian.AppendUint64(append(value, url...), uint64(c.Time.Unix()))
}

// urlOf is the URL in such a value.
func urlOf(value []byte) string { return string(value[:max(0, len(value)-8)]) }
