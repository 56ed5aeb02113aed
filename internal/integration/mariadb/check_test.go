package mariadb

import (
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
	"github.com/go-sql-driver/mysql"
)

// TestCheck: the documented settings give no warning. Each other setting gives its own.
func TestCheck(t *testing.T) {
	t.Parallel()
	db := sqltest.Driver("mysql")(t, shared.Get(t).DSN())
	st, err := sqlstore.New(db, sqlstore.MySQL(), &sqlstore.Options{Prefix: "check_"})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for wait, want := range map[string]string{"1": "", "50": "innodb_lock_wait_timeout to 1"} {
		config, err := mysql.ParseDSN(shared.Get(t).DSN())
		if err != nil {
			t.Fatal(err)
		}
		config.Params = map[string]string{"innodb_lock_wait_timeout": wait}
		db := sqltest.Driver("mysql")(t, config.FormatDSN())
		st, err := sqlstore.New(db, sqlstore.MySQL(), &sqlstore.Options{Prefix: "check_"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := st.Check(t.Context())
		t.Log(got)
		if err != nil || strings.Contains(strings.Join(got, "\n"), "innodb_lock_wait_timeout to 1") != (want != "") {
			t.Errorf("a wait of %s: %q, %v", wait, got, err)
		}
	}
}
