package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

var errPanicked = errors.New("outbox: a function of the host panicked")

// panicked is the result of an attempt in which a function of the host panicked.
var panicked = deliver.Result{Outcome: deliver.Deferred, Reason: deliver.ReasonUnavailable, Err: errPanicked}

// contain calls a function of the host. If that panics, the process goes on: contain logs it,
// and returns the other value. The log withholds the panic's text, unless the runtime wrote it,
// since it can quote secrets.
func contain[T any](o *Outbox, call func() T, otherwise T) (result T) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		result = otherwise
		text := fmt.Sprintf("value of type %T", value)
		if err, ok := value.(runtime.Error); ok {
			text = err.Error()
		}
		if !o.isRepeated("panic") {
			defer func() { _ = recover() }() // the logger can panic, too
			o.options.Logger.LogAttrs(context.Background(), slog.LevelError, "outbox: a function of the host panicked",
				slog.String("error", text), slog.String("stack", string(debug.Stack())))
		}
	}()
	return call()
}
