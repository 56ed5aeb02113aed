package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestSQLiteFileIsPrivate: the URLs in the database are credentials, so other users can't read
// its files. The log says that there was none, as if its directory isn't mounted.
func TestSQLiteFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the access list of the directory decides")
	}
	dir := t.TempDir()
	var log strings.Builder
	d, err := openDatabase("sqlite:"+filepath.Join(dir, "service.db"), true, newLogger(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), filepath.Join(dir, "service.db")) {
		t.Errorf("a file is created, and the log says %q", log.String())
	}
	if err := d.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

// TestSQLitePath: the database is in the file that was named, with its settings, and in no other,
// even if the name has characters that separate the parts of a DSN.
func TestSQLitePath(t *testing.T) {
	for _, name := range []string{"a b.db", "a#b.db", "a%23b.db", "a?mode=memory.db", "a&b;c+ü.db", ":memory:"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "?:") {
			continue
		}
		dir := t.TempDir()
		t.Chdir(dir)
		for _, path := range []string{filepath.Join(dir, name), name} {
			d, err := openDatabase("sqlite:"+path, true, newLogger(t.Output()))
			if err != nil {
				t.Fatal(err)
			}
			err = d.migrate(t.Context())
			warnings, checked := d.webhooks.Check(t.Context())
			if err != nil || checked != nil || len(warnings) > 0 {
				t.Errorf("%s: %v, %v, %q", path, err, checked, warnings)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if base := strings.TrimSuffix(strings.TrimSuffix(file.Name(), "-wal"), "-shm"); base != name {
					t.Errorf("%s: created %s", path, file.Name())
				}
			}
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v, %v", path, info, err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTablesWithoutKeys: without the key of modules or secrets, as after a restore of single tables, no command
// starts, and the error names the table.
func TestTablesWithoutKeys(t *testing.T) {
	for _, table := range []string{"modules", "secrets"} {
		store := newStore(t)
		d, err := openDatabase(store, false, newLogger(t.Output()))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, statement := range []string{"CREATE TABLE bare AS SELECT * FROM " + table, "DROP TABLE " + table, "ALTER TABLE bare RENAME TO " + table} {
			if _, err := d.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		want := "the table " + table + " has lost its primary key"
		if err := d.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", table, err)
		}
		if err := run(t.Context(), []string{"-store", store, "add", "acme"}, withMaster, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: add: %v", table, err)
		}
	}
}

// TestMovedSQLiteFile: if the database file is moved, removed or replaced, the service that has it open serves on,
// but isn't healthy. What it did meanwhile is there again once the file is back with its log.
func TestMovedSQLiteFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be moved")
	}
	const insert = "INSERT INTO modules (client, id, state, version) VALUES ('acme', $1, 'on', 1)"
	store := newStore(t)
	path := strings.TrimPrefix(store, "sqlite:")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := openDatabase(store, false, newLogger(t.Output()))
	check(err)
	check(d.Healthy(t.Context()))
	for name, put := range map[string]func() error{
		"moved":    func() error { return nil },
		"replaced": func() error { return os.WriteFile(path, nil, 0o600) },
	} {
		check(os.Rename(path, path+".old"))
		check(put())
		if err := d.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "stop the service") {
			t.Errorf("the file was %s: %v", name, err)
		}
		_, err = d.change(t.Context(), insert, name)
		check(err)
		check(os.Rename(path+".old", path))
		check(d.Healthy(t.Context()))
	}
	check(os.Rename(path, path+".old"))
	_, err = d.change(t.Context(), insert, "last")
	check(err)
	check(d.Close())
	check(os.Rename(path+".old", path))
	d, err = openDatabase(store, false, newLogger(t.Output()))
	check(err)
	var n int
	if err := d.QueryRowContext(t.Context(), "SELECT count(*) FROM modules").Scan(&n); err != nil || n != 3 {
		t.Errorf("%d of 3 changes are in the file, %v", n, err)
	}
	check(d.Close())
}

// TestRemovedSQLiteLog: if a file next to the database file is removed, the service that has it open serves on, but isn't
// healthy. What it did is there once it was stopped. Without a log, no such files have to be there.
func TestRemovedSQLiteLog(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be removed")
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []string{"-wal", "-shm"} {
		file := strings.TrimPrefix(newStore(t), "sqlite:")
		link := filepath.Join(t.TempDir(), "link.db")
		check(os.Symlink(file, link))
		for _, path := range []string{file, link} {
			d, err := openDatabase("sqlite:"+path, false, newLogger(t.Output()))
			check(err)
			check(d.Healthy(t.Context()))
			_, err = d.change(t.Context(), "INSERT INTO modules (client, id, state, version) VALUES ('acme', $1, 'on', 1)", path)
			check(err)
			check(os.Remove(file + end))
			if err := d.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), file+end+",") || !strings.Contains(err.Error(), "don't kill it") {
				t.Errorf("%s opened, %s removed: %v", path, end, err)
			}
			check(d.Close())
			d, err = openDatabase("sqlite:"+path, false, newLogger(t.Output()))
			check(err)
			var n int
			if err := d.QueryRowContext(t.Context(), "SELECT count(*) FROM modules WHERE id = $1", path).Scan(&n); err != nil || n != 1 {
				t.Errorf("%s opened, %s removed: %d changes are in the file, %v", path, end, n, err)
			}
			check(d.Close())
		}
	}
	d, err := openDatabase(newStore(t), false, newLogger(t.Output()))
	check(err)
	var mode string
	check(d.QueryRowContext(t.Context(), "PRAGMA journal_mode = delete").Scan(&mode))
	check(d.Healthy(t.Context()))
	check(d.Close())
}

// TestRemovedSQLiteFile: /healthz says that a part doesn't work, though each table can be read.
func TestRemovedSQLiteFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be removed")
	}
	store := newStore(t)
	service, _ := start(t, "-store", store)
	expect(t, call(t, http.MethodGet, service+"/healthz", ""), "200 ")
	if err := os.Remove(strings.TrimPrefix(store, "sqlite:")); err != nil {
		t.Fatal(err)
	}
	await(t, func() (bool, string) {
		got := call(t, http.MethodGet, service+"/healthz", "")
		return strings.HasPrefix(got, "503 ") && strings.Contains(got, `"modules":"failing"`), got
	})
}
