package sqlite_test

import (
	"strings"
	"testing"
)

// TestCheck: the documented settings give no warning. Each other setting gives its own.
func TestCheck(t *testing.T) {
	for settings, want := range map[string][]string{
		fileSettings: nil,
		unsynced:     {"synchronous to FULL"},
		"?_pragma=busy_timeout(250)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)":                         {"journal_mode to WAL"},
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)":                         {"busy_timeout to 250"},
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=secure_delete(ON)":                       {"synchronous to FULL", "busy_timeout to 250"},
		"?_pragma=busy_timeout(1)&_pragma=journal_mode(MEMORY)&_pragma=synchronous(3)&_pragma=secure_delete(ON)": {"journal_mode to WAL"},
		"?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)":                         {"secure_delete to ON"},
		strings.Replace(fileSettings, "secure_delete(ON)", "secure_delete(FAST)", 1):                             {"secure_delete to ON"},
	} {
		db := openDB(t, newPath(t), settings)
		s := newStore(t, db)
		if _, err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "Migrate") {
			t.Errorf("%s: without tables: %v", settings, err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{8, 1, 0} {
			db.SetMaxOpenConns(limit)
			want := want
			if limit == 0 {
				want = append([]string{"SetMaxOpenConns"}, want...)
			}
			got, err := s.Check(t.Context())
			if err != nil || len(got) != len(want) {
				t.Errorf("%s, %d connections: %q, %v; want %q", settings, limit, got, err, want)
				continue
			}
			for n := range want {
				if !strings.Contains(got[n], want[n]) {
					t.Errorf("%s, %d connections: %q, want %q", settings, limit, got[n], want[n])
				}
			}
		}
	}
}
