package sqlstore_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestNewInvalid(t *testing.T) {
	db := sql.OpenDB(&fake{})
	defer db.Close()
	for name, tt := range map[string]struct {
		db      *sql.DB
		dialect sqlstore.Dialect
		prefix  string
	}{
		"no database":           {nil, sqlstore.SQLite(), ""},
		"no dialect":            {db, sqlstore.Dialect{}, ""},
		"a prefix to be quoted": {db, sqlstore.SQLite(), "my-"},
		"an injected prefix":    {db, sqlstore.SQLite(), "x; DROP TABLE y; --"},
		"an upper-case prefix":  {db, sqlstore.SQLite(), "WH_"},
		"a digit first":         {db, sqlstore.SQLite(), "1x"},
		"a long prefix":         {db, sqlstore.SQLite(), strings.Repeat("x", 33)},
	} {
		if _, err := sqlstore.New(tt.db, tt.dialect, &sqlstore.Options{Prefix: tt.prefix}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := tt.dialect.Schema(tt.prefix); err == nil && tt.db != nil {
			t.Errorf("%s: no error from Schema", name)
		}
	}
	if _, err := sqlstore.New(db, sqlstore.MySQL(), nil); err != nil {
		t.Error(err)
	}
	if name := (sqlstore.Dialect{}).String(); name != "" {
		t.Errorf("the zero Dialect is called %s", name)
	}
}

// TestSchema: there's a file for each version from 3 on, which a separate tool can run.
// Schema returns their statements with the prefix.
func TestSchema(t *testing.T) {
	for dialect, directory := range map[sqlstore.Dialect]string{
		sqlstore.PostgreSQL(): "postgresql", sqlstore.MySQL(): "mysql", sqlstore.SQLite(): "sqlite",
	} {
		files, err := filepath.Glob(filepath.Join("schema", directory, "*"))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for n, file := range files {
			if name := fmt.Sprintf("%03d.sql", n+3); filepath.Base(file) != name {
				t.Errorf("%s, want %s", file, name)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, strings.Fields(comments.ReplaceAllString(string(text), ""))...)
		}
		all, err := dialect.Schema("")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Fields(strings.Join(all, ";\n") + ";"); !slices.Equal(got, want) || len(all) < 4 {
			t.Errorf("%s: %d statements: %q, want %q", dialect, len(all), got, want)
		}
		prefixed, err := dialect.Schema("px_")
		if err != nil || strings.ReplaceAll(strings.Join(all, ";"), "wh_", "px_") != strings.Join(prefixed, ";") {
			t.Errorf("%s: with a prefix %q: %v", dialect, prefixed, err)
		}
		for _, statement := range all {
			if strings.Contains(statement, ";") || strings.Contains(statement, "--") {
				t.Errorf("%s: %s", dialect, statement)
			}
		}
	}
}

var comments = regexp.MustCompile("(?m)^--.*$")

// template matches anything that a compiled statement can't contain. A view has an @ in a
// text.
var template = regexp.MustCompile(`[{}]|@[a-z]`)

// TestPrefix: every table in every statement has the prefix, and every parameter
// has a value.
func TestPrefix(t *testing.T) {
	for _, dialect := range dialects() {
		var all []string
		checked := false
		s, _ := openUnchecked(t, dialect, &sqlstore.Options{Prefix: "px_"}, func(call string, args []driver.NamedValue) (resultRows, error) {
			all = append(all, strings.ReplaceAll(call, "@@", "")) // variables of MySQL
			for _, arg := range args {
				if arg.Value == nil {
					t.Errorf("%s: parameter %d is NULL in %s", dialect, arg.Ordinal, call)
				}
			}
			switch {
			case strings.HasPrefix(call, "SELECT GET_LOCK"):
				return resultRows{{int64(1)}}, nil
			case strings.HasPrefix(call, "SELECT version,"):
				if !checked {
					checked = true
					return resultRows{{int64(0), true, false}}, nil
				}
				return resultRows{{int64(current), true, false}}, nil
			case strings.HasPrefix(call, "SELECT id, gen"):
				return resultRows{dirtyRow("acme")}, nil
			case strings.HasPrefix(call, "SELECT MIN"):
				return resultRows{{int64(1)}}, nil
			case strings.HasPrefix(call, "SELECT entity"):
				return resultRows{{[]byte("e1")}}, nil
			case strings.Contains(call, "AS identity, NULL,"):
				return resultRows{{false, "id", nil, nil}}, nil
			case strings.Contains(call, "AS identity"):
				return resultRows{{false, "id", "5:5:", int64(5), int64(0), nil}}, nil
			}
			return nil, nil
		})
		errs := []error{
			s.Migrate(t.Context()), s.Apply(t.Context(), set()), s.Apply(t.Context(), unset()), s.Apply(t.Context(), setAll()),
			second(s.Resolve(t.Context(), "acme", "e1")), second(s.List(t.Context(), "acme", "", 1)),
			second(s.Versions(t.Context(), []string{"acme"})), second(s.Sweep(t.Context(), 2)),
			second(s.ListClients(t.Context(), "", 1)), s.Erase(t.Context(), "acme"),
			second(s.LoadDelivery(t.Context(), "acme", webhookcfg.All())), s.SaveDelivery(t.Context(), "acme", webhookcfg.Entity("e1"), deliver.Record{}),
		}
		if _, err := s.Changes(t.Context(), ""); !errors.Is(err, errors.ErrUnsupported) {
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%s: %v", dialect, err)
		}
		text := strings.Join(all, "\n")
		if strings.Contains(text, "wh_") || template.MatchString(text) {
			t.Errorf("%s: template not compiled: %s", dialect, text)
		}
		if strings.Count(text, "px_client") < 5 || strings.Count(text, "px_override") < 5 || strings.Count(text, "px_delivery") < 5 {
			t.Errorf("%s: few tables in %s", dialect, text)
		}
	}
}

// TestTimesInColumns: every change stores its time in microseconds, also an unset of all.
func TestTimesInColumns(t *testing.T) {
	for _, dialect := range dialects() {
		for name, c := range map[string]webhookcfg.Change{
			"set": set(), "unset": unset(), "set all": setAll(), "unset all": webhookcfg.UnsetChange("acme", webhookcfg.All()),
		} {
			c.Time = time.UnixMicro(1767323045_123456).Add(789)
			stored := false
			s, _ := openFake(t, dialect, nil, func(_ string, args []driver.NamedValue) (resultRows, error) {
				stored = stored || slices.ContainsFunc(args, func(a driver.NamedValue) bool { return a.Value == int64(1767323045_123456) })
				return nil, nil
			})
			if err := s.Apply(t.Context(), c); err != nil || !stored {
				t.Errorf("%s: the time of %s is not stored: %v", dialect, name, err)
			}
		}
	}
}

// TestTooLong: the store rejects names and URLs that an engine would truncate, without a
// query.
func TestTooLong(t *testing.T) {
	long := strings.Repeat("x", 1025)
	s, f := openFake(t, sqlstore.MySQL(), nil, failing("nothing", nil, 0))
	for name, err := range map[string]error{
		"client":          s.Apply(t.Context(), webhookcfg.UnsetChange(long, webhookcfg.All())),
		"entity":          s.Apply(t.Context(), webhookcfg.UnsetChange("acme", webhookcfg.Entity(long))),
		"URL":             s.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(strings.Repeat("x", 65536)))),
		"resolved client": second(s.Resolve(t.Context(), long, "e1")),
		"resolved entity": second(s.Resolve(t.Context(), "acme", long)),
		"listed client":   second(s.List(t.Context(), long, "", 1)),
		"versions":        second(s.Versions(t.Context(), []string{"acme", long})),
		"sweep":           second(s.Sweep(t.Context(), 0)),
		"erased client":   s.Erase(t.Context(), long),
		"erase of none":   s.Erase(t.Context(), ""),
		"no clients":      second(s.ListClients(t.Context(), "", 0)),
		"no cursor":       second(s.ListClients(t.Context(), "zeta", 1)),
		"an empty cursor": second(s.ListClients(t.Context(), "after ", 1)),
		"loaded client":   second(s.LoadDelivery(t.Context(), long, webhookcfg.All())),
		"loaded entity":   second(s.LoadDelivery(t.Context(), "acme", webhookcfg.Entity(long))),
		"saved client":    s.SaveDelivery(t.Context(), long, webhookcfg.All(), deliver.Record{}),
		"saved entity":    s.SaveDelivery(t.Context(), "acme", webhookcfg.Entity(long), deliver.Record{}),
		"no scope":        s.SaveDelivery(t.Context(), "acme", webhookcfg.Entity(""), deliver.Record{}),
		"no client":       second(s.LoadDelivery(t.Context(), "", webhookcfg.All())),
	} {
		if !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.count("") > 0 {
		t.Errorf("sent %s", f.shape())
	}
}

// TestValues: a driver gets names and URLs as bytes, and doesn't convert them.
func TestValues(t *testing.T) {
	c := webhookcfg.SetChange("a\xff", webhookcfg.Entity("\x00"), egress.NewURL("https://x"))
	c.Time = time.Time{}
	s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
		if !strings.HasPrefix(call, "WITH") {
			return nil, nil
		}
		got := fmt.Sprintf("%q %q %q %d", args[0].Value, args[3].Value, args[2].Value, args[4].Value)
		if want := `"a\xff" "\x00" "https://x" -62135596800000000`; got != want || len(args) != 5 {
			t.Errorf("%s, want %s", got, want)
		}
		return nil, nil
	})
	if err := s.Apply(t.Context(), c); err != nil {
		t.Error(err)
	}
}
