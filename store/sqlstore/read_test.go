package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestReadRetries: a retry discards the rows of the failed attempt.
func TestReadRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := failing("SELECT pg_is_in_recovery(), 0", stateError("40001"), 2)
		s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if _, err := fails(call, args); err != nil || !strings.HasPrefix(call, "SELECT pg_is_in_recovery(), 0") {
				return nil, err
			}
			return resultRows{
				{false, int64(0), []byte("acme"), []byte("https://a.example/"), int64(1)},
				{false, int64(1), []byte("e1"), []byte(""), int64(2)},
				{false, int64(1), []byte("e2"), []byte("https://b.example/"), int64(3)},
			}, nil
		})
		page, err := s.List(t.Context(), "acme", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if page.Base.Source != webhookcfg.SourceBase || len(page.Overrides) != 1 || page.Next != "e1" {
			t.Errorf("got %v", page)
		}
	})
}

// TestDemoted: every read checks whether the server has become a standby.
func TestDemoted(t *testing.T) {
	for _, dialect := range dialects() {
		s, f := openFake(t, dialect, nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			switch {
			case strings.Contains(call, "AS identity, NULL,"):
				return resultRows{{true, "db", nil, nil}}, nil
			case strings.Contains(call, "AS identity"):
				return resultRows{{true, "db", "5:5:", int64(5), int64(0), nil}}, nil
			case strings.Contains(call, "q ON true"):
				return resultRows{{true, nil, nil}}, nil
			case strings.Contains(call, "FROM (SELECT 1) p LEFT JOIN wh_delivery"):
				return resultRows{{true, nil, nil, nil, nil, nil, nil}}, nil
			}
			return resultRows{{true, int64(0), nil, nil, nil}}, nil
		})
		for name, call := range calls(s) {
			reads := name == "resolve" || name == "list" || name == "versions" || name == "load" || name == "clients" || name == "changes" && dialect != sqlstore.MySQL()
			if err := call(t.Context()); reads && !errors.Is(err, sqlstore.ErrStandby) {
				t.Errorf("%s: %s: %v", dialect, name, err)
			}
			if n := f.db.Stats().InUse; n > 0 {
				t.Errorf("%s: %s keeps %d connections", dialect, name, n)
			}
		}
	}
}

// TestReadBreaksOff: if the connection breaks after a row, a read returns the error, and no
// rows.
func TestReadBreaksOff(t *testing.T) {
	rows := func(row ...driver.Value) resultRows { return resultRows{row, {io.ErrUnexpectedEOF}} }
	s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
		switch {
		case strings.Contains(call, "AS identity, NULL,"):
			return rows(false, "db", nil, nil), nil
		case strings.Contains(call, "AS identity"):
			return rows(false, "db", "5:5:", int64(5), int64(0), nil), nil
		case isLoad(call):
			return rows(false, int64(1), int64(1), int64(5), int64(2), int64(4), int64(3)), nil
		}
		return rows(false, []byte("https://a.example/"), int64(1), nil, nil), nil
	})
	check := func(name string, isZero bool, err error) {
		t.Helper()
		if !isZero || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: result is zero: %v: %v", name, isZero, err)
		}
	}
	w, err := s.Resolve(t.Context(), "acme", "e1")
	check("resolve", sameWebhook(w, webhookcfg.Webhook{}), err)
	r, err := load(s)
	check("load", r == deliver.Record{}, err)
	versions, err := s.Versions(t.Context(), []string{"acme"})
	check("versions", versions == nil, err)
	changes, err := s.Changes(t.Context(), "")
	check("changes", changes.Next == "", err)
}

// TestWebhooksOfRows: a client without a URL has no base, and an override without a URL is off.
func TestWebhooksOfRows(t *testing.T) {
	const url = "https://a.example/"
	for _, tt := range []struct {
		base, override string
		overridden     bool
		want           webhookcfg.Webhook // of the entity
	}{
		{"", "", false, webhookcfg.Webhook{}},
		{url, "", false, webhookcfg.Webhook{URL: egress.NewURL(url), Source: webhookcfg.SourceBase, Since: time.UnixMicro(1).UTC()}},
		{url, "", true, webhookcfg.Webhook{Source: webhookcfg.SourceOff, Since: time.UnixMicro(2).UTC()}},
		{"", url, true, webhookcfg.Webhook{URL: egress.NewURL(url), Source: webhookcfg.SourceOverride, Since: time.UnixMicro(2).UTC()}},
	} {
		s, _ := openFake(t, sqlstore.SQLite(), nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			list, since := resultRows{{false, int64(0), []byte("acme"), []byte(tt.base), int64(1)}}, driver.Value(nil)
			if tt.overridden {
				list, since = append(list, []driver.Value{false, int64(1), []byte("e1"), []byte(tt.override), int64(2)}), int64(2)
			}
			switch {
			case strings.Contains(call, "ORDER BY part"):
				return list, nil
			case strings.HasPrefix(call, "SELECT"):
				return resultRows{{false, []byte(tt.base), int64(1), []byte(tt.override), since}}, nil
			}
			return nil, nil
		})
		if got, err := s.Resolve(t.Context(), "acme", "e1"); !sameWebhook(got, tt.want) || err != nil {
			t.Errorf("resolved %+v, want %+v: %v", got, tt.want, err)
		}
		page, err := s.List(t.Context(), "acme", "", 1)
		listed := page.Base
		if len(page.Overrides) > 0 {
			listed = page.Overrides[0].Webhook
		}
		if len(page.Overrides) > 0 != tt.overridden || !sameWebhook(listed, tt.want) || err != nil {
			t.Errorf("listed %+v, want %+v: %v", page, tt.want, err)
		}
	}
}

func sameWebhook(a, b webhookcfg.Webhook) bool {
	return a.URL.Equal(b.URL) && a.Source == b.Source && a.Since.Equal(b.Since)
}
