package dsn_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/go-webhookcfg/examples/internal/dsn"
)

// TestSQLite: characters that separate the parts of a name are escaped in a path.
func TestSQLite(t *testing.T) {
	got, err := dsn.SQLite("a b#c?d%23&e.db", "_pragma=x(1)")
	if err != nil || !strings.HasPrefix(got, "file:///") || !strings.HasSuffix(got, "/a%20b%23c%3Fd%2523&e.db?mode=rw&_pragma=x(1)") {
		t.Errorf("got %s, %v", got, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.db")
	if got, err := dsn.SQLite(path, ""); err != nil || got != "file://"+path+"?mode=rw&" {
		t.Errorf("got %s, %v", got, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.Symlink(filepath.Join(dir, "sub"), link)); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{link + "/../a.db", filepath.Dir(link) + "/./link/..//a.db"} { // the file that os.Open opens
		if got, err := dsn.SQLite(named, ""); err != nil || got != "file://"+path+"?mode=rw&" {
			t.Errorf("%s: got %s, %v", named, got, err)
		}
	}
	if got, err := dsn.SQLite(filepath.Join(dir, "missing", "a.db"), ""); err == nil {
		t.Errorf("without the directory: %s", got)
	}
}

// TestCheckURL: a password that isn't escaped would move the host to another place.
func TestCheckURL(t *testing.T) {
	for _, text := range []string{
		"postgres://u@h/d", "postgres://u:p%23%2F%3F%40@h/d?sslmode=disable", "postgres://u:p@h,i:5433/d", "postgres:///d?host=/run/postgresql",
		"postgres://u@h/d?user=a%40b", "https://u:p@h:2379",
	} {
		if err := dsn.CheckURL(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"postgres://u:12#s3cret@h/d", "postgres://u:12/s3cret@h/d", "postgres://u:12?s3cret@h/d", "postgres://u@h/d#s3cret", "https://u:12/s3cret@h:2379",
		"postgres://u:12@s3cret@h/d", "postgres://u:12@s3cret@h?sslmode=disable", "postgres://u:12@h,u:s3cret@i/d", "https://u:12@s3cret@h:2379",
	} {
		if err := dsn.CheckURL(text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
