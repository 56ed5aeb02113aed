package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// FileOptions are the choices for a [File]. The zero value is a safe default in
// every field.
type FileOptions struct {
	// Poll is how often to read the file again. Zero never does: changes take effect
	// with [File.Reload].
	Poll time.Duration

	// AllowReadable accepts a file that its group or everybody may read, as container
	// platforms mount secrets; never one that they may write. On Windows it has no
	// effect.
	AllowReadable bool

	// SlowHashes is how many checks may hash with PBKDF2 at a time; the others wait
	// in line. Zero means half of GOMAXPROCS, and at least one.
	SlowHashes int

	// Logger gets one record when the file has changed, and one when it can no longer
	// be used. Nil is silent.
	Logger *slog.Logger

	// OnReload is called when the file has changed and is in use, with nil, and when
	// it can no longer be used, with the reason; for the same reason only once. It is
	// not called by [OpenFile], never concurrently, and must not call Reload or Close.
	OnReload func(err error)
}

// File is a verifier for the clients of a credential file. The package
// documentation has the format. It is made by [OpenFile] and safe for concurrent
// use.
type File struct {
	path    string
	options FileOptions
	hasher  *hasher
	slots   chan struct{} // holds an element for each check that hashes with PBKDF2
	clients atomic.Pointer[clientSet]

	mu        sync.Mutex // guards what follows
	content   digest
	lastError string // the reason last reported, "" if the file is in use as it is

	stop    context.CancelFunc
	stopped chan struct{}
}

// OpenFile reads a credential file, whole or not at all. It refuses a file without
// clients, a malformed line, a line that repeats another, a client without a secret,
// and a file that others can read or write. Errors name the line and quote nothing.
//
// A symbolic link is followed, as container platforms link secrets; what it leads to
// must be a regular file and is judged like one. On Windows permissions are not
// judged: the host sees to the access list of the file.
//
// Nil options are the zero options. [File.Close] ends what OpenFile starts.
func OpenFile(path string, options *FileOptions) (*File, error) {
	return openFile(&stdHasher, path, options)
}

func openFile(h *hasher, path string, options *FileOptions) (*File, error) {
	f := &File{path: path, hasher: h, stopped: make(chan struct{})}
	if options != nil {
		f.options = *options
	}
	if f.options.Poll < 0 || f.options.SlowHashes < 0 {
		return nil, errors.New("auth: a file option is negative")
	}
	if f.options.Logger == nil {
		f.options.Logger = slog.New(slog.DiscardHandler)
	}
	slots := cmp.Or(f.options.SlowHashes, max(1, runtime.GOMAXPROCS(0)/2))
	f.slots = make(chan struct{}, slots)
	if _, err := f.read(); err != nil {
		return nil, err
	}
	f.start()
	return f, nil
}

// Verify implements [webhookcfg.CredentialVerifier]. It blocks only for PBKDF2, whose
// last derivation it finishes when ctx ends.
func (f *File) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return f.clients.Load().verify(ctx, id, secret)
}

// Revision changes whenever the file is in use with other contents: see [Cache].
func (f *File) Revision() uint64 { return f.clients.Load().revision }

// read puts the file's contents in use, if they are new. The caller holds
// f.mu, or is the only one to know f.
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
	if err != nil {
		return false, fmt.Errorf("auth: %s:%d: %w", f.path, line, err)
	}
	set := b.build(f.hasher, f.slots)
	if old != nil {
		set.revision = old.revision + 1
	}
	f.content = content
	f.clients.Store(set)
	return true, nil
}

// Reload reads the file again. If it cannot be used, what was read before stays in
// use, and the error says why. From its return
// on, no secret that the file has lost signs anybody in.
func (f *File) Reload(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	changed, err := f.read()
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

// Close ends the polling and returns when it has ended. The File goes on verifying
// with what was read last. Close may be called more than once; its error is nil.
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
			_ = f.Reload(ctx) // has reported it
		}
	}
}

func (f *File) report(ctx context.Context, err error) {
	if err != nil {
		f.options.Logger.ErrorContext(ctx, "credential file cannot be used, the old contents stay in use", "error", err)
	} else {
		f.options.Logger.InfoContext(ctx, "credential file in use", "path", f.path, "clients", len(f.clients.Load().clients))
	}
	if f.options.OnReload != nil {
		f.options.OnReload(err)
	}
}
