package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
)

// heldPathVar is the environment variable that makes this program hold a store open.
const heldPathVar = "WEBHOOKCFG_TEST_HELD_PATH"

// TestTwoProcesses opens the file of another process: under its name, under another one, and
// without the lock file. The other process compacts it after each change. Once that process
// is killed, the file opens with everything that it acknowledged.
func TestTwoProcesses(t *testing.T) {
	if path := os.Getenv(heldPathVar); path != "" {
		holdOpen(path)
	}
	t.Parallel()
	path, links := filepath.Join(t.TempDir(), "webhooks.jsonl"), t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestTwoProcesses$")
	child.Env = append(os.Environ(), heldPathVar+"="+path)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	replies, want := bufio.NewScanner(out), model{}
	for n := range 20 {
		fmt.Fprintln(in, n)
		if !replies.Scan() {
			t.Error("the other process ended")
			break
		}
		want.apply(nth(clients[0], n))
		checkLocked(t, path)
		link := filepath.Join(links, fmt.Sprint(n))
		if err := os.Link(path, link); err != nil {
			t.Log(err)
		} else {
			checkLocked(t, link)
		}
		if runtime.GOOS != "windows" {
			if err := os.Remove(path + ".lock"); err != nil {
				t.Error(err)
			}
			checkLocked(t, path)
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if got := observe(openFile(t, path, nil), clients[0]); got != want.show(clients[0]) {
		t.Errorf("after the other process was killed:\n%swant\n%s", got, want.show(clients[0]))
	}
}

func checkLocked(t *testing.T, path string) {
	t.Helper()
	file, err := store.OpenFile(path, nil)
	if err == nil {
		_ = file.Close()
	}
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "stop the process that has it open") {
		t.Errorf("a second process opened the file: %v", err)
	}
}

// holdOpen makes and reports one change for each line of the input.
func holdOpen(path string) {
	file, err := store.OpenFile(path, nil)
	requests := bufio.NewScanner(os.Stdin)
	for n := 0; err == nil && requests.Scan(); n++ {
		err = errors.Join(file.Apply(context.Background(), nth(clients[0], n)), file.Compact(context.Background()))
		if err == nil {
			fmt.Println(n)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}
