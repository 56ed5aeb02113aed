package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// FileOptions configures a [File]. You can leave every field zero.
type FileOptions struct {
	// Poll is how often the file is read again. Zero means never: call [File.Reload] after a
	// change.
	Poll time.Duration

	// AllowReadable accepts a file that its group or everybody can read, or that belongs to
	// another user. Set it if your container platform mounts secrets like that. A file that
	// its group or everybody can write is always refused. On Windows it has no effect.
	AllowReadable bool

	// SlowHashes is how many checks hash with PBKDF2 at the same time. Zero means half of
	// GOMAXPROCS, and at least one. Up to 16 times as many wait. Others fail with [ErrBusy].
	SlowHashes int

	// Logger gets a record when a changed or corrected file is in use. When the file can't be
	// used any longer, it gets one with the reason, and again only if the reason changes. If
	// nil, nothing is logged. For an alert, ask [File.Healthy].
	Logger *slog.Logger
}

// File is a verifier for the clients of a credential file. The package documentation
// describes its format, and these are the details:
//
//   - An id is 1 to 128 visible ASCII characters, without a colon, and doesn't start with #.
//     Case matters. Names of secrets look like ids, and differ within a client.
//   - The lines of a client must agree on owner and disabled. A line with disabled in place
//     of the hash reserves an id that nobody can sign in with. It can have an owner, but no
//     other field.
//   - Blank lines and lines that start with # are ignored. Lines end as on Unix or Windows.
//   - Others have no characters that nobody sees: no byte order mark before the first line, no
//     blank in front, and none after begin and end. The errors name them.
//   - pbkdf2-sha256 is PBKDF2-HMAC-SHA-256 (RFC 8018), with 600,000 rounds or more, as OWASP
//     recommends, and a salt of 16 to 64 bytes.
//   - A check may take at most 10,000,000 rounds. That's the sum of the slowest hash in the
//     file, the slowest second hash of any client, and so on: a refusal takes as many for
//     every id.
//
// A File is safe for concurrent use. Make one with [OpenFile].
type File struct {
	path    string
	options FileOptions
	hasher  *hasher
	slots   *slots // for PBKDF2
	clients atomic.Pointer[clientSet]
	problem atomic.Pointer[error] // the result of the last read

	reading   chan struct{} // holds an element while the file is read; guards the fields below
	content   digest
	lastError string // last reported; "" if the file is in use as it is

	stop    context.CancelFunc
	stopped chan struct{}
}

// OpenFile reads a credential file. It takes all of it or nothing: it refuses a file that was
// cut short, has no clients, has malformed, duplicate or conflicting lines, or has a client
// without a secret. It also refuses a file that other users can read or write, or that
// belongs to someone other than root or the process's user. [FileOptions.AllowReadable]
// relaxes that. Errors give you the line number, but never quote the file.
//
// OpenFile follows symbolic links, since container platforms use them for secrets. The target
// must be a regular file, and the same checks apply to it. On Windows permission bits aren't
// checked, so restrict the file with an access list.
//
// With nil options, the file is read only once: set [FileOptions.Poll], or call [File.Reload] after
// a change. Call [File.Close] when you're done: it stops the polling.
func OpenFile(path string, options *FileOptions) (*File, error) {
	return openFile(&stdHasher, path, options)
}

func openFile(h *hasher, path string, options *FileOptions) (*File, error) {
	f := &File{path: path, hasher: h, reading: make(chan struct{}, 1), stopped: make(chan struct{})}
	if options != nil {
		f.options = *options
	}
	if f.options.Poll < 0 || f.options.SlowHashes < 0 {
		return nil, errors.New("auth: FileOptions: Poll and SlowHashes must not be negative")
	}
	if f.options.Logger == nil {
		f.options.Logger = slog.New(slog.DiscardHandler)
	}
	f.slots = newSlots(f.options.SlowHashes)
	if _, err := f.read(); err != nil {
		return nil, err
	}
	f.start()
	return f, nil
}

// Verify implements [webhookcfg.CredentialVerifier]. It only blocks for PBKDF2. When ctx
// ends, it returns after the current derivation. It decides by the contents in use when it
// returns, so a secret that you removed during the check is refused.
func (f *File) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	for {
		set := f.clients.Load()
		client, err := set.verify(ctx, id, secret)
		if f.clients.Load() == set {
			return client, err
		}
	}
}

// Revision changes whenever new contents come into use, and whenever a secret ends. [Cache]
// uses it.
func (f *File) Revision() uint64 { return f.clients.Load().revisionAt(time.Now()) }

// Healthy returns nil if the last poll or [File.Reload] could use the file. Otherwise it
// returns the reason, with the line or the mode to correct. It does no I/O: if you set no
// [FileOptions.Poll] and never call Reload, the file stays healthy.
func (f *File) Healthy(context.Context) error {
	if err := f.problem.Load(); err != nil && *err != nil {
		return fmt.Errorf("%w; until the file is corrected, its previous contents stay in use", *err)
	}
	return nil
}

// read puts the file's contents in use if they're new. Before you call it, put the element
// into f.reading, unless nobody else has f yet.
func (f *File) read() (changed bool, err error) {
	text, err := readPrivateFile(f.path, f.options.AllowReadable)
	if err != nil {
		return false, fmt.Errorf("auth: %w", err)
	}
	content := sum(text)
	old := f.clients.Load()
	if old != nil && content == f.content {
		return false, nil
	}
	b, line, err := parseFile(text)
	var set *clientSet
	if err == nil {
		set, line, err = b.build(f.hasher, f.slots)
	}
	if err != nil {
		return false, fmt.Errorf("auth: %s:%d: %w", f.path, line, err)
	}
	if old != nil { // greater than any value of the old set
		set.revision = old.revision + uint64(len(old.ends)) + 1
	}
	f.content = content
	f.clients.Store(set)
	return true, nil
}

// Reload reads the file again. It waits for another read that is under way. If reading fails,
// you get the reason, and the previous contents stay in use. Once Reload has returned nil,
// secrets that you removed from the file are refused. If ctx ends before the file is read,
// Reload returns the context's error.
func (f *File) Reload(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case f.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.reading }()
	changed, err := f.read()
	f.problem.Store(&err)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if changed || text != f.lastError {
		f.lastError = text
		f.report(ctx, err)
	}
	return err
}

// Close stops the polling and waits for it to end. The File still verifies, with the contents
// it read last. You can call Close more than once. It always returns nil.
func (f *File) Close() error {
	f.stop()
	<-f.stopped
	return nil
}

func (f *File) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	if f.options.Poll == 0 {
		close(f.stopped)
		return
	}
	go f.poll(ctx)
}

func (f *File) poll(ctx context.Context) {
	defer close(f.stopped)
	ticker := time.NewTicker(f.options.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = f.Reload(ctx) // it reports the error
		}
	}
}

func (f *File) report(ctx context.Context, err error) {
	if err != nil {
		f.options.Logger.ErrorContext(ctx, "credential file unusable, previous contents stay in use", "error", redact.PrintableError(err))
	} else {
		f.options.Logger.InfoContext(ctx, "credential file in use", "path", f.path, "clients", len(f.clients.Load().clients))
	}
}
