package authtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

func concurrentUse(ctx context.Context, h Harness) error {
	// A verifier with a costly hash may bound its queue, and then fails more than a few
	// checks at a time.
	const rounds, concurrency = 4, 8
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		all   []error
	)
	running := make(chan struct{}, concurrency)
	run := func(check func(context.Context, Harness, Credential) error, c Credential) {
		running <- struct{}{}
		group.Go(func() {
			err := check(ctx, h, c)
			<-running
			mu.Lock()
			defer mu.Unlock()
			all = append(all, err)
		})
	}
	for range rounds {
		for _, c := range h.SignsIn {
			run(accepts, c)
		}
		for _, r := range refusals(h) {
			run(refuses, r.Credential)
		}
	}
	group.Wait()
	for i, c := range h.SignsIn {
		if err := outlivesAnotherCaller(ctx, h, c); err != nil {
			all = append(all, fmt.Errorf("credential %d: %w", i, err))
		}
	}
	return errors.Join(all...)
}

// outlivesAnotherCaller returns nil if a caller signs in although another one, which presented
// the same credential before it, gives up.
func outlivesAnotherCaller(ctx context.Context, h Harness, c Credential) error {
	took, err := duration(ctx, h, c)
	if err != nil {
		return err
	}
	givesUp, cancel := context.WithTimeout(ctx, took/2)
	defer cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = verify(givesUp, h.Verifier, c)
	}()
	time.Sleep(took / 4)
	err = accepts(ctx, h, c)
	<-returned
	if err != nil {
		return fmt.Errorf("while another caller with the same credential gave up: %w", err)
	}
	return nil
}
