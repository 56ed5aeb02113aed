package store

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// Sentinel errors of [File], to be found with [errors.Is].
var (
	// ErrClosed is the answer to every call after Close.
	ErrClosed = oplog.ErrClosed
	// ErrReadOnly is the answer to every change after one could not be written. What
	// was answered before stays in effect and can be read.
	ErrReadOnly = oplog.ErrReadOnly
	// ErrLocked says that the store is open already, here or in another process.
	ErrLocked = oplog.ErrLocked
	// ErrDamaged says that the file is not what was written, or went missing. It
	// was left as it is.
	ErrDamaged = oplog.ErrDamaged
)

var (
	_ webhookcfg.Store  = (*File)(nil)
	_ webhookcfg.Lister = (*File)(nil)
)

// FileOptions are the settings of a [File]. Nil, like the zero value, is safe.
type FileOptions struct {
	// Logger is told what was read at opening and how far it is, what a crash left
	// and was cut, what was compacted, and why the store became read-only. It is
	// told no URLs. Nil is silent.
	Logger *slog.Logger
	// CompactRatio is how many bytes of the file may be dead, because later changes
	// replaced what they say, for each byte that is not. Beyond it, the file is
	// compacted in the background, once more than 1 MiB is dead. Zero
	// means 1; a negative ratio leaves it to [File.Compact].
	CompactRatio float64
	// AllowShared accepts files that belong to other users or that others may read
	// or write, and a folder in which everybody may replace files. The files hold
	// webhook URLs, which are credentials.
	AllowShared bool
}

// File is a durable [webhookcfg.Store] and [webhookcfg.Lister]: a change that was
// answered is in the file, whatever happens to the process or the machine. The
// whole configuration is in memory too, so that reads touch no disk.
//
// The file is text, one JSON object per line, and can be read by other programs at
// any time. Names and URLs must be valid UTF-8, and 128 KiB together at
// most; the time of a change must be in the years 0 to 9999.
//
// To copy the file while the store is open is safe: the last changes may be missing
// from the copy, or the end of the last line.
//
// A File is safe for concurrent use.
type File struct {
	log    *oplog.Log
	state  fileState
	closed atomic.Bool
}

// OpenFile opens the store in the file path, or creates it. The folder must exist.
//
// Beside the file there are path.lock, which keeps out a second opener
// and which must not be removed, and at times path.tmp. The three are created for
// the user alone. Symbolic links are refused in their places, and in
// that of the folder.
//
// A file that a crash left with half a write at its end is mended, and the logger
// told so. One that is damaged otherwise, or empty or missing though it was there
// before, gives an error that wraps [ErrDamaged] and says where and what to do; one
// that is open already gives [ErrLocked]. One of a later version of this
// package is refused too. None of them is changed.
func OpenFile(path string, o *FileOptions) (*File, error) {
	if o == nil {
		o = new(FileOptions)
	}
	folder, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		return nil, fmt.Errorf("store: opening %q: not the path of a file", path)
	}
	fsys, err := oplog.OpenDir(filepath.Clean(folder), o.AllowShared)
	if err != nil {
		return nil, fmt.Errorf("store: opening %s: %w", path, err)
	}
	f, err := openFile(fsys, name, o)
	if err != nil {
		return nil, fmt.Errorf("store: opening %s: %w", path, err)
	}
	return f, nil
}

func openFile(fsys oplog.FS, name string, o *FileOptions) (*File, error) {
	f := new(File)
	log, err := oplog.Open(fsys, name, &f.state, oplog.Options{Logger: o.Logger, CompactRatio: o.CompactRatio})
	if err != nil {
		return nil, err
	}
	f.log = log
	return f, nil
}

// Apply implements [webhookcfg.Store]. Callers that come at the same time share
// one write and one sync. Once a write or a sync failed, the change gets an error that wraps
// [ErrReadOnly], as do all later ones: to open the file again is to find
// out what became of it.
func (f *File) Apply(ctx context.Context, c webhookcfg.Change) error {
	return withOp("apply", f.log.Append(ctx, c))
}

// Resolve implements [webhookcfg.Store]. It does not allocate.
func (f *File) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if f.closed.Load() {
		return webhookcfg.Webhook{}, withOp("resolve", ErrClosed)
	}
	return f.state.Resolve(ctx, client, entity)
}

// List implements [webhookcfg.Lister].
func (f *File) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if f.closed.Load() {
		return webhookcfg.Page{}, withOp("list", ErrClosed)
	}
	return f.state.List(ctx, client, after, limit)
}

// Compact writes the file anew, without the changes that later ones replaced. It
// is for hosts that want to choose the hour; see [FileOptions]. Changes go on
// beside it. If ctx ends or the disk is full, the file stays as it was.
func (f *File) Compact(ctx context.Context) error {
	return withOp("compact", f.log.Compact(ctx))
}

// Close writes the changes that callers wait for, and lets go of the file. It
// returns what made the store read-only, if something did.
func (f *File) Close() error {
	f.closed.Store(true)
	return withOp("close", f.log.Close())
}

var (
	_ cache.Feed     = (*File)(nil)
	_ cache.Notifier = (*File)(nil)
)

// Changes implements [cache.Feed], as [Memory.Changes] does. A store that was
// opened again does not know the cursors from before, and gives a Reset.
func (f *File) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if f.closed.Load() {
		return cache.Changes{}, withOp("changes", ErrClosed)
	}
	return f.state.Changes(ctx, since)
}

// Notify implements [cache.Notifier], as [Memory.Notify] does.
func (f *File) Notify(ctx context.Context) <-chan struct{} { return f.state.Notify(ctx) }

// withOp adds the operation to an error of the log; nil stays nil.
func withOp(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s: %w", op, err)
}
