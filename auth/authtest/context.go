package authtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/go-webhookcfg/internal/interrupt"
	"example.com/go-webhookcfg/webhookcfg"
)

// endedContexts returns a context that was canceled, and one whose deadline has passed.
func endedContexts(ctx context.Context) (canceled, late context.Context) {
	canceled, cancel1 := context.WithCancel(ctx)
	cancel1()
	late, cancel2 := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	cancel2()
	return canceled, late
}

func endedContext(ctx context.Context, h Harness) error {
	canceled, late := endedContexts(ctx)
	for _, ended := range []context.Context{canceled, late} {
		for i, c := range h.SignsIn {
			if err := noWrongVerdict(ended, h, c); err != nil {
				return fmt.Errorf("credential %d, with an ended context (%w): %w", i, ended.Err(), err)
			}
			if err := accepts(ctx, h, c); err != nil {
				return fmt.Errorf("credential %d, after a call with an ended context: %w", i, err)
			}
		}
		for _, r := range refusals(h) {
			if _, err := verify(ended, h.Verifier, r.Credential); err == nil {
				return fmt.Errorf("%s: signed in with an ended context (%w)", r.what, ended.Err())
			}
		}
	}
	for i, c := range h.SignsIn {
		if err := endsMidway(ctx, h, c); err != nil {
			return fmt.Errorf("credential %d: %w", i, err)
		}
	}
	return nil
}

// endsMidway ends the context during a call: each time the verifier looks at it, and after
// parts of the time that a call takes, since some verifiers only look at the deadline.
func endsMidway(ctx context.Context, h Harness, c Credential) error {
	err := interrupt.Each(ctx, func(over context.Context) error { return noWrongVerdict(over, h, c) })
	if err != nil {
		return err
	}
	err = interrupt.Each(ctx, func(over context.Context) error { return noWrongVerdict(passed{over}, h, c) })
	if err != nil {
		return fmt.Errorf("deadline passed: %w", err)
	}
	took, err := duration(ctx, h, c)
	if err != nil {
		return err
	}
	const steps = 8
	for n := range time.Duration(steps) {
		soon, cancel := context.WithTimeout(ctx, took*n/steps)
		err := noWrongVerdict(soon, h, c)
		cancel()
		if err != nil {
			return fmt.Errorf("the deadline passed during the call: %w", err)
		}
	}
	return nil
}

// passed is a context that ends like another one, but as if its deadline had passed.
type passed struct{ context.Context }

// Err implements [context.Context].
func (p passed) Err() error {
	if p.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// noWrongVerdict returns nil if a valid credential signs in or fails, but isn't refused.
func noWrongVerdict(ctx context.Context, h Harness, c Credential) error {
	client, err := verify(ctx, h.Verifier, c)
	switch {
	case errors.Is(err, webhookcfg.ErrInvalidCredentials):
		return errors.New("valid, but refused")
	case errors.Is(err, errPanic):
		return err
	case err == nil && client.ID != c.Owner:
		return errors.New("signed in another client")
	}
	return nil
}

// duration returns how long a sign-in takes.
func duration(ctx context.Context, h Harness, c Credential) (time.Duration, error) {
	start := time.Now()
	err := accepts(ctx, h, c)
	return time.Since(start), err
}

// returnsSoon makes many calls, so a verifier that is only a little late exceeds the limit,
// and a correct one doesn't come near it.
func returnsSoon(ctx context.Context, h Harness) error {
	const calls, limit = 24, 6 * time.Second
	canceled, late := endedContexts(ctx)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for n := range calls / 2 {
			_, _ = verify(canceled, h.Verifier, h.SignsIn[n%len(h.SignsIn)])
			_, _ = verify(late, h.Verifier, h.SignsIn[n%len(h.SignsIn)])
		}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-returned:
		return nil
	case <-timer.C:
		return fmt.Errorf("%d calls with a context that has ended take more than %v", calls, limit)
	}
}
