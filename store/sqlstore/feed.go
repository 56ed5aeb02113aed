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
	// maxChanges is how many clients one result of a feed has at most.
	maxChanges = 4096
	// maxRunning is how many transactions a cursor has at most. If more are running, the
	// cursor stops at the next one, and later changes are reported again.
	maxRunning = 1024
)

// Changes implements [cache.Feed] with one query. It returns a Reset if
//
//   - more than 4,096 clients changed,
//   - [Store.Sweep] has deleted the row of a client that changed after the cursor,
//   - the cursor is from another database, or from before a table was created again,
//   - on PostgreSQL, the server was started after the cursor was made. So you also get one
//     after a failover or a restored backup.
//
// If you restore a backup into a table while the server keeps running, restart the processes
// that hold cursors. A long transaction doesn't make Changes report a client twice.
//
// The store isn't a [cache.Notifier]. PostgreSQL's NOTIFY takes a lock that all writers
// share, is silent on a frozen connection, and doesn't work through a connection pooler.
//
// With the dialect [MySQL] the error of every call wraps [errors.ErrUnsupported]. MySQL and
// MariaDB don't number changes in the order in which they become visible, so a cursor would
// miss some.
func (s *Store) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if s.dialect.changes == "" {
		return cache.Changes{}, fmt.Errorf("sqlstore: changes in %s: %w", s.dialect.Name, errors.ErrUnsupported)
	}
	from, known := parseCursor(since)
	if !known {
		from.below = math.MaxInt64 // only asks for the next cursor
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
		return cache.Changes{}, errors.New("sqlstore: changes: the schema table has no row: call Migrate")
	}
	reset := !known || next.identity != from.identity || next.below < from.below || len(changes.Clients) > maxChanges
	if !reset {
		// The newest change may have replaced a change with a higher number.
		below = max(below, from.below)
	}
	// Numbers beyond the newest change aren't used yet. After a crash, the database may
	// assign them a second time without a new identity.
	next.clip(below)
	if reset || next.misses(from, erased) {
		changes.Reset, changes.Clients = true, nil
	}
	changes.Next = next.String()
	return changes, nil
}

// misses reports whether an erased client may have changed between an earlier cursor and this
// one. erased is the highest number of such a change, and no row shows it any more.
func (c feedCursor) misses(from feedCursor, erased uint64) bool {
	if erased >= from.below {
		return true
	}
	return slices.ContainsFunc(from.running, func(n uint64) bool {
		_, stillRunning := slices.BinarySearch(c.running, n)
		return n <= erased && !stillRunning
	})
}

// changeRow has either the next cursor or a changed client.
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

// feedCursor is a position in the feed. All changes with lower numbers were returned, except
// those in transactions that were still running.
type feedCursor struct {
	identity string // the server's and its tables'
	below    uint64
	running  []uint64 // in ascending order
}

// newCursor returns the position of a snapshot. The syntax is PostgreSQL's, xmin:xmax:xips:
// each transaction below xmax has ended, except for the xips.
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

// clip moves a position back to a lower one.
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

// parseCursor parses a cursor. It returns false if the text can't be a cursor of this store.
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

// maxIDs is how many clients one query asks for at most.
const maxIDs = 256

// Versions implements [cache.Versioner], with a query for every 256 clients. It works with
// all dialects.
//
// A client's last change writes a random number. The version is this number together with the
// identity of the server. On PostgreSQL, MySQL and MariaDB the identity includes the time
// when the server started (in seconds on MySQL and MariaDB). So a version from before a
// failover or a restored backup never equals a version from after it.
//
// The error wraps [webhookcfg.ErrInvalidArgument] if a name has more than 1,024 bytes.
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
		// The version of a client without a row changes whenever the row of any client is
		// deleted, because it may have been this one's.
		identity, absent, marks := "", "", make(map[string]string, len(some))
		for _, row := range rows {
			if row.client == "" {
				identity, absent = row.identity, "."+strconv.FormatInt(row.mark, 36)
			} else {
				marks[row.client] = strconv.FormatInt(row.mark, 36)
			}
		}
		if identity == "" {
			return nil, errors.New("sqlstore: versions: the schema table has no row: call Migrate")
		}
		for _, client := range some {
			versions = append(versions, identity+"/"+cmp.Or(marks[client], absent))
		}
	}
	return versions, nil
}

// versionRow is either the identity of the server with the number of erased clients, or a
// client with its mark.
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

// versionsOf returns the query for some clients. It repeats the last name until the number of
// parameters is a power of two. So drivers only prepare a few different texts.
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
	return s.dialect.Compile(template, ""), v
}
