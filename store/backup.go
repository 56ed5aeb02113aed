package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"example.com/go-webhookcfg/internal/oplog"
)

// Backup writes a complete copy of the store to the new file path, in an existing
// directory, which may be on another file system. It runs concurrently with reads and
// changes: the copy is the store as it was at a moment during the call, with every change
// that was acknowledged before. It is synced and read back before it gets its name, and
// has the format of the file, without superseded changes; see the package documentation
// for restoring it. Compactions wait for a backup. If changes fail because of the disk of
// the file, a backup to another one still works.
//
// Backup doesn't replace a file, except one that another program creates in the instant
// before the copy gets its name: give each backup a name of its own. After an error it leaves
// no file. The directory and the file are subject to the same rules as in [OpenFile].
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

var errOwnFile = errors.New("the file of the store itself")

// FileReport is the result of reading the file of a [File] that is not open.
type FileReport struct {
	// Bytes is the length of the file.
	Bytes int64
	// Changes is how many intact changes it has, including superseded ones.
	Changes int
	// Lost are the first 100 regions that are not intact, or not in their place, in the
	// order of their offsets. LostRegions and LostBytes cover all of them.
	Lost        []FileRegion
	LostRegions int
	LostBytes   int64
}

// FileRegion is a part of a file.
type FileRegion struct {
	// Line is the number of the line that it starts in; the first one is 1.
	Line int
	// Offset and Length are in bytes. The region of bytes that are missing at the end of
	// the file starts there.
	Offset, Length int64
}

const maxLost = 100

func (r *FileReport) lose(region oplog.Region) {
	r.LostBytes += region.Length
	if n := len(r.Lost); n > 0 && r.Lost[n-1].Offset+r.Lost[n-1].Length == region.Offset {
		r.Lost[n-1].Length += region.Length
		return
	}
	r.LostRegions++
	if len(r.Lost) < maxLost {
		r.Lost = append(r.Lost, FileRegion(region))
	}
}

// CheckFile reads the file path, which is not open, as [OpenFile] does, and leaves it as it
// is. If it is damaged, the error wraps [ErrDamaged]; if it is open, [ErrLocked]. The
// report has a torn tail, which OpenFile would cut, as a lost region. Of the options,
// CompactRatio is not used.
func CheckFile(ctx context.Context, path string, o *FileOptions) (r FileReport, err error) {
	o, logger := withLogger(o)
	dir, name, err := openDir(path, o)
	if err != nil {
		return r, fmt.Errorf("store: checking %s: %w", path, err)
	}
	defer dir.Close()
	r.Bytes, r.Changes, err = oplog.Check(ctx, dir.ReadOnly(), name, logger, r.lose)
	if err != nil {
		return r, fmt.Errorf("store: checking %s: %w", path, err)
	}
	return r, nil
}

// SalvageFile copies the intact changes of the file damaged to a new file fresh, which must not
// exist, and reports what it left out. The damaged file must not be open, and is not
// changed. It may have lost its header, its end, any blocks, or blocks may be repeated or
// in another place; but a file of a later version of the format is refused. A file that
// the system cannot read through must be copied first.
//
// A lost change never took place in the new file: the entity has the webhook again that it
// had before, also if the change was to remove it, and if the change was of all entities
// of a client, they all do. Compare the result with what the clients want, before a sender
// uses it.
//
// The new file has its name only when it is complete. After an error, there is none. Of
// the options, CompactRatio is not used.
func SalvageFile(ctx context.Context, damaged, fresh string, o *FileOptions) (r FileReport, err error) {
	o, logger := withLogger(o)
	from, name, err := openDir(damaged, o)
	if err != nil {
		return r, fmt.Errorf("store: salvaging %s: %w", damaged, err)
	}
	defer from.Close()
	to, freshName, err := openDir(fresh, o)
	if err != nil {
		return r, fmt.Errorf("store: salvaging to %s: %w", fresh, err)
	}
	defer to.Close()
	r.Bytes, r.Changes, err = oplog.Salvage(ctx, from.ReadOnly(), name, to, freshName, new(fileState), logger, r.lose)
	slices.SortFunc(r.Lost, func(a, b FileRegion) int { return cmp.Compare(a.Offset, b.Offset) })
	if err != nil {
		return r, fmt.Errorf("store: salvaging %s: %w", damaged, err)
	}
	return r, nil
}

func withLogger(o *FileOptions) (*FileOptions, *slog.Logger) {
	if o == nil {
		o = new(FileOptions)
	}
	if o.Logger == nil {
		return o, slog.New(slog.DiscardHandler)
	}
	return o, o.Logger
}
