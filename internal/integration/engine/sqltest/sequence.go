package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"testing"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// sequence is a feed by numbers of a sequence, which are drawn in another order
// than that in which transactions commit.
type sequence struct {
	db    *sql.DB
	table string
}

// sequenceMisses has the test of the feed catch it.
func (e Engine) sequenceMisses(t *testing.T, dsn string) {
	s := sequence{e.open(t, dsn), prefix(t, e.open(t, dsn)) + "client"}
	execute(t, s.db, "CREATE TABLE "+s.table+" (id text, n bigserial)")
	const rounds = 20
	for range rounds {
		missed, err := watch(t.Context(), s, s.apply)
		if err != nil {
			t.Fatal(err)
		}
		if len(missed) > 0 {
			t.Logf("it missed %d of %d changes", len(missed), watchWriters*watchEach)
			return
		}
		execute(t, s.db, "TRUNCATE "+s.table)
	}
	t.Errorf("it missed nothing in %d rounds", rounds)
}

// apply does in its transaction what takes the time that work takes there.
func (s sequence) apply(ctx context.Context, c webhookcfg.Change) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	for _, statement := range []string{"INSERT INTO " + s.table + " (id) VALUES ($1)", "DELETE FROM " + s.table + " WHERE n < 0 AND id = $1"} {
		if _, err := tx.ExecContext(ctx, statement, c.Client); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// Changes implements [cache.Feed], wrongly.
func (s sequence) Changes(ctx context.Context, since string) (changes cache.Changes, err error) {
	last, _ := strconv.ParseInt(since, 10, 64)
	rows, err := s.db.QueryContext(ctx, "SELECT id, n FROM "+s.table+" WHERE n > $1 ORDER BY n", last)
	if err != nil {
		return changes, err
	}
	defer rows.Close()
	for rows.Next() {
		var client string
		if err := rows.Scan(&client, &last); err != nil {
			return changes, err
		}
		changes.Clients = append(changes.Clients, client)
	}
	changes.Next, changes.Reset = strconv.FormatInt(last, 10), since == ""
	return changes, rows.Err()
}
