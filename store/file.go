package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/healthcheck"
	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// The errors of a [File]. Match them with [errors.Is].
var (
	// ErrClosed is the error of every call after Close.
	ErrClosed = oplog.ErrClosed
	// ErrReadOnly means that a change couldn't be written. Earlier changes stay in effect,
	// and you can read them. The package documentation says when changes work again.
	ErrReadOnly = oplog.ErrReadOnly
	// ErrLocked means that the file is open already, in this process or another. Close it
	// there first.
	ErrLocked = oplog.ErrLocked
	// ErrDamaged means that the file isn't as the store wrote it, or is missing. Nothing has
	// been changed. Restore a backup, or see [SalvageFile].
	ErrDamaged = oplog.ErrDamaged
)

var (
	_ webhookcfg.Store   = (*File)(nil)
	_ webhookcfg.Lister  = (*File)(nil)
	_ admin.ClientLister = (*File)(nil)
	_ admin.Eraser       = (*File)(nil)
)

// FileOptions are the options of [OpenFile], [CheckFile] and [SalvageFile]. You can use nil
// or the zero value.
type FileOptions struct {
	// Logger gets the progress and the result of opening, compactions, failures and
	// recoveries, and the size of a torn tail that was cut. It's told that the file was created,
	// which is a surprise if its directory isn't mounted. It never gets a URL. If nil, nothing is
	// logged.
	Logger *slog.Logger
	// CompactManually leaves compactions to you: the file is compacted only when you call
	// [File.Compact] or [File.Erase]. By default, the store also compacts it in the background,
	// once the superseded bytes are more than the live ones, and at least 1 MiB.
	CompactManually bool
	// AllowShared accepts files that other users own, or can read or write. It also accepts
	// a directory without the sticky bit that other users can write to. Think twice: webhook
	// URLs are credentials. By default, all this is refused.
	AllowShared bool
}

// File is a durable [webhookcfg.Store] and [webhookcfg.Lister] in one file. When Apply
// returns nil, the change survives a crash of the process or the machine. Reads don't touch
// the disk, because a File keeps the whole configuration in memory too. The package
// documentation says how to operate it.
//
// The ids and the URL of a change must be valid UTF-8, and at most 128 KiB together. Its time
// must be in the years 0 to 9999.
//
// A File is safe for concurrent use.
type File struct {
	log    *oplog.Log
	state  fileState
	closed atomic.Bool
	health healthcheck.Check
	// path and options are from OpenFile. The path is absolute.
	path    string
	options FileOptions
}

// OpenFile opens the store in a file, or creates it. Call [File.Close] when you're done. The
// directory must exist.
//
// The error wraps [ErrLocked] if the file is open already, and [ErrDamaged] if it's damaged,
// or if it existed before and is now missing or empty. The text says where the damage is and
// what you can do. OpenFile cuts a torn tail, which a crash during a write leaves, and logs
// that.
//
// OpenFile refuses symbolic links, for the files and for the directory, and names ending in
// .lock or .tmp. It also refuses files written by a newer version. It never changes a file
// that it refuses.
//
// Files of an older version are upgraded to the current one, and older programs then refuse
// them. If you may have to go back, you should make a backup first.
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
	log, err := oplog.Open(fsys, name, &f.state, oplog.Options{Logger: o.Logger, CompactManually: o.CompactManually})
	if err != nil {
		return nil, err
	}
	f.log = log
	return f, nil
}

// Apply implements [webhookcfg.Store]. Concurrent calls share one write and one sync. If that
// fails, the error wraps [ErrReadOnly] and the change has no effect. There's one exception:
// the process can end before the store has repaired its file or has it back, see "When
// changes fail" in the package documentation.
func (f *File) Apply(ctx context.Context, c webhookcfg.Change) error {
	return withOp("apply", f.log.Append(ctx, c))
}

// Resolve implements [webhookcfg.Store]. It doesn't allocate.
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

// Erase implements [admin.Eraser]. Afterwards the file has no record of the client, but
// earlier backups and snapshots do, and the free blocks of the disk can. Erase compacts the
// file, so it costs as much as [File.Compact]. If the client still has a webhook, Erase does
// nothing.
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

// Compact rewrites the file without superseded changes. You only need it to choose the time
// yourself, see [FileOptions.CompactManually]. Changes go on meanwhile. If ctx ends or the disk
// is full, the file stays as it was.
func (f *File) Compact(ctx context.Context) error {
	return withOp("compact", f.log.Compact(ctx))
}

// Healthy returns nil if changes work. Otherwise the error says what's wrong and what you can
// do: changes fail, or they will soon, because the disk has too little space for the next
// compaction and 1 MiB. If changes fail already, the error wraps [ErrReadOnly] and the cause,
// or [ErrClosed]. A disk that doesn't respond within five seconds isn't healthy.
//
// You can call Healthy as often as you like. It looks at most once a second, so the result
// can be a second old. Once you've removed the cause, the store repairs its file within a
// second, even if there's no change.
//
// Healthy checks the free space on Linux, macOS and Windows. It can't see a quota before a
// change fails.
func (f *File) Healthy(ctx context.Context) error {
	return f.health.Do(ctx, func(ctx context.Context) error {
		err := f.log.Healthy(ctx)
		if err == nil || errors.Is(err, ErrClosed) {
			return withOp("health", err)
		}
		return fmt.Errorf("store: health of %s: %w; once the cause is gone, the store repairs itself within a second", f.path, err)
	})
}

// FileStats are figures of a [File].
type FileStats struct {
	// Bytes is the length of the changes in the file, and LiveBytes an estimate of their
	// length after a compaction.
	Bytes, LiveBytes int64
	// Changes counts the changes since you opened the file, and Compactions how often the
	// file was rewritten.
	Changes, Compactions uint64
	// LastBatch is how many changes the last write had, and LastWrite how long it took, with
	// its sync. Both are zero before the first change.
	LastBatch int
	LastWrite time.Duration
}

// Stats returns figures for your metrics. It never waits for the disk.
func (f *File) Stats() FileStats { return FileStats(f.log.Stats()) }

// Close writes pending changes, checks the file and releases it. The error wraps
// [ErrReadOnly] and the cause if the file can't be repaired or completed. Acknowledged
// changes are durable even then, unless somebody moved or overwrote the file.
func (f *File) Close() error {
	f.closed.Store(true)
	return withOp("close", f.log.Close())
}

var (
	_ cache.Feed     = (*File)(nil)
	_ cache.Notifier = (*File)(nil)
)

// Changes implements [cache.Feed], as [Memory.Changes] does. Closing the store ends its
// cursors: with an old one, Changes returns a Reset.
func (f *File) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if f.closed.Load() {
		return cache.Changes{}, withOp("changes", ErrClosed)
	}
	return f.state.Changes(ctx, since)
}

// Notify implements [cache.Notifier], as [Memory.Notify] does.
func (f *File) Notify(ctx context.Context) <-chan struct{} { return f.state.Notify(ctx) }

// withOp adds the operation to an error. A nil error stays nil.
func withOp(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s: %w", op, err)
}
