package engine

import (
	"context"
	"fmt"
	"net/url"
	"testing"
)

// PgBouncer returns a pooler in transaction mode for this test only, in front of a server of
// [PostgreSQL] or [SharedPostgreSQL]. It skips the test for an external server, because we
// can't parse every DSN.
func PgBouncer(t testing.TB, server *Server) *Server {
	t.Helper()
	server.SkipIfExternal(t)
	dsn, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	return get(t, pgBouncer(dsn))
}

// pgBouncer is the recipe of a pooler that accepts the user of the server's DSN. It has few
// connections to the server, so that clients share them.
func pgBouncer(server *url.URL) recipe {
	password, _ := server.User.Password()
	return recipe{
		name:     "PgBouncer",
		programs: []string{"usr/sbin/pgbouncer"},
		packages: `pgbouncer`,
		prepare: func(_ context.Context, s *Server) error {
			return s.writeFile("users", fmt.Sprintf("%q %q\n", server.User.Username(), password))
		},
		arguments: func(s *Server, port string) ([]string, error) {
			return []string{s.dir + "/settings"}, s.writeFile("settings", fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 8
max_client_conn = 1000
`, server.Hostname(), server.Port(), port, s.dir+"/users"))
		},
		ready: "process up",
		dsnOf: func(addr string) string {
			dsn := *server
			dsn.Host = addr
			return dsn.String()
		},
	}
}
