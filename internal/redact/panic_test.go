package redact_test

import (
	"errors"
	"testing"

	"example.com/go-webhookcfg/internal/redact"
)

// TestPanic: what a host's function panics with isn't shown, and what the runtime says is.
func TestPanic(t *testing.T) {
	for want, do := range map[string]func(){
		"value of type string":              func() { panic("t0ken") },
		"value of type *errors.errorString": func() { panic(errors.New("t0ken")) },
		"runtime error: index out of range [-1]": func() {
			var none []int
			_ = none[len(none)-1]
		},
	} {
		func() {
			defer func() {
				if got := redact.Panic(recover()); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}()
			do()
		}()
	}
}
