// Package backup lets an operator ask a running program for a backup of its file store. You
// can copy the package.
//
// The program listens on a Unix socket next to the store, which only the program's user can
// connect to. The request is an HTTP POST whose body is the path of the new file, so without
// examples/admin you can use curl. No file is replaced, so give each backup its own name, and without
// --fail-with-body curl ends with 0 even if there's no backup:
//
//	curl --fail-with-body --unix-socket /var/lib/hooks/webhooks.jsonl.sock --data "/var/backups/webhooks-$(date +%F).jsonl" http://backup/
package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Suffix makes the path of a store's socket out of the path of the store.
const Suffix = ".sock"

// Server writes backups on request.
type Server struct {
	path   string
	server http.Server
	served chan struct{}
	cancel context.CancelFunc
}

// Listen listens on a socket at path until Close. For each request, it calls write with the
// absolute path of the new file. A socket that a killed program left behind is replaced.
//
// Only the user of the process can connect. On Windows the directory's access list decides,
// as it does for the store. The operating system limits the length of path, to about 100
// bytes.
func Listen(path string, write func(ctx context.Context, path string) error, logger *slog.Logger) (*Server, error) {
	listener, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("listening for requests for backups: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{path: path, served: make(chan struct{}), cancel: cancel}
	s.server = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			target, err := requested(w, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if err := write(r.Context(), target); err != nil {
				logger.Error("no backup written", "file", target, "error", err)
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			logger.Info("backup written", "file", target)
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(s.served)
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("no more requests for backups", "error", err)
		}
	}()
	return s, nil
}

// listen creates the socket in a directory of its own, and moves it to path once nobody else
// can connect.
func listen(path string) (net.Listener, error) {
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(path) > most { // nobody could connect
		return nil, fmt.Errorf("%s has %d bytes, and a socket's path can have %d here: give the store a shorter path", path, len(path), most)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket == 0 {
		return nil, fmt.Errorf("%s is there already, and isn't a socket", path)
	}
	if runtime.GOOS == "windows" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return net.Listen("unix", path)
	}
	private, err := os.MkdirTemp(filepath.Dir(path), "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	socket := filepath.Join(private, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // it's about to have another name
	if err = os.Chmod(socket, 0o600); err == nil {
		err = os.Rename(socket, path)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// requested returns the path in a request.
func requested(w http.ResponseWriter, r *http.Request) (string, error) {
	if r.Method != http.MethodPost {
		return "", errors.New("want a POST whose body is the path of the new file")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<10))
	if err != nil {
		return "", err
	}
	path := string(bytes.TrimRight(body, "\r\n"))
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is not an absolute path", path)
	}
	return path, nil
}

// Close removes the socket, and ends a backup that is being written.
func (s *Server) Close() error {
	err := os.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) { // for example, because its directory was moved
		err = nil
	}
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, s.server.Shutdown(ctx))
	<-s.served
	return err
}

// ErrNobodyListens means that no program listens on the socket.
var ErrNobodyListens = errors.New("no program listens for requests for backups")

// Ask asks the program that listens on a socket to write a backup to a new file, and waits
// until it's complete. The program creates the file, so if it runs in a container, the path is
// one in that container. The error wraps [ErrNobodyListens] if nothing was asked.
func Ask(ctx context.Context, socket, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrNobodyListens, err)
		}
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://backup/", strings.NewReader(path))
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(text)))
	}
	return err
}
