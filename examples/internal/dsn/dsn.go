// Package dsn makes the data source names of databases that an operator has named. A character that
// separates the parts of a name never makes it another name. You can copy the package.
package dsn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// SQLite returns the name of the database in a file, for modernc.org/sqlite: any path, and settings
// as in a query. SQLite opens the file only if it exists, because it would create one that other
// users can read.
func SQLite(path, settings string) (string, error) {
	dir, name := filepath.Split(path)
	dir = cmp.Or(dir, ".")
	var err error
	if runtime.GOOS != "windows" { // elsewhere, a/.. isn't here if a is a symbolic link
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		path, err = filepath.Abs(filepath.Join(dir, name))
	}
	if err != nil {
		return "", err
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive of Windows
		path = "/" + path
	}
	file := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&" + settings}
	return file.String(), nil
}

// Rejected returns the error of a driver that rejects a name: text with the error of a file that it can't read, such
// as a certificate, and text with the hint after any other cause, which is left out because it can quote a password.
func Rejected(text, hint string, cause error) error {
	if file, ok := errors.AsType[*fs.PathError](cause); ok {
		return fmt.Errorf("%s: %w", text, file)
	}
	return errors.New(text + hint)
}

// CheckURL refuses the URL of a server if its password or another part isn't escaped, so that it
// would name another server. An error doesn't quote the URL.
func CheckURL(text string) error {
	_, rest, _ := strings.Cut(text, "://")
	if strings.Contains(rest, "#") {
		return errors.New("the URL has a #, and what follows would be ignored: write it as %23")
	}
	server, path := rest, ""
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		server, path = rest[:end], rest[end:]
	}
	if strings.Count(server, "@") > 1 { // pgx looks for the host behind the first one, and others behind the last one
		return errors.New("the URL has more than one @ before a / or ?: in a password, write @ as %40, and name the user only before the first host")
	}
	if strings.Contains(path, "@") {
		return errors.New("the URL has an @ after a / or ?: in a password, write / as %2F, ? as %3F and @ as %40, and write %40 for an @ behind the host")
	}
	return nil
}
