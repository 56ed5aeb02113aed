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

// FileReport says what CheckFile or SalvageFile found in a file.
type FileReport struct {
	// Bytes is the file's length.
	Bytes int64
	// Changes is the number of intact changes, including superseded ones.
	Changes int
	// Lost has the first 100 regions that are damaged or out of place, by offset. LostRegions
	// and LostBytes count all of them.
	Lost        []FileRegion
	LostRegions int
	LostBytes   int64
}

// FileRegion is a part of a file.
type FileRegion struct {
	// Line is the number of the line where the region starts, from 1.
	Line int
	// Offset and Length are in bytes. If the end of the file is missing, the region starts
	// there.
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

// CheckFile reads a file as [OpenFile] does, but never changes it. The error wraps
// [ErrDamaged] if the file is damaged, and [ErrLocked] if it's open. A torn tail isn't an
// error, since OpenFile would cut it, but the report has it as a lost region. CheckFile
// ignores [FileOptions.CompactRatio].
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

// SalvageFile copies the intact changes of a damaged file to the new file fresh, and reports
// everything that it left out. Try it when you have no backup. The damaged file must not be
// open, and SalvageFile never changes it. It can have lost its header, its end or any blocks,
// and blocks can be repeated or out of place. A file written by a newer version is refused.
// If the system can't read through the file, copy it to a working disk first.
//
// A lost change is undone: the entity gets its previous webhook back, even if the lost change
// had removed it. If the lost change was for all entities of a client, this happens to all of
// them. You should compare the result with what your clients want before a sender uses it.
//
// The new file gets its name once it's complete, so if SalvageFile fails, there's none. It
// ignores [FileOptions.CompactRatio].
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
