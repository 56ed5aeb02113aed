package engine

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
)

// postgreSQL is the recipe of a server whose default collation is that of a
// language, as in many a service. One that is not durable writes as ever, and does
// not wait for the disk.
func postgreSQL(durable bool) recipe {
	password := rand.Text()
	settings := []string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=500", "shared_buffers=32MB", "jit=off"}
	if !durable {
		settings = append(settings, "fsync=off")
	}
	return recipe{
		name:     "PostgreSQL",
		dsnVar:   "WEBHOOKCFG_POSTGRES_DSN",
		programs: []string{"usr/lib/postgresql/*/bin/postgres"},
		packages: `postgresql-[0-9]+`,
		prepare:  func(ctx context.Context, s *Server) error { return initDB(ctx, s, password) },
		arguments: func(s *Server) []string {
			args := []string{"-D", s.data()}
			for _, setting := range settings {
				args = append(args, "-c", setting)
			}
			return args
		},
		ready: "database system is ready to accept connections",
		dsnOf: func(addr string) string {
			dsn := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: addr, Path: "/postgres", RawQuery: "sslmode=disable"}
			return dsn.String()
		},
	}
}

func initDB(ctx context.Context, s *Server, password string) error {
	file := s.dir + "/password"
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		return err
	}
	if err := giveAway(file); err != nil {
		return err
	}
	return run(ctx, s.program, s.program.beside("initdb"), strings.NewReader(""),
		"-D", s.data(), "-U", "postgres", "--auth=password", "--pwfile="+file, "--no-sync",
		"--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
}
