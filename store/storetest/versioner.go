package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"example.com/go-webhookcfg/store/cache"
)

// versions asks for versions and counts them.
func versions(ctx context.Context, v cache.Versioner, clients ...string) ([]string, error) {
	got, err := v.Versions(ctx, clients)
	if err == nil && len(got) != len(clients) {
		err = fmt.Errorf("there are %d versions of %d clients", len(got), len(clients))
	}
	return got, err
}

// version returns that of one client.
func version(ctx context.Context, v cache.Versioner, client string) (string, error) {
	got, err := versions(ctx, v, client)
	if err != nil {
		return "", err
	}
	return got[0], nil
}

func versionsInOrder(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	clients := append([]string{"unknown"}, lookalikes()...)
	for n, client := range clients[1:] {
		for range n%5 + 1 { // so that not all have the same
			sc.set(client, "e1", hookURL(n))
		}
	}
	clients = append(clients, "unknown", "unknown too", clients[1])
	slices.Reverse(clients)
	got, err := versions(ctx, v, clients...)
	if err := errors.Join(sc.err, err); err != nil {
		return err
	}
	for n, client := range clients {
		alone, err := version(ctx, v, client)
		if err != nil {
			return err
		}
		if got[n] != alone {
			return fmt.Errorf("the version of %q is %q, and %q among others", client, alone, got[n])
		}
	}
	_, err = versions(ctx, v)
	return err
}

// seenVersions are the versions that a client had.
type seenVersions struct {
	ctx    context.Context
	client string
	all    []string
}

// expectAnother wants a version that the client never had.
func (s *seenVersions) expectAnother(v cache.Versioner, sc *script) error {
	if sc.err != nil {
		return sc.err
	}
	got, err := version(s.ctx, v, s.client)
	if err != nil {
		return err
	}
	if n := slices.Index(s.all, got); n >= 0 {
		sc.fail("the version of %q is %q, which it was %d changes ago", s.client, got, len(s.all)-n)
	}
	s.all = append(s.all, got)
	return sc.err
}

func versionsDiffer(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	sc, seen := newScript(ctx, e.Store), &seenVersions{ctx: ctx, client: client}
	if err := seen.expectAnother(v, sc); err != nil {
		return err
	}
	for range 3 { // the configuration comes back, the versions do not
		for _, change := range changesOf(client) {
			change(sc)
			if err := seen.expectAnother(v, sc); err != nil {
				return err
			}
		}
	}
	return nil
}

func versionsDifferThroughPeers(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	seen := &seenVersions{ctx: ctx, client: client}
	for n, change := range changesOf(client) {
		sc := newScript(ctx, handles[n%len(handles)])
		sc.now += int64(n) // another time than that of the other handles
		change(sc)
		if err := seen.expectAnother(v, sc); err != nil {
			return err
		}
	}
	return nil
}

func versionsDifferReopened(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	if err := e.durable(); err != nil {
		return err
	}
	sc, seen := newScript(ctx, e.Store), &seenVersions{ctx: ctx, client: client}
	for n := range 6 {
		sc.set(client, "e1", hookURL(n))
		if err := seen.expectAnother(v, sc); err != nil {
			return err
		}
		if n%2 > 0 {
			sc.reopen(e)
			if v, err = (Env{Store: sc.store}).versioner(); err != nil {
				return err
			}
		}
	}
	return nil
}

// versionsHold: between two equal versions there are two equal answers.
func versionsHold(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	return new(stepper).run(ctx, e.Store, func(int) look {
		return func() (int64, bool, error) {
			before, err1 := version(ctx, v, client)
			hook, err2 := e.Store.Resolve(ctx, client, "e1")
			runtime.Gosched() // to the writer
			again, err3 := e.Store.Resolve(ctx, client, "e1")
			after, err4 := version(ctx, v, client)
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				return 0, false, err
			}
			if before == after && !same(hook, again) {
				return 0, false, fmt.Errorf("resolve gave %s, then %s, and the version was %q before and after", describe(hook), describe(again), before)
			}
			step, err := stepOf(again)
			return step, true, err
		}
	})
}

func versionsStay(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	sc.fill(client)
	sc.set("other", "e1", hookURL(1))
	if sc.err != nil {
		return sc.err
	}
	first, err := versions(ctx, v, client, "other", "unknown")
	for range 3 {
		sc.resolve(client, "e1")
		again, err2 := versions(ctx, v, client, "other", "unknown")
		if err := errors.Join(sc.err, err, err2); err != nil {
			return err
		}
		if !slices.Equal(first, again) {
			return fmt.Errorf("the versions were %q and are %q, though nothing changed", first, again)
		}
	}
	return nil
}

func versionerEndedContext(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	ended, release := endedContexts(ctx)
	defer release()
	for _, over := range ended {
		if _, err := v.Versions(over, []string{client}); err == nil {
			return errors.New("versions with a context that had ended gave no error")
		}
	}
	return nil
}

// timeout is how long a case waits for what should come soon.
const timeout = 10 * time.Second

// ask calls what the hints are about, as some stores give none before.
func (e Env) poll(ctx context.Context) error {
	if feed, err := e.feed(); err == nil {
		_, err := startCursor(ctx, feed)
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
	if err := e.poll(ctx); err != nil {
		return err
	}
	const tries = 20
	for n := range tries {
		sc := newScript(ctx, e.Store)
		sc.set(client, "e1", hookURL(n))
		if sc.err != nil {
			return sc.err
		}
		select {
		case _, more := <-hints:
			if !more {
				return errors.New("the channel was closed before ctx ended")
			}
			return nil
		case <-time.After(timeout / tries):
		}
	}
	return fmt.Errorf("there was no hint within %v, in which there were %d changes", timeout, tries)
}

func notifierCloses(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	hints := w.Notify(ctx)
	cancel()
	late := time.After(timeout)
	for {
		select {
		case _, more := <-hints:
			if !more {
				return nil
			}
		case <-late:
			return fmt.Errorf("the channel was not closed within %v after ctx had ended", timeout)
		}
	}
}

func notifierHoldsUpNothing(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	hints := w.Notify(ctx)
	if err := e.poll(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sc := newScript(ctx, e.Store)
	for n := range many {
		sc.set(client, entityName(n), hookURL(n))
	}
	_ = hints // which unknown has looked at
	return sc.err
}
