package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var (
	_ webhookcfg.Store  = (*FeedStore)(nil)
	_ webhookcfg.Lister = (*FeedStore)(nil)
	_ webhookcfg.Feed   = (*FeedStore)(nil)
)

// maxChanges is how many clients one answer of a feed names at most.
const maxChanges = 4096

// FeedStore is a [Store] that is a [webhookcfg.Feed] too: the database tells which
// clients changed. It comes from [Store.WithFeed].
type FeedStore struct{ *Store }

// WithFeed returns the store as one that is a [webhookcfg.Feed]. Where the dialect
// has nothing that numbers changes in the order in which they become visible, the
// error wraps [errors.ErrUnsupported]; the store is a [webhookcfg.Versioner] all
// the same. It does no I/O.
func (s *Store) WithFeed() (*FeedStore, error) {
	if s.dialect.changes == "" {
		return nil, fmt.Errorf("sqlstore: a feed of %s: %w", s.dialect.name, errors.ErrUnsupported)
	}
	return &FeedStore{s}, nil
}

// Changes implements [webhookcfg.Feed], with one query. It answers with a Reset
// where more than 4,096 clients changed, and when the cursor is of another
// database, of a table that was made anew or, on PostgreSQL, of a server that was
// started again since. After a backup was restored over a table that a server kept
// serving, start anew whoever keeps cursors.
func (s *FeedStore) Changes(ctx context.Context, since string) (webhookcfg.Changes, error) {
	from, known := parseCursor(since)
	if !known {
		from.at = math.MaxInt64 // asks for the next cursor alone
	}
	rows, err := read(ctx, s.Store, s.queries.changes, values{
		"since": strconv.FormatUint(from.at, 10), "limit": maxChanges + 1,
	}, scanChange)
	if err != nil {
		return webhookcfg.Changes{}, wrapError("changes", err, egress.URL{})
	}
	if len(rows) == 0 {
		return webhookcfg.Changes{}, errors.New("sqlstore: changes: the database gave no cursor")
	}
	next := rows[0].next
	changes := webhookcfg.Changes{Next: next.String()}
	if !known || next.identity != from.identity || next.at < from.at || len(rows) > maxChanges {
		changes.Reset = true
		return changes, nil
	}
	for _, row := range rows {
		if row.client != nil {
			changes.Clients = append(changes.Clients, string(row.client))
		}
	}
	return changes, nil
}

// changeRow is the next cursor with one client, or with none.
type changeRow struct {
	next   feedCursor
	client []byte
}

// scanChange reads a row. Every change that is yet to be seen has a number of at
// least oldest. And one more than newest is enough where that is less: numbers
// beyond it, which no change has, may be given a second time after a crash.
func scanChange(rows *sql.Rows) (changeRow, error) {
	var (
		row            changeRow
		oldest, newest uint64
	)
	err := rows.Scan(&row.next.identity, &oldest, &newest, &row.client)
	row.next.at = min(oldest, newest+1)
	return row, err
}

// feedCursor says that all changes with numbers below at have been named.
type feedCursor struct {
	identity string
	at       uint64
}

func (c feedCursor) String() string { return c.identity + "/" + strconv.FormatUint(c.at, 10) }

func parseCursor(text string) (feedCursor, bool) {
	identity, number, _ := strings.Cut(text, "/")
	at, err := strconv.ParseUint(number, 10, 63)
	return feedCursor{identity, at}, err == nil && identity != ""
}

// maxIDs is how many clients one query asks for.
const maxIDs = 256

// Versions implements [webhookcfg.Versioner], with a query for every 256 clients.
// The version of a client is a number of chance that its last change left, so that
// one from before a backup was restored is never taken for one from after it; a
// client of whom nothing was ever changed has "". A name of more than 1,024 bytes
// gives an error that wraps [webhookcfg.ErrInvalidArgument].
func (s *Store) Versions(ctx context.Context, clients []string) ([]string, error) {
	if err := checkNames(clients...); err != nil {
		return nil, err
	}
	marks := make(map[string]string)
	for first := 0; first < len(clients); first += maxIDs {
		if err := s.readMarks(ctx, clients[first:min(first+maxIDs, len(clients))], marks); err != nil {
			return nil, wrapError("versions", err, egress.URL{})
		}
	}
	versions := make([]string, len(clients))
	for i, client := range clients {
		versions[i] = marks[client]
	}
	return versions, nil
}

func (s *Store) readMarks(ctx context.Context, clients []string, marks map[string]string) error {
	q, v := s.versionsOf(clients)
	_, err := read(ctx, s, q, v, func(rows *sql.Rows) (struct{}, error) {
		var (
			id   []byte
			mark int64
		)
		err := rows.Scan(&id, &mark)
		marks[string(id)] = strconv.FormatInt(mark, 36)
		return struct{}{}, err
	})
	return err
}

// versionsOf is the query for some clients. Its length is a power of two, with the
// last name repeated, so that there are few texts for a driver to prepare.
func (s *Store) versionsOf(clients []string) (statement, values) {
	size := 1
	for size < len(clients) {
		size *= 2
	}
	v := make(values, size)
	names := make([]string, size)
	for i := range size {
		name := "id" + strconv.Itoa(i)
		names[i] = "@" + name
		v[name] = []byte(clients[min(i, len(clients)-1)])
	}
	template := strings.Replace(s.queries.versions, "@ids", strings.Join(names, ", "), 1)
	return newStatement(template, "", s.dialect.numbered), v
}
