package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const (
	// maxChanges is the maximum number of clients in one result of a feed.
	maxChanges = 4096
	// maxRunning is the maximum number of transactions in a cursor. With more of them, the
	// cursor is the position of the next one, and later changes are reported again.
	maxRunning = 1024
)

// Changes implements [cache.Feed], with one query. It returns a Reset if more than
// 4,096 clients changed, if the cursor is older than the last change of a client whose row
// [Store.Sweep] has deleted, and if it is from another database, from before the
// table was created again or, on PostgreSQL, from before the server was started: also if
// its data was restored, or if another server took its place. After a backup was restored
// into a table of a running server, restart the processes that hold cursors.
//
// MySQL and MariaDB do not number changes in the order in which they become visible. With
// their dialect the error of every call wraps [errors.ErrUnsupported].
func (s *Store) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if s.dialect.changes == "" {
		return cache.Changes{}, fmt.Errorf("sqlstore: changes in %s: %w", s.dialect.name, errors.ErrUnsupported)
	}
	from, known := parseCursor(since)
	if !known {
		from.below = math.MaxInt64 // requests only the next cursor
	}
	rows, err := read(ctx, s, s.queries.changes, values{
		"since": strconv.FormatUint(from.below, 10), "running": "{" + joinNumbers(from.running) + "}", "limit": maxChanges + 1,
	}, scanChange)
	if err != nil {
		return cache.Changes{}, s.wrapError("changes", err, egress.URL{})
	}
	var (
		next    feedCursor
		below   uint64
		erased  uint64
		changes cache.Changes
	)
	for _, row := range rows {
		if row.cursor.identity != "" {
			next, below, erased = row.cursor, max(row.newest, row.erased)+1, row.erased
		} else {
			changes.Clients = append(changes.Clients, string(row.client))
		}
	}
	if next.identity == "" {
		return cache.Changes{}, errors.New("sqlstore: changes: no cursor in the database")
	}
	reset := !known || next.identity != from.identity || next.below < from.below || len(changes.Clients) > maxChanges
	if !reset {
		// The newest change may have replaced one with a higher number.
		below = max(below, from.below)
	}
	// The database may assign numbers beyond the newest one, which no change has, a second
	// time after a crash of which its identity shows nothing.
	next.clip(below)
	if reset || next.misses(from, erased) {
		changes.Reset, changes.Clients = true, nil
	}
	changes.Next = next.String()
	return changes, nil
}

// misses reports whether a change with a number up to erased may lie between an earlier cursor
// and this one. If it was the last one of a client that was erased since, no row shows it.
func (c feedCursor) misses(from feedCursor, erased uint64) bool {
	if erased >= from.below {
		return true
	}
	return slices.ContainsFunc(from.running, func(n uint64) bool {
		_, stillRunning := slices.BinarySearch(c.running, n)
		return n <= erased && !stillRunning
	})
}

// changeRow is the next cursor or a changed client.
type changeRow struct {
	cursor feedCursor
	newest uint64 // the highest number of a change
	erased uint64 // the highest number of a change of an erased client
	client []byte
}

func scanChange(rows *sql.Rows) (row changeRow, err error) {
	var (
		identity, snapshot sql.NullString
		newest, erased     sql.NullInt64
	)
	if err := scanRow(rows, &identity, &snapshot, &newest, &erased, &row.client); err != nil || !identity.Valid {
		return row, err
	}
	row.newest, row.erased = uint64(newest.Int64), uint64(erased.Int64)
	row.cursor, err = newCursor(identity.String, snapshot.String)
	return row, err
}

// feedCursor is a position in the feed: all changes with numbers below it were returned,
// except those of transactions that had not ended.
type feedCursor struct {
	identity string // of the server and its table
	below    uint64
	running  []uint64 // in ascending order
}

// newCursor returns the position of a snapshot in the syntax of PostgreSQL, xmin:xmax:xips.
// Each transaction below xmax has ended, unless it is one of xips.
func newCursor(identity, snapshot string) (c feedCursor, err error) {
	c.identity = identity
	_, text, _ := strings.Cut(snapshot, ":")
	xmax, xips, _ := strings.Cut(text, ":")
	if c.below, err = strconv.ParseUint(xmax, 10, 64); err == nil {
		c.running, err = parseNumbers(xips)
	}
	if len(c.running) > maxRunning {
		c.clip(c.running[maxRunning])
	}
	return c, err
}

// clip moves a position that is beyond another one back to it.
func (c *feedCursor) clip(below uint64) {
	if below < c.below {
		c.below = below
		n, _ := slices.BinarySearch(c.running, below)
		c.running = c.running[:n]
	}
}

func (c feedCursor) String() string {
	return c.identity + "/" + strconv.FormatUint(c.below, 10) + "/" + joinNumbers(c.running)
}

// parseCursor reports whether the text may be that of a cursor.
func parseCursor(text string) (feedCursor, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] == "" {
		return feedCursor{}, false
	}
	below, err := strconv.ParseUint(parts[1], 10, 63)
	running, rerr := parseNumbers(parts[2])
	return feedCursor{parts[0], below, running}, err == nil && rerr == nil && len(running) <= maxRunning
}

func joinNumbers(numbers []uint64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatUint(n, 10)
	}
	return strings.Join(texts, ",")
}

func parseNumbers(text string) (numbers []uint64, err error) {
	if text == "" {
		return nil, nil
	}
	for number := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// maxIDs is the maximum number of clients in one query.
const maxIDs = 256

// Versions implements [cache.Versioner], with a query for every 256 clients. The version of
// a client consists of a random number written by its last change, and of the identity of
// the server, which includes the time of its start. So a version from before a backup was
// restored, or from before a failover that lost changes, never equals one from after it. The
// error wraps [webhookcfg.ErrInvalidArgument] if a name has more than 1,024 bytes.
func (s *Store) Versions(ctx context.Context, clients []string) ([]string, error) {
	if err := checkNames(clients...); err != nil {
		return nil, err
	}
	versions := make([]string, 0, len(clients))
	for some := range slices.Chunk(clients, maxIDs) {
		q, v := s.versionsOf(some)
		rows, err := read(ctx, s, q, v, scanVersion)
		if err != nil {
			return nil, s.wrapError("versions", err, egress.URL{})
		}
		// While a client has no row, its version changes with every deletion of one, which may
		// have been its own.
		identity, absent, marks := "", "", make(map[string]string, len(some))
		for _, row := range rows {
			if row.client == "" {
				identity, absent = row.identity, "."+strconv.FormatInt(row.mark, 36)
			} else {
				marks[row.client] = strconv.FormatInt(row.mark, 36)
			}
		}
		if identity == "" {
			return nil, errors.New("sqlstore: versions: no identity in the database")
		}
		for _, client := range some {
			versions = append(versions, identity+"/"+cmp.Or(marks[client], absent))
		}
	}
	return versions, nil
}

// versionRow is the identity of the server with the number of erased clients, or a client with
// its mark.
type versionRow struct {
	identity, client string
	mark             int64
}

func scanVersion(rows *sql.Rows) (versionRow, error) {
	var (
		identity sql.NullString
		client   []byte
		mark     sql.NullInt64
	)
	err := scanRow(rows, &identity, &client, &mark)
	return versionRow{identity.String, string(client), mark.Int64}, err
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
