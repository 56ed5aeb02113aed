package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"example.com/go-webhookcfg/examples/internal/textfile"
)

const addresses = `STORE, FROM, TO, COPY and NEW are addresses of stores:
  file:PATH                               a file store that no service has open
  sqlite:PATH                             the file of an SQLite database
  postgres://USER@HOST/DATABASE           any URL or, after "postgres:", any DSN of pgx
  mysql:USER:PASSWORD@tcp(HOST)/DATABASE  any DSN of go-sql-driver/mysql; MariaDB too
  etcd:https://USER@HOST:2379,https://…   the endpoints of a cluster
  env:NAME                                the address in the environment variable NAME
Other users of the machine can see your arguments. Put an address with a password into a
variable. For PostgreSQL, you can also use PGPASSWORD or a .pgpass file.
`

// address says where a store is.
type address struct {
	// scheme is the kind of store. place is the rest, which can have a password.
	scheme, place string
	// prefix is for the names of tables or keys.
	prefix string
}

func parseAddress(text, prefix string) (address, error) {
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		if !isVariable(name) {
			// Don't show the text: the shell may have put a password there.
			return address{}, errors.New("env: takes the name of a variable, as in env:STORE, without a dollar sign")
		}
		value := os.Getenv(name)
		if text = strings.TrimSpace(value); text == "" {
			return address{}, fmt.Errorf("the environment variable %s is not set", name)
		}
		err := textfile.Check(value) // perhaps it comes from a file, which often ends a line
		if err == nil && strings.Contains(text, "\n") {
			err = errors.New("want one line")
		}
		if err != nil {
			return address{}, fmt.Errorf("the environment variable %s: %w", name, err)
		}
	}
	scheme, place, _ := strings.Cut(text, ":")
	if schemes[scheme] == nil || place == "" {
		// Don't show the text, which can have a password.
		return address{}, errors.New("a store is file:PATH, sqlite:PATH, postgres://…, mysql:…, etcd:… or env:NAME; see -h")
	}
	if scheme == "file" && prefix != "" {
		return address{}, errors.New("a file store has no tables or keys with a prefix: leave out -prefix or, for TO, -to-prefix")
	}
	return address{scheme, place, prefix}, nil
}

// isVariable reports whether text can be the name of a variable, and not its value.
func isVariable(text string) bool {
	return strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == "" && text != ""
}

// filePath returns the path of a file store.
func filePath(text, prefix string) (string, error) {
	at, err := parseAddress(text, prefix)
	if err == nil && at.scheme != "file" {
		err = errors.New("this command works with file stores only; use copy to export another store to a file")
	}
	return at.place, err
}
