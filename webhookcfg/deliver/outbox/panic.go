package outbox

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

var errPanicked = errors.New("outbox: a function of the host panicked")

// panicked is the result of an attempt in which a function of the host panicked.
var panicked = deliver.Result{Outcome: deliver.Deferred, Reason: deliver.ReasonUnavailable, Err: errPanicked}

// contain calls a function of the host. If that panics, the process goes on: contain logs it,
// and returns the other value.
func contain[T any](o *Outbox, call func() T, otherwise T) (result T) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		result = otherwise
		if !o.isRepeated("panic") {
			defer func() { _ = recover() }() // the logger can panic, too
			o.options.Logger.LogAttrs(context.Background(), slog.LevelError, "outbox: a function of the host panicked",
				slog.String("error", redact.Panic(value)), slog.String("stack", string(debug.Stack())))
		}
	}()
	return call()
}
