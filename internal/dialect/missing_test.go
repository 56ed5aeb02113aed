package dialect_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/internal/dialect"
)

func TestCreated(t *testing.T) {
	statements := dialect.Schema("-- About it.\nCREATE TABLE IF NOT EXISTS wh_a (b text);\nCREATE INDEX IF NOT EXISTS wh_a_b ON wh_a (b);\nCREATE TABLE IF NOT EXISTS wh_c (\n  d text);\nINSERT INTO wh_a VALUES ('1');\n", "x_")
	tables := dialect.Created(statements)
	if diff := cmp.Diff([]string{"x_a", "x_c"}, tables); diff != "" {
		t.Errorf("wrong tables (-want +got):\n%s", diff)
	}
	const want = " AND (SELECT COUNT(*) FROM x_a WHERE 1 = 0) = 0 AND (SELECT COUNT(*) FROM x_c WHERE 1 = 0) = 0"
	if got := dialect.SQLite.Present(tables); got != want {
		t.Errorf("got %s", got)
	}
	const keys = " AND (SELECT COUNT(*) FROM pg_index WHERE indisprimary AND indrelid IN ('x_a'::regclass, 'x_c'::regclass)) = 2"
	if got := dialect.PostgreSQL.Present(tables); got != want+keys {
		t.Errorf("got %s", got)
	}
}

// TestMissingWithoutPrivilege: the catalogue of MySQL hides tables, so only the server's code for a
// missing one counts. It isn't even asked.
func TestMissingWithoutPrivilege(t *testing.T) {
	missing, err := dialect.MySQL.Missing(t.Context(), nil, []string{"wh_a"}, errors.New("Error 1142 (42000): SELECT command denied"))
	if len(missing) > 0 || err != nil {
		t.Errorf("got %q, %v", missing, err)
	}
}

type stateError string

func (e stateError) Error() string    { return "permission denied" }
func (e stateError) SQLState() string { return string(e) }

// TestDenied: the code counts, whether it's a method of the driver's error or in its text.
func TestDenied(t *testing.T) {
	for _, test := range []struct {
		engine dialect.Engine
		cause  error
		want   bool
	}{
		{dialect.PostgreSQL, fmt.Errorf("query: %w", stateError("42501")), true},
		{dialect.PostgreSQL, errors.New("ERROR: permission denied for table wh_delivery (SQLSTATE 42501)"), true},
		{dialect.PostgreSQL, stateError("28P01"), false},
		{dialect.MySQL, errors.New("Error 1142 (42000): SELECT command denied to user"), true},
		{dialect.MySQL, errors.New("Error 1045 (28000): Access denied for user"), false},
		{dialect.SQLite, errors.New("access denied"), false},
	} {
		if got := test.engine.Denied(test.cause); got != test.want {
			t.Errorf("%s, %v: %t", test.engine.Name, test.cause, got)
		}
	}
}
