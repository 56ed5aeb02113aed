package main

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// variable is an environment variable with an address.
const variable = "WEBHOOKCFG_TEST_STORE"

// TestAddresses: neither a wrong address nor a lost connection shows a password.
func TestAddresses(t *testing.T) {
	f := newFixture(t)
	for _, row := range []struct{ address, complaint string }{
		{secret, "a store is file:PATH"},
		{"oracle:" + secret, "a store is file:PATH"},
		{"postgres:", "a store is file:PATH"},
		{"postgres://u:" + secret + "@127.0.0.1:port/db", "pgx rejects"},
		{"postgres://u:" + secret + "%zz@127.0.0.1/db", "pgx rejects the address; check its syntax"},
		{"postgres://u:" + secret + "@127.0.0.1/db?sslmode=verify-full&sslrootcert=missing.pem", "pgx rejects the address: open missing.pem: "},
		{"mysql:u:" + secret + "@tcp(127.0.0.1:1)", "mysql rejects"},
		{"mysql:u:pa/" + secret + "@tcp(127.0.0.1:1)/db?" + secret + "=" + secret + "&parseTime=" + secret, "mysql rejects"},
		{"etcd:127.0.0.1:1", "endpoints of etcd are URLs"},
		{"etcd:http://u:" + secret + "%zz@127.0.0.1:1", "endpoints of etcd are URLs"},
		{"postgres://u:12/" + secret + "@127.0.0.1/db", "write / as %2F"},
		{"postgres://u:12#" + secret + "@127.0.0.1/db", "write it as %23"},
		{"etcd:http://u:12?" + secret + "@127.0.0.1:1", "write / as %2F"},
		{"postgres://u:12@" + secret + "@127.0.0.1/db", "write @ as %40"},
		{"etcd:http://u:12@" + secret + "@127.0.0.1:1", "write @ as %40"},
		{"etcd:http://127.0.0.1:1/" + secret, "give the prefix of the keys with -prefix"},
		{"etcd:http://u:" + secret + "@127.0.0.1:1,http://other:" + secret + "@127.0.0.1:2", "several users"},
		{"postgres://u:" + secret + "@127.0.0.1:1/db?sslmode=disable", "connection refused"},
		{"postgres:host=127.0.0.1 port=1 password=" + secret, "connection refused"},
		{"mysql:u:" + secret + "@tcp(127.0.0.1:1)/db", "connection refused"},
	} {
		f.run(t.Context(), failure, "", row.complaint, "health", row.address)
		t.Setenv(variable, row.address)
		f.run(t.Context(), failure, "", row.complaint, "clients", "env:"+variable)
	}
	for value, complaint := range map[string]string{
		"\ufefffile:webhooks": "U+FEFF", f.at("webhooks") + "\r": "U+000D", "postgres://u:" + secret + "\u200b@127.0.0.1/db": "U+200B",
	} {
		t.Setenv(variable, value)
		f.run(t.Context(), failure, "", variable+": ", "clients", "env:"+variable)
		f.run(t.Context(), failure, "", complaint, "clients", "env:"+variable)
	}
	t.Setenv(variable, "")
	f.run(t.Context(), failure, "", variable+" is not set", "clients", "env:"+variable)
	t.Setenv(variable, f.at("webhooks"))
	f.run(t.Context(), success, "a\n", "", "clients", "env:"+variable)
	t.Setenv(variable, " "+f.at("webhooks")+" \n")
	f.run(t.Context(), success, "a\n", "", "clients", "env:"+variable)
	t.Setenv(variable, f.inSQLite("new")+"\n# a note")
	f.run(t.Context(), failure, "", variable+": want one line", "copy", "-migrate", f.at("webhooks"), "env:"+variable)
	f.run(t.Context(), failure, "", "without a dollar sign", "clients", "env:postgres://u:"+secret+"@db.example.com/hooks")
	f.run(t.Context(), failure, "", "without a dollar sign", "clients", "env:")
	f.run(t.Context(), failure, "", "file stores", "backup", f.inSQLite("webhooks"), f.at("copy"))
}

// TestPrefixOfAFile: a file store has no prefix, so a command with one doesn't do what was asked.
func TestPrefixOfAFile(t *testing.T) {
	f := newFixture(t)
	for _, c := range commands {
		args := []string{c.name, "-prefix", "x_", f.at("webhooks")}
		for !c.takes(len(args) - 3) {
			args = append(args, f.at("other"))
		}
		if c.name == "set" || c.name == "unset" {
			args = append(args, "e1")
		}
		f.run(t.Context(), failure, "", "a file store has no tables or keys with a prefix", args...)
	}
	f.run(t.Context(), failure, "", "a file store has no tables or keys with a prefix", "copy", "-migrate", "-to-prefix", "x_", f.at("webhooks"), f.at("other"))
	f.run(t.Context(), success, "4 changes", "", "copy", "-migrate", "-to-prefix", "x_", f.at("webhooks"), f.inSQLite("other"))
	f.run(t.Context(), success, "different: 0", "", "verify", "-prefix", "x_", f.inSQLite("other"), f.at("webhooks"))
	if _, err := os.Lstat(f.path("other")); err == nil {
		t.Error("a file was created")
	}
}

// TestSQLitePath: the database is in the file that was named, and in no other, even if the name has
// characters that separate the parts of a DSN.
func TestSQLitePath(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a b", "a#b", "a%23b", "a?mode=memory&b", ":memory:"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "?:") {
			continue
		}
		f.run(t.Context(), success, "4 changes", "", "copy", "-migrate", f.at("webhooks"), f.inSQLite(name))
		f.run(t.Context(), success, "a\n", "", "clients", f.inSQLite(name))
		if info, err := os.Stat(f.path(name + ".db")); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	f.run(t.Context(), failure, "", "unable to open", "clients", f.inSQLite("a"))
}

// TestFileBehindLink: if a symbolic link to a directory is followed by .., the file that a command looks for is
// the one that it would open, so it creates none.
func TestFileBehindLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege")
	}
	f := newFixture(t)
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(f.path("sub"), 0o700), os.Symlink(f.path("sub"), filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), failure, "", "no such file", "clients", "file:"+dir+"/link/../webhooks")
	if _, err := os.Lstat(filepath.Join(dir, "webhooks")); err == nil {
		t.Error("a file was created")
	}
}

// TestSchema: a store of a later version stays as it is.
func TestSchema(t *testing.T) {
	f := newFixture(t)
	at := f.stores()["sqlite"]
	db, err := sql.Open("sqlite", f.path("webhooks.db"))
	if err == nil {
		_, err = db.ExecContext(t.Context(), "UPDATE wh_schema SET version = version + 1")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, args := range [][]string{{"clients", at}, {"health", at}, {"check", at}, {"copy", at, f.at("export")}, {"copy", "-migrate", f.at("webhooks"), at}} {
		f.run(t.Context(), failure, "", "schema of a later version", args...)
	}
}
