package sqlstore

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

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
			return nil, wrap("versions", err, egress.URL{})
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
	return newStatement(template, "", s.grammar.numbered), v
}
