package dialect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/internal/dialect"
)

func TestCompile(t *testing.T) {
	const template = `SELECT @@port, @b FROM {client} WHERE id = @a AND other = @b AND at < 7`
	for _, test := range []struct {
		engine dialect.Engine
		want   dialect.Statement
	}{
		{dialect.PostgreSQL, dialect.Statement{Text: `SELECT @@port, $1 FROM x_client WHERE id = $2 AND other = $1 AND at < 7`, Params: []string{"b", "a"}}},
		{dialect.MySQL, dialect.Statement{Text: `SELECT @@port, ? FROM x_client WHERE id = ? AND other = ? AND at < 7`, Params: []string{"b", "a", "b"}}},
		{dialect.SQLite, dialect.Statement{Text: `SELECT @@port, ? FROM x_client WHERE id = ? AND other = ? AND at < 7`, Params: []string{"b", "a", "b"}}},
	} {
		t.Run(test.engine.Name, func(t *testing.T) {
			got := test.engine.Compile(template, "x_")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("wrong statement (-want +got):\n%s", diff)
			}
			want := []any{"B", "A", "B"}[:len(got.Params)]
			if diff := cmp.Diff(want, got.Args(dialect.Values{"a": "A", "b": "B", "c": "C"})); diff != "" {
				t.Errorf("wrong arguments (-want +got):\n%s", diff)
			}
			if now := test.engine.Compile(`SELECT {now}`, "x_"); now.Text != "SELECT "+test.engine.Now || len(now.Params) > 0 {
				t.Errorf("the time is %+v", now)
			}
		})
	}
}

func TestPrefix(t *testing.T) {
	for prefix, want := range map[string]string{
		"": "wh_", "a": "a", "hooks_2_": "hooks_2_", strings.Repeat("a", 32): strings.Repeat("a", 32),
		"_a": "", "2a": "", "A": "", "a-b": "", "a b": "", `a"`: "", "ä": "", strings.Repeat("a", 33): "",
	} {
		got, err := dialect.Prefix(prefix)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", prefix, got, err)
		}
	}
}

func TestSchema(t *testing.T) {
	got := dialect.Schema("-- About it.\nCREATE TABLE wh_a (\n  b text\n);\n\n-- More.\nINSERT INTO wh_a VALUES ('1');\n", "x_")
	want := []string{"CREATE TABLE x_a (\n  b text\n)", "INSERT INTO x_a VALUES ('1')"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong statements (-want +got):\n%s", diff)
	}
}
