package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/go-webhookcfg/examples/internal/backup"
)

// directory returns a directory whose path is short enough for a socket.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "backup")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func listen(t *testing.T, socket string, write func(context.Context, string) error) (*backup.Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := backup.Listen(socket, write, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s, &log
}

// TestAsk: a request reaches the program, and its result the operator and the log.
func TestAsk(t *testing.T) {
	socket := filepath.Join(directory(t), "store.sock")
	var asked []string
	var result error
	s, log := listen(t, socket, func(_ context.Context, path string) error {
		asked = append(asked, path)
		return result
	})
	t.Chdir(t.TempDir())
	want, err := filepath.Abs("copy")
	if err != nil {
		t.Fatal(err)
	}
	if err := backup.Ask(t.Context(), socket, "copy"); err != nil || len(asked) != 1 || asked[0] != want {
		t.Errorf("asked for %q: %v", asked, err)
	}
	result = errors.New("the disk is full")
	if err := backup.Ask(t.Context(), socket, want); err == nil || err.Error() != result.Error() {
		t.Errorf("a backup that fails: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, message := range []string{`msg="backup written" file=` + want, `msg="no backup written" file=` + want + ` error="the disk is full"`} {
		if !strings.Contains(log.String(), message) {
			t.Errorf("the log lacks %s: %s", message, log)
		}
	}
	if err := backup.Ask(t.Context(), socket, want); !errors.Is(err, backup.ErrNobodyListens) {
		t.Errorf("after Close: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(socket)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestLongPath: if nobody could connect to the socket, Listen says so.
func TestLongPath(t *testing.T) {
	socket := filepath.Join(directory(t), strings.Repeat("s", 108))
	s, err := backup.Listen(socket, nil, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "give the store a shorter path") {
		t.Errorf("got %v", err)
	}
	if err == nil {
		_ = s.Close()
	}
}

// TestBadRequests: a request without an absolute path writes nothing.
func TestBadRequests(t *testing.T) {
	socket := filepath.Join(directory(t), "store.sock")
	s, _ := listen(t, socket, func(_ context.Context, path string) error {
		t.Errorf("asked for %q", path)
		return nil
	})
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	absolute, err := filepath.Abs("copy")
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []struct{ method, body string }{
		{"GET", absolute}, {"PUT", absolute}, {"POST", ""}, {"POST", "copy"}, {"POST", absolute + strings.Repeat("x", 4<<10)},
	} {
		r, err := http.NewRequestWithContext(t.Context(), request.method, "http://backup/", strings.NewReader(request.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s with %d bytes: %s", request.method, len(request.body), resp.Status)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestOnlyTheOwnerCanConnect: the socket never has a mode that lets others in.
func TestOnlyTheOwnerCanConnect(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the directory's access list decides")
	}
	socket := filepath.Join(directory(t), "store.sock")
	s, _ := listen(t, socket, func(context.Context, string) error { return nil })
	info, err := os.Lstat(socket)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket has the mode %v, %v", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhatIsThere: a socket that was left behind is replaced, anything else isn't.
func TestWhatIsThere(t *testing.T) {
	socket := filepath.Join(directory(t), "store.sock")
	write := func(context.Context, string) error { return nil }
	killed, _ := listen(t, socket, write)
	s, _ := listen(t, socket, write)
	if err := backup.Ask(t.Context(), socket, socket); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Close(), killed.Close()); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(socket, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Listen(socket, write, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "isn't a socket") {
		t.Errorf("in the place of a file: %v", err)
	}
	if content, err := os.ReadFile(socket); err != nil || string(content) != "precious" {
		t.Errorf("the file is %q, %v", content, err)
	}
	if _, err := backup.Listen(filepath.Join(filepath.Dir(socket), "missing", "sock"), write, slog.New(slog.DiscardHandler)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing directory: %v", err)
	}
}

// TestCloseEndsABackup: a program doesn't wait for a long backup when it ends.
func TestCloseEndsABackup(t *testing.T) {
	socket := filepath.Join(directory(t), "store.sock")
	begun := make(chan struct{})
	s, _ := listen(t, socket, func(ctx context.Context, _ string) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	result := make(chan error, 1)
	go func() { result <- backup.Ask(t.Context(), socket, socket) }()
	<-begun
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; err == nil || err.Error() != context.Canceled.Error() {
		t.Errorf("the request: %v", err)
	}
}
