package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// maxChanges is the maximum number of clients in one result of a feed.
const maxChanges = 4096

// Changes implements [cache.Feed], with one query. It returns a Reset if more than
// 4,096 clients changed, and if the cursor is from another database, from before the
// table was created again or, on PostgreSQL, from before the server was restarted. After
// a backup was restored into a table of a running server, restart consumers that hold
// cursors.
//
// MySQL and MariaDB do not number changes in the order in which they become visible. With
// their dialect the error of every call wraps [errors.ErrUnsupported].
func (s *Store) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if s.dialect.changes == "" {
		return cache.Changes{}, fmt.Errorf("sqlstore: changes in %s: %w", s.dialect.name, errors.ErrUnsupported)
	}
	from, known := parseCursor(since)
	if !known {
		from.at = math.MaxInt64 // requests only the next cursor
	}
	rows, err := read(ctx, s, s.queries.changes, values{
		"since": strconv.FormatUint(from.at, 10), "limit": maxChanges + 1,
	}, scanChange)
	if err != nil {
		return cache.Changes{}, wrapError("changes", err, egress.URL{})
	}
	if len(rows) == 0 {
		return cache.Changes{}, errors.New("sqlstore: changes: no cursor in the database")
	}
	next := rows[0].next
	changes := cache.Changes{Next: next.String()}
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

// changeRow is the next cursor, with one changed client or none.
type changeRow struct {
	next   feedCursor
	client []byte
}

// scanChange scans a row. Every change that is not yet visible has a number of at least
// oldest. The cursor is at most newest+1, since the database may assign numbers beyond it,
// which no change has, a second time after a crash.
func scanChange(rows *sql.Rows) (changeRow, error) {
	var (
		row            changeRow
		oldest, newest uint64
	)
	err := rows.Scan(&row.next.identity, &oldest, &newest, &row.client)
	row.next.at = min(oldest, newest+1)
	return row, err
}

// feedCursor is a position in the feed: all changes with numbers below at were returned.
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

// maxIDs is the maximum number of clients in one query.
const maxIDs = 256

// Versions implements [cache.Versioner], with a query for every 256 clients. The
// version of a client is a random number written by its last change, so that a version
// from before a backup was restored never equals one from after it. A client that was
// never changed has the version "". The error wraps [webhookcfg.ErrInvalidArgument] if a
// name has more than 1,024 bytes.
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

// versionsOf returns the query for some clients. The number of its parameters is a power
// of two, with the last name repeated, so that drivers prepare few different texts.
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
