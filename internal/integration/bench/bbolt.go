package main

import (
	"context"
	"path/filepath"

	"example.com/go-webhookcfg/webhookcfg"
	"go.etcd.io/bbolt"
)

// openBolt opens a bbolt store. Its own ways are a transaction for each set, and
// Batch, which waits for others to come.
func openBolt(dir string) (*contender, error) {
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
	commit := func(changes []webhookcfg.Change) error {
		return db.Update(func(tx *bbolt.Tx) error {
			for _, c := range changes {
				if err := tx.Bucket(bucket).Put(keyOf(c.Client, c.Scope.Entity()), valueOf(c)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	update := func(_ context.Context, c webhookcfg.Change) error {
		return commit([]webhookcfg.Change{c})
	}
	batch := func(_ context.Context, c webhookcfg.Change) error {
		return db.Batch(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(keyOf(c.Client, c.Scope.Entity()), valueOf(c)) })
	}
	syncs := func() int64 { return boltSyncs(db) }
	return &contender{
		ways: []way{
			{"bbolt, a transaction each", update, syncs},
			{"bbolt, Batch", batch, syncs},
		},
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

// boltSyncs counts two for each transaction: one for the pages that it wrote and
// one for the page that names them.
func boltSyncs(db *bbolt.DB) (syncs int64) {
	_ = db.View(func(tx *bbolt.Tx) error {
		syncs = 2 * int64(tx.ID())
		return nil
	})
	return syncs
}
