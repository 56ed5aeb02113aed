package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// patience is how long a case waits for what should come soon.
const patience = 10 * time.Second

// ask calls what the hints are about, as some stores give none before.
func (e Env) ask(ctx context.Context) error {
	if feed, err := e.feed(); err == nil {
		_, err := follow(ctx, feed)
		return err
	}
	if v, err := e.versioner(); err == nil {
		_, err := version(ctx, v, client)
		return err
	}
	return fmt.Errorf("a %T gives hints, but is neither a cache.Feed nor a cache.Versioner", e.Store)
}

// notifierHints makes changes until there is a hint: one may be lost.
func notifierHints(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	hints := w.Notify(ctx)
	if err := e.ask(ctx); err != nil {
		return err
	}
	const tries = 20
	for n := range tries {
		p := begin(ctx, e.Store)
		p.set(client, "e1", hookURL(n))
		if p.err != nil {
			return p.err
		}
		select {
		case _, more := <-hints:
			if !more {
				return errors.New("the channel was closed before ctx ended")
			}
			return nil
		case <-time.After(patience / tries):
		}
	}
	return fmt.Errorf("there was no hint within %v, in which there were %d changes", patience, tries)
}

func notifierCloses(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	hints := w.Notify(ctx)
	cancel()
	late := time.After(patience)
	for {
		select {
		case _, more := <-hints:
			if !more {
				return nil
			}
		case <-late:
			return fmt.Errorf("the channel was not closed within %v after ctx had ended", patience)
		}
	}
}

func notifierHoldsUpNothing(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	hints := w.Notify(ctx)
	if err := e.ask(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := begin(ctx, e.Store)
	for n := range many {
		p.set(client, entityName(n), hookURL(n))
	}
	_ = hints // which nobody has looked at
	return p.err
}
