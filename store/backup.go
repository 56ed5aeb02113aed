package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
)

// Backup writes a complete copy of the store to a new file, while reads and changes go on.
// The copy has every change that was acknowledged before the call, and maybe later ones, and
// it has no superseded changes. It's the store at one moment during the call. The package
// documentation says how to restore it.
//
// The directory of path must exist. Choose one on another disk: a backup there works even
// when changes fail because of the store's own disk. The same rules apply to path as in
// [OpenFile].
//
// You should give each backup its own name, because Backup doesn't replace files. (It can
// only replace one that another program creates in the instant before the backup is
// complete.) Backup syncs the copy and reads it back before the copy gets its name, so if it
// fails, there's no file. Compactions wait until the backup is complete.
func (f *File) Backup(ctx context.Context, path string) error {
	dir, name, err := openDir(path, &f.options)
	if err != nil {
		return withOp("backup to "+path, err)
	}
	defer dir.Close()
	if absolute, err := filepath.Abs(path); err != nil || absolute == f.path {
		return withOp("backup to "+path, cmp.Or(err, errOwnFile))
	}
	return withOp("backup to "+path, f.log.Backup(ctx, dir, name))
}

var errOwnFile = errors.New("this is the store's own file, choose another name")

func withLogger(o *FileOptions) (*FileOptions, *slog.Logger) {
	if o == nil {
		o = new(FileOptions)
	}
	if o.Logger == nil {
		return o, slog.New(slog.DiscardHandler)
	}
	return o, o.Logger
}
