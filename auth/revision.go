package auth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/internal/rounds"
	"example.com/go-webhookcfg/webhookcfg"
)

// polledRevision is a number that a host's function reads again and again. Its zero value is
// a constant 0.
type polledRevision struct {
	read    func(context.Context) (uint64, error)
	value   atomic.Uint64
	problem atomic.Pointer[error] // the result of the last read

	stop    context.CancelFunc
	stopped chan struct{}
}

// start reads the number in every interval until close.
func (r *polledRevision) start(interval time.Duration, read func(context.Context) (uint64, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	r.read, r.stop, r.stopped = read, cancel, make(chan struct{})
	go func() {
		defer close(r.stopped)
		rounds.Run(ctx, interval, r.poll)
	}()
}

// poll keeps the last number if it can't be read.
func (r *polledRevision) poll(ctx context.Context) {
	value, err := r.readOnce(ctx)
	if err == nil {
		r.value.Store(value)
	}
	r.problem.Store(&err)
}

func (r *polledRevision) readOnce(ctx context.Context) (_ uint64, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = errors.New("panic: " + redact.Panic(value))
		}
	}()
	return r.read(ctx)
}

func (r *polledRevision) healthy() error {
	if err := r.problem.Load(); err != nil && *err != nil {
		return fmt.Errorf("auth: LookupOptions.Revision fails: %w; until it returns, caches accept revoked secrets for their TTL", redact.PrintableError(*err))
	}
	return nil
}

func (r *polledRevision) close() {
	if r.stop != nil {
		r.stop()
		<-r.stopped
	}
}

// revisionOf returns the optional method Revision of a verifier, or a constant 0.
func revisionOf(verifier webhookcfg.CredentialVerifier) func() uint64 {
	if v, ok := verifier.(interface{ Revision() uint64 }); ok {
		return v.Revision
	}
	return func() uint64 { return 0 }
}
