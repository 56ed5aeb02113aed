package dialect_test

import (
	"errors"
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
	if got := dialect.Present(tables); got != want {
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
