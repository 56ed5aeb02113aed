package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// recipe says how to start a server of one engine.
type recipe struct {
	name   string
	dsnEnv string // environment variable with the DSN of a running server, or ""

	programs []string // patterns of the daemon's path below a root
	packages string   // regular expression for the name of the Debian package

	prepare   func(ctx context.Context, s *Server) error // creates the data directory
	arguments func(s *Server, port string) ([]string, error)
	ready     string // the daemon logs this when it accepts connections
	password  string // of the tests' user
	dsnOf     func(addr string) string
}

// postgreSQL is the recipe of a server with the collation of a language, like many services'
// servers. If durable is false, fsync is off.
func postgreSQL(durable bool, more ...string) recipe {
	password := rand.Text()
	settings := []string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=500", "shared_buffers=32MB", "jit=off"}
	if !durable {
		settings = append(settings, "fsync=off")
	}
	settings = append(settings, more...)
	return recipe{
		name:     "PostgreSQL",
		dsnEnv:   "WEBHOOKCFG_POSTGRES_DSN",
		programs: []string{"usr/lib/postgresql/*/bin/postgres"},
		packages: `postgresql-[0-9]+`,
		prepare:  func(ctx context.Context, s *Server) error { return initDB(ctx, s, password) },
		arguments: func(s *Server, port string) ([]string, error) {
			args := []string{"-D", s.data(), "--port=" + port}
			for _, setting := range settings {
				args = append(args, "-c", setting)
			}
			return args, nil
		},
		ready:    "database system is ready to accept", // "connections", or on a standby "read-only connections"
		password: password,
		dsnOf: func(addr string) string {
			dsn := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: addr, Path: "/postgres", RawQuery: "sslmode=disable"}
			return dsn.String()
		},
	}
}

func initDB(ctx context.Context, s *Server, password string) error {
	if err := s.writeFile("password", password); err != nil {
		return err
	}
	return run(ctx, s.program, s.program.sibling("initdb"), strings.NewReader(""),
		"-D", s.data(), "-U", "postgres", "--auth=password", "--pwfile="+s.dir+"/password", "--no-sync",
		"--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
}

// mariaDB is the recipe of a server whose collation ignores letter case, like many services'
// servers.
func mariaDB(durability ...string) recipe {
	password := rand.Text()
	settings := append(durability, "--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=500",
		"--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci")
	return recipe{
		name:     "MariaDB",
		dsnEnv:   "WEBHOOKCFG_MARIADB_DSN",
		programs: []string{"usr/sbin/mariadbd", "usr/libexec/mariadbd"},
		packages: `mariadb-server-core`,
		prepare:  func(ctx context.Context, s *Server) error { return bootstrap(ctx, s, password) },
		arguments: func(s *Server, port string) ([]string, error) {
			own := []string{"--port=" + port, "--init-file=" + s.dir + "/init.sql", "--socket=" + s.dir + "/socket", "--pid-file=" + s.dir + "/pid"}
			return slices.Concat(mariaDBDirs(s), own, settings), nil
		},
		ready: "ready for connections",
		dsnOf: func(addr string) string {
			return fmt.Sprintf("tester:%s@tcp(%s)/webhooks?innodb_lock_wait_timeout=1", password, addr)
		},
	}
}

func mariaDBDirs(s *Server) []string {
	base := filepath.Dir(filepath.Dir(s.program.path))
	return []string{
		"--no-defaults", "--basedir=" + base, "--lc-messages-dir=" + base + "/share/mysql",
		"--datadir=" + s.data(), "--tmpdir=" + s.dir, "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
	}
}

// bootstrap creates the system tables from the server's SQL files. It also writes an init
// file, so that every start has the tests' user and no other.
func bootstrap(ctx context.Context, s *Server, password string) error {
	users := fmt.Sprintf(`CREATE DATABASE IF NOT EXISTS webhooks;
CREATE USER IF NOT EXISTS tester@'127.0.0.1' IDENTIFIED BY '%s';
GRANT ALL ON *.* TO tester@'127.0.0.1' WITH GRANT OPTION;
DELETE FROM mysql.global_priv WHERE User = 'root';
FLUSH PRIVILEGES;
`, password)
	if err := s.writeFile("init.sql", users); err != nil {
		return err
	}
	if err := os.Mkdir(s.data(), 0o700); err != nil {
		return err
	}
	if err := chownToServer(s.data()); err != nil {
		return err
	}
	tables, err := systemTables(s.program)
	if err != nil {
		return err
	}
	return run(ctx, s.program, s.program.path, tables, append(mariaDBDirs(s), "--bootstrap", "--max-allowed-packet=8M", "--debug-no-sync")...)
}

func systemTables(p program) (io.Reader, error) {
	share := filepath.Join(filepath.Dir(filepath.Dir(p.path)), "share/mysql")
	var sql strings.Builder
	sql.WriteString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL, @skip_auth_anonymous = 1;\n")
	for _, name := range []string{"mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data", "maria_add_gis_sp_bootstrap"} {
		text, err := os.ReadFile(filepath.Join(share, name+".sql"))
		if err != nil {
			return nil, err
		}
		sql.Write(text)
	}
	return strings.NewReader(sql.String()), nil
}
