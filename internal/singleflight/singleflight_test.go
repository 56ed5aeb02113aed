package singleflight_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
)

const timeout = time.Minute

// goDo calls Do in a goroutine and returns a function that waits for its result.
func goDo(g *singleflight.Group[int], ctx context.Context, key string, work func(context.Context) (int, error)) func() (int, error) {
	type outcome struct {
		value int
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if value := recover(); value != nil {
				o.err = fmt.Errorf("panicked: %w", value.(error))
			}
			done <- o
		}()
		o.value, o.err = g.Do(ctx, key, timeout, work)
	}()
	return func() (int, error) {
		o := <-done
		return o.value, o.err
	}
}

func TestConcurrentCallsShareWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleflight.Group[int]
		var calls atomic.Int64
		work := func(context.Context) (int, error) {
			time.Sleep(time.Second)
			return int(calls.Add(1)), nil
		}
		var waits []func() (int, error)
		for range 3 {
			waits = append(waits, goDo(&g, t.Context(), "a", work))
		}
		other := goDo(&g, t.Context(), "b", func(context.Context) (int, error) { return 0, io.EOF })
		for _, wait := range waits {
			if value, err := wait(); value != 1 || err != nil {
				t.Errorf("got %d, %v; want 1, nil", value, err)
			}
		}
		if _, err := other(); !errors.Is(err, io.EOF) {
			t.Errorf("another key: got %v, want the error of its own work", err)
		}
		if value, _ := g.Do(t.Context(), "a", timeout, work); value != 2 {
			t.Errorf("a later call returned the result of call %d, want 2", value)
		}
	})
}

func TestCallerLeavesAtItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleflight.Group[int]
		work := func(ctx context.Context) (int, error) {
			select {
			case <-time.After(2 * time.Second):
				return 1, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		leaves := goDo(&g, first, "a", work)
		synctest.Wait()
		stays := goDo(&g, t.Context(), "a", work)
		if _, err := leaves(); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("first caller: got %v after %v", err, time.Since(start))
		}
		if value, err := stays(); value != 1 || err != nil {
			t.Errorf("second caller: got %d, %v; want 1, nil", value, err)
		}
		if _, err := g.Do(first, "a", timeout, func(context.Context) (int, error) {
			t.Error("work was started for a caller whose context had ended")
			return 0, nil
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended context: got %v", err)
		}
	})
}

func TestWorkHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleflight.Group[int]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		ended := make(chan time.Duration, 1)
		_, err := g.Do(ctx, "a", timeout, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			ended <- time.Since(start)
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the context ended", err)
		}
		if after := <-ended; after != timeout {
			t.Errorf("the work's context ended after %v, want %v", after, timeout)
		}
	})
}

func TestWorkHasValuesOfFirstCaller(t *testing.T) {
	type key struct{}
	var g singleflight.Group[string]
	ctx := context.WithValue(t.Context(), key{}, "trace")
	got, err := g.Do(ctx, "a", timeout, func(ctx context.Context) (string, error) {
		return ctx.Value(key{}).(string), nil
	})
	if got != "trace" || err != nil {
		t.Errorf("the call saw the value %q of its context, %v", got, err)
	}
}

func TestPanicReachesEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleflight.Group[int]
		var waits []func() (int, error)
		for range 3 {
			waits = append(waits, goDo(&g, t.Context(), "a", panicking))
		}
		for _, wait := range waits {
			_, err := wait()
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, want a panic with an error that wraps the panic's", err)
			}
			if err == nil || !strings.HasPrefix(err.Error(), "panicked: ") || !strings.Contains(err.Error(), "singleflight_test.panicking") {
				t.Errorf("got %v, want a panic with the stack of the work", err)
			}
		}
	})
}

func panicking(context.Context) (int, error) {
	time.Sleep(time.Second)
	panic(io.ErrUnexpectedEOF)
}

func TestPanicWithoutError(t *testing.T) {
	var g singleflight.Group[int]
	defer func() {
		err, _ := recover().(error)
		if err == nil || !strings.Contains(err.Error(), "out of tune") || errors.Unwrap(err) != nil {
			t.Errorf("the panic is %v, want one with the text of the first and no cause", err)
		}
	}()
	_, _ = g.Do(t.Context(), "a", timeout, func(context.Context) (int, error) { panic("out of tune") })
}

func TestGoexitIsAnError(t *testing.T) {
	var g singleflight.Group[int]
	work := func(context.Context) (int, error) {
		runtime.Goexit()
		return 1, nil
	}
	if value, err := g.Do(t.Context(), "a", timeout, work); value != 0 || !errors.Is(err, singleflight.ErrGoexit) {
		t.Errorf("got %d, %v; want 0, ErrGoexit", value, err)
	}
}

// TestCall: a panic and Goexit are errors, and Do panics with the panic of a nested call.
func TestCall(t *testing.T) {
	broken := func() (int, error) { panic(io.ErrUnexpectedEOF) }
	if value, err := singleflight.Call(func() (int, error) { return 1, io.EOF }); value != 1 || err != io.EOF {
		t.Errorf("got %d, %v", value, err)
	}
	_, err := singleflight.Call(broken)
	if panicked, ok := err.(*singleflight.PanicError); !ok || !errors.Is(panicked, io.ErrUnexpectedEOF) {
		t.Errorf("panic: got %v", err)
	}
	_, err = singleflight.Call(func() (int, error) { runtime.Goexit(); return 1, nil })
	if !errors.Is(err, singleflight.ErrGoexit) {
		t.Errorf("Goexit: got %v", err)
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("recovered %v", err)
		}
	}()
	var g singleflight.Group[int]
	_, err = g.Do(t.Context(), "a", timeout, func(context.Context) (int, error) {
		_, err := singleflight.Call(broken)
		return 1, fmt.Errorf("nested: %w", err)
	})
	t.Errorf("no panic, but %v", err)
}
