package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestFileErase: the file has no byte of a client that was erased, and all others stay. A client
// with anything set stays too.
func TestFileErase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	f, err := store.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	hooktest.Apply(t, f,
		hooktest.SetAll("erased", 1), hooktest.Set("erased", "e1", 2), hooktest.UnsetAll("erased", 3),
		hooktest.SetAll("kept", 4),
		hooktest.SetAll("off", 5), hooktest.Unset("off", "e1", 6),
		hooktest.Set("override", "e1", 7))
	for _, client := range []string{"erased", "kept", "off", "override", "unknown"} {
		if err := f.Erase(t.Context(), client); err != nil {
			t.Errorf("%s: %v", client, err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]int{"erased": 0, "unknown": 0, "kept": 1, "off": 2, "override": 1} {
		if got := bytes.Count(file, []byte(`"`+client+`"`)); got != want {
			t.Errorf("the file has %d records of %q, want %d", got, client, want)
		}
	}
	if err := f.Erase(t.Context(), ""); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("without a client: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Erase(t.Context(), "erased"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("of a closed store: %v", err)
	}
}
