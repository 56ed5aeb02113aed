package sqlite_test

import (
	"errors"
	"sync"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
)

// TestTwelveMigrateAtOnce, each with a handle of its own, as replicas have; some
// of them on a file that is not there yet.
func TestTwelveMigrateAtOnce(t *testing.T) {
	for range 10 {
		path := newPath(t)
		var group sync.WaitGroup
		for range 12 {
			s := newStore(t, openDB(t, path, hurried))
			group.Go(func() {
				if err := s.Migrate(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if err := s.Apply(t.Context(), nth("c", 1)); err != nil {
					t.Errorf("after Migrate: %v", err)
				}
			})
		}
		group.Wait()
	}
}

// TestMigrateKeepsWhatIs: a second Migrate, and the statements of Schema run by
// hand, change nothing.
func TestMigrateKeepsWhatIs(t *testing.T) {
	path := newPath(t)
	s, db := open(t, path), openDB(t, path, hurried)
	if err := s.Apply(t.Context(), nth("c", 7)); err != nil {
		t.Fatal(err)
	}
	cursor, err := s.Changes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := sqlstore.SQLite().Schema("")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range all {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hook, err := s.Resolve(t.Context(), "c", "e1"); err != nil || number(hook) != 7 {
		t.Errorf("got change %d: %v", number(hook), err)
	}
	if changes, err := s.Changes(t.Context(), cursor.Next); err != nil || changes.Reset || len(changes.Clients) > 0 {
		t.Errorf("got %v: %v", changes, err)
	}
}

// TestHalfMigrated: what a Migrate left that was cut short, the next one completes;
// until then all fails.
func TestHalfMigrated(t *testing.T) {
	all, err := sqlstore.SQLite().Schema("")
	if err != nil {
		t.Fatal(err)
	}
	for made := range all {
		db := openDB(t, newPath(t), hurried)
		for _, statement := range all[:made] {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		s := newStore(t, db)
		if err := everything(t, s); err == nil {
			t.Errorf("after %d statements all is well", made)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("after %d statements: %v", made, err)
		}
		if err := everything(t, s); err != nil {
			t.Errorf("migrated after %d statements: %v", made, err)
		}
	}
}

// everything calls every method once, and joins what they return.
func everything(t *testing.T, s *sqlstore.FeedStore) error {
	t.Helper()
	ctx := t.Context()
	errs := []error{s.Apply(ctx, nth("c", 1)), s.Apply(ctx, nth("c", 3))}
	_, err := s.Resolve(ctx, "c", "e1")
	errs = append(errs, err)
	_, err = s.List(ctx, "c", "", 10)
	errs = append(errs, err)
	_, err = s.Versions(ctx, []string{"c"})
	errs = append(errs, err)
	_, err = s.Changes(ctx, "")
	errs = append(errs, err)
	_, err = s.Sweep(ctx, 10)
	for _, err := range append(errs, err) {
		if errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			t.Errorf("in doubt for no reason: %v", err)
		}
	}
	return errors.Join(append(errs, err)...)
}

func TestNewerSchema(t *testing.T) {
	path := newPath(t)
	open(t, path)
	db := openDB(t, path, hurried)
	if _, err := db.ExecContext(t.Context(), `UPDATE wh_schema SET version = version + 1`); err != nil {
		t.Fatal(err)
	}
	if err := newStore(t, db).Migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewerSchema) {
		t.Errorf("got %v", err)
	}
}

// TestPrefixes: two stores of one database do not see each other.
func TestPrefixes(t *testing.T) {
	db := openDB(t, newPath(t), hurried)
	for n, prefix := range []string{"a_", "b_"} {
		s, err := sqlstore.New(db, sqlstore.SQLite(), &sqlstore.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		hook, err := s.Resolve(t.Context(), "c", "e1")
		if err != nil || number(hook) != 0 {
			t.Errorf("%s has change %d: %v", prefix, number(hook), err)
		}
		if err := s.Apply(t.Context(), nth("c", n+1)); err != nil {
			t.Error(err)
		}
	}
}
