package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/checkup"
	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// Sentinel errors of [File], to be matched with [errors.Is].
var (
	// ErrClosed is wrapped by the error of every call after Close.
	ErrClosed = oplog.ErrClosed
	// ErrReadOnly is wrapped by the error of every change that cannot be written; see
	// "Durability". Earlier changes stay in effect and can be read.
	ErrReadOnly = oplog.ErrReadOnly
	// ErrLocked is wrapped by the error of opening a file that is open already, in this
	// process or another.
	ErrLocked = oplog.ErrLocked
	// ErrDamaged is wrapped by the error of opening a file that is not as it was written,
	// or that went missing. The file is left as it is.
	ErrDamaged = oplog.ErrDamaged
)

var (
	_ webhookcfg.Store   = (*File)(nil)
	_ webhookcfg.Lister  = (*File)(nil)
	_ admin.ClientLister = (*File)(nil)
	_ admin.Eraser       = (*File)(nil)
)

// FileOptions are the settings of a [File]. Nil and the zero value are valid.
type FileOptions struct {
	// Logger receives the progress and the result of opening, the size of a torn tail
	// that was cut, compactions, failures and recoveries; never a URL. If nil,
	// nothing is logged.
	Logger *slog.Logger
	// CompactRatio is the ratio of superseded bytes to live ones in the file above which
	// a compaction starts in the background, once at least 1 MiB is superseded. Zero
	// means 1; with a negative ratio, only [File.Compact] compacts.
	CompactRatio float64
	// AllowShared accepts files that other users own or may read or write, and a directory
	// without the sticky bit in which other users may write. The files hold webhook URLs,
	// which are credentials.
	AllowShared bool
}

// File is a durable [webhookcfg.Store] and [webhookcfg.Lister]: once Apply returns nil,
// the change survives a crash of the process or the machine. The whole configuration is
// in memory as well, so that reads do not touch the disk. The documentation of the
// package describes how to operate a File.
//
// The ids and the URL of a change must be valid UTF-8 and have at most 128 KiB together;
// its time must be in the years 0 to 9999.
//
// A File is safe for concurrent use.
type File struct {
	log     *oplog.Log
	state   fileState
	closed  atomic.Bool
	checkup checkup.Checkup
	// path and options are those that it was opened with; the path is absolute.
	path    string
	options FileOptions
}

// OpenFile opens the store in the file path, or creates it. The directory must exist.
// Symbolic links are refused, both for the files and for the directory, and so are names
// that end in .lock or .tmp, which a store next to it may use.
//
// A torn tail, left by a crash during a write, is cut and logged. If the file is damaged,
// or is empty or missing though it existed before, the error wraps [ErrDamaged] and names
// the place and the remedy; if it is open already, [ErrLocked]. A file of a later version
// of the format is refused too. None of them is changed.
//
// A file of an earlier version is changed to the present one. Programs that know only the
// earlier one then refuse it, so keep a backup if you may go back to one.
func OpenFile(path string, o *FileOptions) (*File, error) {
	if o == nil {
		o = new(FileOptions)
	}
	fsys, name, err := openDir(path, o)
	if err != nil {
		return nil, fmt.Errorf("store: opening %s: %w", path, err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: opening %s: %w", path, errors.Join(err, fsys.Close()))
	}
	f, err := openFile(fsys, name, o)
	if err != nil {
		return nil, fmt.Errorf("store: opening %s: %w", path, err)
	}
	f.path, f.options = absolute, *o
	return f, nil
}

// openDir opens the directory of a file and returns the name of the file in it.
func openDir(path string, o *FileOptions) (*oplog.Dir, string, error) {
	dir, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		return nil, "", fmt.Errorf("%q is not the path of a file", path)
	}
	fsys, err := oplog.OpenDir(filepath.Clean(dir), o.AllowShared)
	return fsys, name, err
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

// Apply implements [webhookcfg.Store]. Concurrent calls share one write and one sync. If
// they fail, the error wraps [ErrReadOnly], and the change is not made, unless the process
// ends before the store has repaired its file: see "Durability".
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

// ListClients implements [admin.ClientLister], in byte order.
func (f *File) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	if f.closed.Load() {
		return admin.ClientPage{}, withOp("list of clients", ErrClosed)
	}
	return f.state.ListClients(ctx, cursor, limit)
}

// Erase implements [admin.Eraser] with a compaction, which costs as much as [File.Compact].
// Afterwards the file has no record of the client. Backups and snapshots that you made before
// still have them, and so may the free blocks of the disk.
func (f *File) Erase(ctx context.Context, client string) error {
	if f.closed.Load() {
		return withOp("erase", ErrClosed)
	}
	page, err := f.state.List(ctx, client, "", 1)
	if err != nil || page.Base.Source != webhookcfg.SourceNone || len(page.Overrides) > 0 {
		return err
	}
	return withOp("erase", f.log.Compact(ctx))
}

// Compact rewrites the file without superseded changes, for hosts that choose the time
// themselves; see [FileOptions]. It runs concurrently with changes. If ctx ends or the
// disk is full, the file stays as it was.
func (f *File) Compact(ctx context.Context) error {
	return withOp("compact", f.log.Compact(ctx))
}

// Healthy returns why changes fail now, or will fail soon because the disk has too little room
// for the next compaction and 1 MiB; nil if all is well. The error names the remedy. It wraps
// [ErrClosed], or [ErrReadOnly] and the cause if changes fail already. Free room is known on
// Linux, macOS and Windows, and a quota isn't seen before a change fails.
//
// Calls are cheap: at most one examination starts in a second, and at most one runs. So the
// result is up to a second old. A disk that doesn't respond within five seconds isn't healthy.
// Once the cause is gone, the store repairs its file within a second, also without a change.
func (f *File) Healthy(ctx context.Context) error {
	return f.checkup.Do(ctx, func(ctx context.Context) error {
		err := f.log.Healthy(ctx)
		if err == nil || errors.Is(err, ErrClosed) {
			return withOp("health", err)
		}
		return fmt.Errorf("store: health of %s: %w; remove the cause, such as a full disk: the store tries again every second", f.path, err)
	})
}

// FileStats are figures of a [File].
type FileStats struct {
	// Bytes is the length of the changes in the file, and LiveBytes an estimate of their
	// length after a compaction.
	Bytes, LiveBytes int64
	// Changes counts the changes since the file was opened, and Compactions how often it was
	// written anew.
	Changes, Compactions uint64
	// LastBatch is how many changes were written together last, and LastWrite how long the
	// write and its sync took. They are zero before the first change.
	LastBatch int
	LastWrite time.Duration
}

// Stats returns the present figures, for metrics. It never waits for the disk.
func (f *File) Stats() FileStats { return FileStats(f.log.Stats()) }

// Close writes pending changes, checks the file and releases it. If the file cannot be
// repaired or completed, the error wraps [ErrReadOnly] and the cause; what was acknowledged is
// durable all the same, unless the file was moved or overwritten.
func (f *File) Close() error {
	f.closed.Store(true)
	return withOp("close", f.log.Close())
}

var (
	_ cache.Feed     = (*File)(nil)
	_ cache.Notifier = (*File)(nil)
)

// Changes implements [cache.Feed], as [Memory.Changes] does. Cursors do not survive
// closing the store: with one from before, Changes returns a Reset.
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
