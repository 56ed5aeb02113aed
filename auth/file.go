package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// FileOptions configures a [File]. The zero value of every field is a safe default.
type FileOptions struct {
	// Poll is the interval at which the file is read again. Zero means never: changes
	// take effect with [File.Reload].
	Poll time.Duration

	// AllowReadable accepts a file that is readable by its group or by all users, or
	// owned by any user, as container platforms mount secrets. A file that its group or
	// all users can write is never accepted. On Windows it has no effect.
	AllowReadable bool

	// SlowHashes bounds the checks that hash with PBKDF2 at the same time. Up to 16
	// times as many wait, others fail with [ErrBusy]. Zero means half of GOMAXPROCS,
	// and at least one.
	SlowHashes int

	// Logger receives one record when the file has changed, and one when it can no
	// longer be used. If nil, nothing is logged.
	Logger *slog.Logger

	// OnReload is called with nil when the file has changed and is in use, and with
	// the reason when it can no longer be used; once for consecutive failures with the
	// same reason. It is not called by [OpenFile] and never concurrently, and must
	// not call Reload or Close. A panic in it reaches the caller of Reload; after a poll
	// it is logged. If nil, it is not called.
	OnReload func(err error)
}

// File is a verifier for the clients of a credential file, whose format is in the
// package documentation. It is safe for concurrent use. Make one with [OpenFile].
type File struct {
	path    string
	options FileOptions
	hasher  *hasher
	slots   *slots // for PBKDF2
	clients atomic.Pointer[clientSet]
	problem atomic.Pointer[error] // the result of the last read

	reading   chan struct{} // has an element while the file is read; guards the fields below
	content   digest
	lastError string // last reported; "" if the file is in use as it is

	stop    context.CancelFunc
	stopped chan struct{}
}

// OpenFile reads a credential file, all of it or none. It refuses a file that was cut
// short, without clients, with a malformed or duplicate line, with lines that disagree or
// a client without a secret, and one that other users own, can read or can write. Errors
// hold the line number and quote nothing of the file.
//
// Symbolic links are followed, since container platforms use them for secrets; the
// target must be a regular file and is checked as such. On Windows permission bits are
// not checked: restrict the file with an access list.
//
// Nil options mean the zero options. [File.Close] stops the polling that OpenFile
// starts.
func OpenFile(path string, options *FileOptions) (*File, error) {
	return openFile(&stdHasher, path, options)
}

func openFile(h *hasher, path string, options *FileOptions) (*File, error) {
	f := &File{path: path, hasher: h, reading: make(chan struct{}, 1), stopped: make(chan struct{})}
	if options != nil {
		f.options = *options
	}
	if f.options.Poll < 0 || f.options.SlowHashes < 0 {
		return nil, errors.New("auth: negative file option")
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

// Verify implements [webhookcfg.CredentialVerifier]. It blocks only for PBKDF2, of
// which it completes the current derivation when ctx ends. The verdict is that of the
// contents in use when it returns: a secret that was removed during the check is refused.
func (f *File) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	for {
		set := f.clients.Load()
		client, err := set.verify(ctx, id, secret)
		if f.clients.Load() == set {
			return client, err
		}
	}
}

// Revision changes whenever different contents of the file come into use and whenever a
// secret ends: see [Cache].
func (f *File) Revision() uint64 { return f.clients.Load().revisionAt(time.Now()) }

// Healthy returns the reason why the file, as last read by a poll or by [File.Reload], isn't in
// use; nil if it is. The reason names the line or the mode to correct. It does no I/O: without
// [FileOptions.Poll], a file that nobody reloads stays healthy.
func (f *File) Healthy(context.Context) error {
	if err := f.problem.Load(); err != nil && *err != nil {
		return fmt.Errorf("%w; until the file is corrected, its previous contents stay in use", *err)
	}
	return nil
}

// read puts the file's contents in use if they are new. The caller has put the element
// into f.reading, or has the only reference to f.
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

// Reload reads the file again, at once when no other read is under way. If that fails,
// the previous contents stay in use and the error is the reason. After Reload has
// returned nil, secrets that were removed from the file are refused. If ctx ends before
// the file is read, its error is returned.
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

// Close stops the polling and waits for it to end. The File continues to verify with
// the contents read last. Close may be called more than once and always returns nil.
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
			f.pollOnce(ctx)
		}
	}
}

func (f *File) pollOnce(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			f.options.Logger.ErrorContext(ctx, "panic after the credential file was read", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	_ = f.Reload(ctx) // already reported
}

func (f *File) report(ctx context.Context, err error) {
	if err != nil {
		f.options.Logger.ErrorContext(ctx, "credential file unusable, previous contents stay in use", "error", err)
	} else {
		f.options.Logger.InfoContext(ctx, "credential file in use", "path", f.path, "clients", len(f.clients.Load().clients))
	}
	if f.options.OnReload != nil {
		f.options.OnReload(err)
	}
}
