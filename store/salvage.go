package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"example.com/go-webhookcfg/internal/oplog"
)

// CheckFile reads a file as [OpenFile] does, but never changes it. The error wraps
// [ErrDamaged] if the file is damaged, and [ErrLocked] if it's open. A torn tail isn't an
// error, since OpenFile would cut it, but the report has it as a lost region. CheckFile
// ignores [FileOptions.CompactManually].
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
// ignores [FileOptions.CompactManually].
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
