package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"example.com/go-webhookcfg/webhookcfg"
)

// peer is a durable store to compare with. When a set returns, it must survive a crash of the
// machine.
type peer struct {
	name string
	// budget is how many times as fast the library's sets should be.
	budget string
	// open creates a store in an empty directory.
	open func(dir string) (*opened, error)
}

// opened is an open store of a peer.
type opened struct {
	// ways are the ways to make its sets durable. The fastest one counts.
	ways []way
	// load makes the first n sets as fast as it can.
	load func(n int) error
	// url returns the URL of a client's entity.
	url   func(client, entity string) (string, error)
	close func() error
}

// way is a way to make a set durable.
type way struct {
	name string
	// set returns when the set is durable. It must allow concurrent calls.
	set func(context.Context, webhookcfg.Change) error
	// syncs returns how many syncs of the disk there have been. It isn't called during a set.
	syncs func() int64
}

// peers returns the library, the reference and the other stores.
func peers() []peer {
	return []peer{
		{"store.File", "", openFile},
		{"minimal log", "≥ 0.9; ≥ 0.8 at 256", openMinimal},
		{"Pebble", "> 1", openPebble},
		{"bbolt", "> 1", openBolt},
		{"SQLite", "> 1", openSQLite},
	}
}

// openPebble opens a Pebble store. Pebble shares syncs between callers by itself.
func openPebble(dir string) (*opened, error) {
	fs := &countingFS{FS: vfs.Default}
	db, err := pebble.Open(dir, &pebble.Options{FS: fs, Logger: quietLogger{}})
	if err != nil {
		return nil, err
	}
	commit := func(changes []webhookcfg.Change) error {
		batch := db.NewBatch()
		defer batch.Close()
		for _, c := range changes {
			if err := batch.Set(keyOf(c.Client, c.Scope.Entity()), valueOf(c), nil); err != nil {
				return err
			}
		}
		return batch.Commit(pebble.Sync)
	}
	set := func(_ context.Context, c webhookcfg.Change) error {
		return db.Set(keyOf(c.Client, c.Scope.Entity()), valueOf(c), pebble.Sync)
	}
	return &opened{
		ways: []way{{"Pebble, each set synced", set, fs.syncs.Load}},
		load: func(n int) error { return commitAll(commit, n) },
		url: func(client, entity string) (string, error) {
			value, closer, err := db.Get(keyOf(client, entity))
			if err != nil {
				return "", err
			}
			defer closer.Close()
			return urlOf(value), nil
		},
		close: db.Close,
	}, nil
}

// quietLogger only logs fatal errors.
type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}

func (quietLogger) Fatalf(format string, args ...any) { pebble.DefaultLogger.Fatalf(format, args...) }

// countingFS counts how often written files are synced.
type countingFS struct {
	vfs.FS
	syncs atomic.Int64
}

func (f *countingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.counting(f.FS.Create(name, category))
}

func (f *countingFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.counting(f.FS.ReuseForWrite(from, to, category))
}

func (f *countingFS) counting(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return countingFile{file, &f.syncs}, nil
}

type countingFile struct {
	vfs.File
	syncs *atomic.Int64
}

func (f countingFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}

func (f countingFile) SyncData() error {
	f.syncs.Add(1)
	return f.File.SyncData()
}

// openBolt opens a bbolt store. One way is a transaction for each set, and the other is
// Batch, which waits for concurrent callers.
func openBolt(dir string) (*opened, error) {
	bucket := []byte("webhooks")
	db, err := bbolt.Open(filepath.Join(dir, "bolt"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucket)
		return err
	})
	if err != nil {
		return nil, err
	}
	put := func(tx *bbolt.Tx, c webhookcfg.Change) error {
		return tx.Bucket(bucket).Put(keyOf(c.Client, c.Scope.Entity()), valueOf(c))
	}
	update := func(_ context.Context, c webhookcfg.Change) error {
		return db.Update(func(tx *bbolt.Tx) error { return put(tx, c) })
	}
	batch := func(_ context.Context, c webhookcfg.Change) error {
		return db.Batch(func(tx *bbolt.Tx) error { return put(tx, c) })
	}
	commit := func(changes []webhookcfg.Change) error {
		return db.Update(func(tx *bbolt.Tx) error {
			for _, c := range changes {
				if err := put(tx, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	syncs := func() int64 { return boltSyncs(db) }
	return &opened{
		ways: []way{{"bbolt, a transaction each", update, syncs}, {"bbolt, Batch", batch, syncs}},
		load: func(n int) error { return commitAll(commit, n) },
		url: func(client, entity string) (url string, err error) {
			err = db.View(func(tx *bbolt.Tx) error {
				url = urlOf(tx.Bucket(bucket).Get(keyOf(client, entity)))
				return nil
			})
			return url, err
		},
		close: db.Close,
	}, nil
}

// boltSyncs counts two syncs per transaction, because bbolt syncs its pages and then the meta
// page.
func boltSyncs(db *bbolt.DB) (syncs int64) {
	_ = db.View(func(tx *bbolt.Tx) error {
		syncs = 2 * int64(tx.ID())
		return nil
	})
	return syncs
}

const (
	sqliteSettings = "?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)"
	sqliteSchema   = `CREATE TABLE webhooks (client TEXT, entity TEXT, url TEXT, since INTEGER,
		PRIMARY KEY (client, entity)) WITHOUT ROWID`
	sqliteSet = `INSERT INTO webhooks VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET url = excluded.url, since = excluded.since`
	sqliteGet = `SELECT url FROM webhooks WHERE client = ? AND entity = ?`
)

// sqlite is a store with one connection, because SQLite can only have one writer at a time.
type sqlite struct {
	db      *sql.DB
	set     *sql.Stmt
	commits atomic.Int64
}

// openSQLite opens a SQLite store with a write-ahead log, so a transaction costs one sync.
func openSQLite(dir string) (*opened, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "sqlite")+sqliteSettings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(sqliteSchema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	set, err := db.Prepare(sqliteSet)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &sqlite{db: db, set: set}
	return &opened{
		ways: []way{{"SQLite, a transaction each", s.setOne, s.commits.Load}},
		load: func(n int) error { return commitAll(s.setAll, n) },
		url: func(client, entity string) (url string, err error) {
			err = db.QueryRow(sqliteGet, client, entity).Scan(&url)
			return url, err
		},
		close: func() error { return errors.Join(set.Close(), db.Close()) },
	}, nil
}

func (s *sqlite) setOne(_ context.Context, c webhookcfg.Change) error {
	s.commits.Add(1)
	return insert(s.set, c)
}

func (s *sqlite) setAll(changes []webhookcfg.Change) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	set := tx.Stmt(s.set)
	for _, c := range changes {
		if err := insert(set, c); err != nil {
			return err
		}
	}
	s.commits.Add(1)
	return tx.Commit()
}

func insert(set *sql.Stmt, c webhookcfg.Change) error {
	_, err := set.Exec(c.Client, c.Scope.Entity(), c.URL.Reveal(), c.Time.UnixMicro())
	return err
}

// applyAll makes the first n sets, many of them concurrently.
func applyAll(set func(context.Context, webhookcfg.Change) error, n int, nth func(int) webhookcfg.Change) error {
	return applyBy(1000, set, n, nth)
}

// applyBy makes the first n changes, with this many writers at the same time.
func applyBy(writers int, set func(context.Context, webhookcfg.Change) error, n int, nth func(int) webhookcfg.Change) error {
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
	return errors.Join(errs...)
}

// commitAll commits the first n sets in large transactions.
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

// keyOf and valueOf return a set's key and value for a key-value store.
func keyOf(client, entity string) []byte {
	key := make([]byte, 0, len(client)+1+len(entity))
	key = append(append(key, client...), 0)
	return append(key, entity...)
}

func valueOf(c webhookcfg.Change) []byte {
	url := c.URL.Reveal()
	value := make([]byte, 0, len(url)+8)
	return binary.LittleEndian.AppendUint64(append(value, url...), uint64(c.Time.UnixMicro()))
}

// urlOf returns the URL in a value.
func urlOf(value []byte) string { return string(value[:max(0, len(value)-8)]) }
