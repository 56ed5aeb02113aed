package webhookcfg

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"example.com/go-webhookcfg/internal/redact"
)

// panicError is the cause of a 500 after a panic.
type panicError struct {
	text  string
	stack []byte
	abort bool // the value is http.ErrAbortHandler, or wraps it
}

func (p *panicError) Error() string { return "panic: " + p.text }

// Is lets a caller from Go see that a function of its own wants to abort.
func (p *panicError) Is(target error) bool { return p.abort && target == http.ErrAbortHandler }

// isAbort reports whether the operation panicked with [http.ErrAbortHandler]. It also finds a
// panic that a wrapper, such as a cache of sign-ins, moved here from another goroutine.
func (e *apiError) isAbort() bool {
	if e == nil {
		return false
	}
	p, ok := e.cause.(*panicError)
	return ok && p.abort
}

// panicError returns the response to a panic of the operation. If the client hasn't signed in
// yet, it withholds the text, for the reason that verifierError gives.
func (o *operation) panicError(value any) *apiError {
	p := o.panicked(value)
	if o.event.Client != "" {
		return serverError(p)
	}
	p.text = fmt.Sprintf("value of type %T, in the verifier", value)
	var moved interface{ Stack() []byte } // from the goroutine of a shared check
	if err, ok := value.(error); ok && errors.As(err, &moved) {
		p.stack = moved.Stack()
	}
	return serverError(p)
}

func (o *operation) panicked(value any) *panicError {
	err, _ := value.(error)
	text := redact.Panic(value)
	if !o.isTask { // which can panic with all that it shows to somebody
		text = o.redacted(fmt.Sprint(value))
	}
	return &panicError{text: text, stack: debug.Stack(), abort: errors.Is(err, http.ErrAbortHandler)}
}
