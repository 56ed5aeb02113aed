package admin_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// sealStore wraps a store.
func sealStore(t *testing.T, inner webhookcfg.Store) webhookcfg.Store {
	t.Helper()
	key, err := sealed.NewKey("k", bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.SharedKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	st, err := sealed.New(inner, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// sealedConforms runs a case of the conformance suite on the sealed store of a server or SQLite.
// Package store/sealed runs the suite on a file itself.
func sealedConforms(t *testing.T, p place, c storetest.Case) {
	var last func() error
	open := func(webhookcfg.Store) webhookcfg.Store {
		st, closeStore, err := p.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = closeStore
		t.Cleanup(func() { _ = closeStore() }) // again, if it was reopened
		return sealStore(t, st)
	}
	reopen := func(webhookcfg.Store) webhookcfg.Store {
		if err := last(); err != nil {
			t.Error(err)
		}
		return open(nil)
	}
	env := storetest.Env{Store: open(nil), OpenPeer: open, Crash: open, Reopen: reopen, Short: true}
	switch err := c.Check(patience(t), env); {
	case errors.Is(err, storetest.ErrAbsent):
		t.Skip(err)
	case err != nil:
		t.Error(err)
	}
}

// seal searches everything that an engine keeps for the parts of URLs, while the store is open.
// In a sealed store there are none, and in a plain one the search finds them everywhere.
func seal(t *testing.T, fresh func() place) {
	for _, isSealed := range []bool{true, false} {
		p, token := fresh(), fmt.Sprintf("t0ken-sealed-%v", isSealed)
		p.use(t, func(st webhookcfg.Store) {
			inner := st
			if isSealed {
				st = sealStore(t, inner)
			}
			set := func(path string) {
				url := egress.NewURL(fmt.Sprintf("https://%s.example/%s/%s?q=%s", token, token, path, token))
				for n := range 30 {
					hooktest.Apply(t, st, hooktest.At(n, webhookcfg.SetChange("acme", webhookcfg.Entity(fmt.Sprint("e", n)), url)))
				}
				hooktest.Apply(t, st, hooktest.At(40, webhookcfg.SetChange("globex", webhookcfg.All(), url)))
			}
			set("first")
			settle(t, p)
			set("last")
			for name, content := range kept(t, p, inner) {
				if hasToken := has(content, token); hasToken == isSealed {
					t.Errorf("%s: sealed: %v, a URL is readable: %v", name, isSealed, hasToken)
				}
				if isSealed && !has(content, "sealed.1.k.") {
					t.Errorf("%s: no envelope found", name)
				}
			}
		})
	}
}

// has reports whether a content has a text, as it is or in hexadecimal.
func has(content []byte, text string) bool {
	return bytes.Contains(content, []byte(text)) || bytes.Contains(content, []byte(hex.EncodeToString([]byte(text))))
}

// settle makes SQLite move what its log has to the file, so that both have something.
func settle(t *testing.T, p place) {
	if p.engine == "sqlite" {
		p.exec(t, "PRAGMA wal_checkpoint(PASSIVE)")
	}
}

// exec executes statements on one connection.
func (p place) exec(t *testing.T, statements ...string) {
	t.Helper()
	db, _, err := p.openSQL()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// kept returns what an engine keeps of an open store: its files, its log, a dump and a backup. The
// log of a server that's external isn't there.
func kept(t *testing.T, p place, st webhookcfg.Store) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"rows": []byte(keeps(t, p))}
	backup := filepath.Join(t.TempDir(), "backup")
	files := make(map[string]string) // directories or patterns
	switch p.engine {
	case "file":
		if err := st.(*store.File).Backup(t.Context(), backup); err != nil {
			t.Fatal(err)
		}
		files["file"], files["backup"] = p.address, backup
	case "sqlite":
		p.exec(t, "VACUUM INTO '"+backup+"'")
		path, _, _ := strings.Cut(strings.TrimPrefix(p.address, "file:"), "?")
		files["file"], files["log"], files["backup"] = path, path+"-wal", backup
	case "postgres":
		all["dump"] = dumpPostgreSQL(t, p)
		p.exec(t, "CHECKPOINT")
		files["files"], files["log"] = "base", "pg_wal"
	case "mariadb":
		var statements []string
		for _, table := range []string{"client", "override"} { // which writes the pages
			statements = append(statements, "FLUSH TABLES "+p.prefix+table+" FOR EXPORT", "UNLOCK TABLES")
		}
		p.exec(t, statements...)
		files["files"], files["log"] = "webhooks", "ib_logfile*"
	case "etcd":
		all["backup"] = snapshot(t, p) // which also writes what the log has to the file
		files["file"], files["log"] = "data/member/snap/db", "data/member/wal"
	}
	for name, pattern := range files {
		if !filepath.IsAbs(pattern) {
			if p.data == "" {
				continue
			}
			pattern = filepath.Join(p.data, pattern)
		}
		all[name] = contents(t, pattern)
	}
	return all
}

// contents returns the contents of files, and of all in directories.
func contents(t *testing.T, pattern string) []byte {
	t.Helper()
	var all bytes.Buffer
	roots, err := filepath.Glob(pattern)
	if err != nil || len(roots) == 0 {
		t.Fatalf("%s: %q, %v", pattern, roots, err)
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				var content []byte
				content, err = os.ReadFile(path)
				all.Write(content)
			}
			if errors.Is(err, fs.ErrNotExist) { // the server has removed it meanwhile
				err = nil
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.Bytes()
}

// dumpPostgreSQL copies the tables out, as pg_dump does.
func dumpPostgreSQL(t *testing.T, p place) []byte {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var all bytes.Buffer
	for _, table := range []string{"client", "override"} {
		if _, err := conn.PgConn().CopyTo(t.Context(), &all, "COPY "+p.prefix+table+" TO STDOUT"); err != nil {
			t.Fatal(err)
		}
	}
	return all.Bytes()
}

// snapshot returns a backup of etcd.
func snapshot(t *testing.T, p place) []byte {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.address}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stream, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	content, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
