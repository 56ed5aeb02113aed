package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestErase(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *sql.DB, string, *sqlstore.Store){
		"reader that was away": sqltest.Erase, "followers": sqltest.Follow, "clients": sqltest.Clients, "view": sqltest.View,
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			test(t, openDB(t, path, unsynced), "wh_", open(t, path))
		})
	}
}

// TestErasedBytes: with the documented settings, no file has a path or query of an erased
// client. Without secure_delete there are some, so the test can fail.
func TestErasedBytes(t *testing.T) {
	for settings, isClean := range map[string]bool{
		unsynced: true,
		strings.Replace(unsynced, "&_pragma=secure_delete(ON)", "", 1): false,
	} {
		path := newPath(t)
		db := openDB(t, path, settings)
		st := newStore(t, db)
		if err := st.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 300 {
			for client, token := range map[string]string{"acme": "t0ken", "other": "kept"} {
				c := webhookcfg.SetChange(client, webhookcfg.Entity(fmt.Sprint("e", n)), egress.NewURL("https://h.example.com/"+token))
				if err := st.Apply(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := admin.Erase(t.Context(), st, "acme"); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		erased, kept := 0, 0
		for _, name := range files {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			erased += bytes.Count(content, []byte("t0ken"))
			kept += bytes.Count(content, []byte("kept"))
		}
		if (erased == 0) != isClean || kept < 300 {
			t.Errorf("%s: the files have %d tokens of the erased client, and %d of the other", settings, erased, kept)
		}
	}
}
