package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// copyWorkers is how many changes a copy makes at a time by default.
const copyWorkers = 16

// target is an engine whose stores are copied to and listed.
type target struct {
	name string
	// open returns an empty store, and a function that closes it.
	open func() (webhookcfg.Store, func() error, error)
	// bare reads the names of a page of clients without the store. It's nil if the engine
	// can't.
	bare func(after string, limit int) error
}

// operating compares a copy with the same number of workers that call Apply, and a page of
// clients with a bare query.
func (s settings) operating(t *testing.T, r *report) error {
	dir := t.TempDir()
	targets := []target{fileTarget(dir), sqlTarget("SQLite", "sqlite", "file:"+filepath.Join(dir, "db")+sqliteSettings, sqlstore.SQLite())}
	if s.shared {
		dsn := newDatabase(t, engine.PostgreSQL(t).DSN())
		targets = append(targets, sqlTarget("PostgreSQL", "pgx", dsn, sqlstore.PostgreSQL()))
	}
	records := min(s.loaded, 10_000)
	var copies, pages [][]string
	for _, to := range targets {
		row, err := s.copyTo(to, records)
		if err != nil {
			return fmt.Errorf("%s: %w", to.name, err)
		}
		copies = append(copies, row)
	}
	for _, of := range targets {
		row, err := s.pagesOf(of)
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
		pages = append(pages, row)
	}
	r.section("Copies", fmt.Sprintf(`A copy of %s overrides of %d clients to an empty store, compared with the same changes
through Apply. Both use %d workers.`, grouped(records), clients, copyWorkers))
	r.table([]string{"to", "Copy", "Apply", "ratio of rates", "budget"}, copies...)
	r.section("Lists of clients", `A page of 1,000 clients from the middle of the list, compared with a query that only reads
their names by key.`)
	r.table([]string{"store", "clients", "page", "bare query", "ratio", "budget"}, pages...)
	return nil
}

func fileTarget(dir string) target {
	opened := 0
	return target{name: "**store.File**", open: func() (webhookcfg.Store, func() error, error) {
		opened++
		file, err := openStore(filepath.Join(dir, fmt.Sprint("file", opened)))
		if err != nil {
			return nil, nil, err
		}
		return file, file.Close, nil
	}}
}

// sqlTarget is a database. Each store gets its own tables in it.
func sqlTarget(name, driver, dsn string, dialect sqlstore.Dialect) target {
	opened := 0
	var db *sql.DB
	prefix := func() string { return fmt.Sprintf("bench%d_", opened) }
	to := target{name: "sqlstore, " + name}
	to.open = func() (_ webhookcfg.Store, _ func() error, err error) {
		opened++
		if db, err = sql.Open(driver, dsn); err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(copyWorkers)
		db.SetMaxIdleConns(copyWorkers)
		st, err := sqlstore.New(db, dialect, &sqlstore.Options{Prefix: prefix()})
		if err == nil {
			err = st.Migrate(context.Background())
		}
		if err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
		return st, db.Close, nil
	}
	to.bare = func(after string, limit int) error {
		marks := [2]string{"?", "?"}
		if driver == "pgx" {
			marks = [2]string{"$1", "$2"}
		}
		rows, err := db.Query("SELECT id FROM "+prefix()+"client WHERE id > "+marks[0]+" ORDER BY id LIMIT "+marks[1], []byte(after), limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := 0
		for rows.Next() {
			var name []byte
			if err := rows.Scan(&name); err != nil {
				return err
			}
			n++
		}
		if n != limit {
			return fmt.Errorf("the bare query has %d names", n)
		}
		return rows.Err()
	}
	return to
}

// copyTo measures how fast a copy and Apply are.
func (s settings) copyTo(to target, records int) ([]string, error) {
	src := store.NewMemory()
	if err := applyAll(src.Apply, records, nthSet); err != nil {
		return nil, err
	}
	var copied, applied []float64
	measure := func(do func(st webhookcfg.Store) error) (rate float64, err error) {
		st, closeStore, err := to.open()
		if err != nil {
			return 0, err
		}
		start := time.Now()
		err = do(st)
		rate = float64(records) / time.Since(start).Seconds()
		return rate, errors.Join(err, closeStore())
	}
	for range s.rounds {
		rate, err := measure(func(st webhookcfg.Store) error {
			report, err := admin.Copy(context.Background(), st, src, &admin.CopyOptions{Workers: copyWorkers})
			if err == nil && report.Changes != records {
				err = fmt.Errorf("the copy made %d changes, want %d", report.Changes, records)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		copied = append(copied, rate)
		rate, err = measure(func(st webhookcfg.Store) error { return applyBy(copyWorkers, st.Apply, records, nthSet) })
		if err != nil {
			return nil, err
		}
		applied = append(applied, rate)
	}
	return []string{to.name, rounded(median(copied)) + "/s", rounded(median(applied)) + "/s", spread(quotients(copied, applied)), "≥ 0.5"}, nil
}

// pagesOf measures a page of clients. It uses fewer of them in SQL stores, because they take
// long to make.
func (s settings) pagesOf(of target) ([]string, error) {
	const limit, turns = 1000, 20
	st, closeStore, err := of.open()
	if err != nil {
		return nil, err
	}
	count := s.records
	if of.bare != nil {
		count = min(s.loaded, 20_000)
	}
	name := func(n int) string { return fmt.Sprintf("client-%07d", n) }
	err = applyBy(1000, st.Apply, count, func(n int) webhookcfg.Change {
		if n%2 == 0 { // for every other client, the page has to look for overrides
			return nthSetOf(name(n), n)
		}
		c := nthSetOf(name(n), n)
		base := webhookcfg.SetChange(name(n), webhookcfg.All(), c.URL)
		base.Time = c.Time
		return base
	})
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	lister := st.(admin.ClientLister)
	cursor, last := "", ""
	for range count / limit / 2 {
		page, err := lister.ListClients(context.Background(), cursor, limit)
		if err != nil {
			return nil, errors.Join(err, closeStore())
		}
		cursor, last = page.Next, page.Clients[len(page.Clients)-1]
	}
	var pages, bares []float64
	for range turns {
		start := time.Now()
		page, err := lister.ListClients(context.Background(), cursor, limit)
		if err == nil && len(page.Clients) != limit {
			err = fmt.Errorf("the page has %d clients, want %d", len(page.Clients), limit)
		}
		pages = append(pages, milliseconds(time.Since(start)))
		if err == nil && of.bare != nil {
			start = time.Now()
			err = of.bare(last, limit)
			bares = append(bares, milliseconds(time.Since(start)))
		}
		if err != nil {
			return nil, errors.Join(err, closeStore())
		}
	}
	row := []string{of.name, grouped(count), precise(median(pages)) + " ms", "–", "–", "page ≤ 10 ms"}
	if of.bare != nil {
		row = append(row[:3], precise(median(bares))+" ms", spread(quotients(pages, bares)), "≤ 5")
	}
	return row, closeStore()
}
