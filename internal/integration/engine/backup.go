package engine

import (
	"context"
	"errors"
	"os"
	"strings"
)

// Save copies the data directory of a killed server, in place of an earlier copy.
func (s *Server) Save() error { return s.replaceDir(s.data(), s.saved()) }

// Restore replaces the data directory of a killed server by the copy of [Server.Save].
func (s *Server) Restore() error { return s.replaceDir(s.saved(), s.data()) }

func (s *Server) saved() string { return s.dir + "/saved" }

func (s *Server) replaceDir(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return errors.Join(os.RemoveAll(to), s.copyDir(ctx, from, to))
}

// copyDir copies a directory with the rights of the server.
func (s *Server) copyDir(ctx context.Context, from, to string) error {
	return run(ctx, s.program, "cp", strings.NewReader(""), "-a", from, to)
}

// writeFile creates a file that only the server can read, at a path below its directory.
func (s *Server) writeFile(path, text string) error {
	path = s.dir + "/" + path
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return chownToServer(path)
}
