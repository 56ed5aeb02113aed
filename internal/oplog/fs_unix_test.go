//go:build unix

package oplog_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestPipesInPlaceOfFiles(t *testing.T) {
	for _, name := range []string{"log", "log.lock"} {
		dir := makeLog(t)
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip("no pipes here: ", err)
		}
		if _, err := openDir(t, dir, false); err == nil || !strings.Contains(err.Error(), name+" is not a regular file") {
			t.Errorf("%s is a pipe: %v", name, err)
		}
	}
}
