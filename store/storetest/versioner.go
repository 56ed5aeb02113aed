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

// versions calls Versions and checks the number of versions.
func versions(ctx context.Context, v cache.Versioner, clients ...string) ([]string, error) {
	got, err := v.Versions(ctx, clients)
	if err == nil && len(got) != len(clients) {
		err = fmt.Errorf("%d versions of %d clients", len(got), len(clients))
	}
	return got, err
}

// version returns the version of one client.
func version(ctx context.Context, v cache.Versioner, client string) (string, error) {
	got, err := versions(ctx, v, client)
	if err != nil {
		return "", err
	}
	return got[0], nil
}

// versionsInOrder requires one version per client in the order of the clients, also if
// clients repeat or are unknown, and none for no clients.
func versionsInOrder(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	clients := append([]string{"unknown"}, lookalikes()...)
	for n, client := range clients[1:] {
		for range n%5 + 1 { // so that their versions can differ
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
			return fmt.Errorf("the version of %q is %q, but %q among others", client, alone, got[n])
		}
	}
	_, err = versions(ctx, v)
	return err
}

// seenVersions collects the versions of a client.
type seenVersions struct {
	ctx    context.Context
	client string
	all    []string
}

// expectAnother checks that the client has a version that it never had before.
func (s *seenVersions) expectAnother(v cache.Versioner, sc *script) error {
	if sc.err != nil {
		return sc.err
	}
	got, err := version(s.ctx, v, s.client)
	if err != nil {
		return err
	}
	if n := slices.Index(s.all, got); n >= 0 {
		sc.fail("the version of %q is %q, as it was %d changes ago", s.client, got, len(s.all)-n)
	}
	s.all = append(s.all, got)
	return sc.err
}

// versionsDiffer requires a version that the client never had after every change.
func versionsDiffer(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	sc, seen := newScript(ctx, e.Store), &seenVersions{ctx: ctx, client: client}
	if err := seen.expectAnother(v, sc); err != nil {
		return err
	}
	for range 3 { // the configurations repeat, the versions must not
		for _, change := range changesOf(client) {
			change(sc)
			if err := seen.expectAnother(v, sc); err != nil {
				return err
			}
		}
	}
	return nil
}

// versionsDifferThroughPeers requires the same of changes through other handles.
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
		sc.now += int64(n) // a different time than through the other handles
		change(sc)
		if err := seen.expectAnother(v, sc); err != nil {
			return err
		}
	}
	return nil
}

// versionsDifferReopened requires the same if the store is reopened in between.
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

// versionsHold requires, concurrently with a writer, that two reads between equal
// versions have equal results.
func versionsHold(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	return new(stepper).run(ctx, e.Store, func(int) observe {
		return func() (int64, bool, error) {
			before, err1 := version(ctx, v, client)
			hook, err2 := e.Store.Resolve(ctx, client, "e1")
			runtime.Gosched() // let the writer run
			again, err3 := e.Store.Resolve(ctx, client, "e1")
			after, err4 := version(ctx, v, client)
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				return 0, false, err
			}
			if before == after && !same(hook, again) {
				return 0, false, fmt.Errorf("resolve: %s, then %s, but the version was %q before and after", describe(hook), describe(again), before)
			}
			step, err := stepOf(again)
			return step, true, err
		}
	})
}

// versionsStay requires that versions stay the same while nothing changes.
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
			return fmt.Errorf("the versions were %q and are %q, although nothing changed", first, again)
		}
	}
	return nil
}

// versionerEndedContext requires that Versions fails if the context ended before the
// call.
func versionerEndedContext(ctx context.Context, e Env) error {
	v, err := e.versioner()
	if err != nil {
		return err
	}
	ended, release := endedContexts(ctx)
	defer release()
	for _, over := range ended {
		if _, err := v.Versions(over, []string{client}); err == nil {
			return errors.New("versions succeeded with an ended context")
		}
	}
	return nil
}

// timeout bounds the wait for something that should happen soon.
const timeout = 10 * time.Second

// poll polls once, because some stores send notifications only after that.
func (e Env) poll(ctx context.Context) error {
	if feed, err := e.feed(); err == nil {
		_, err := startCursor(ctx, feed)
		return err
	}
	if v, err := e.versioner(); err == nil {
		_, err := version(ctx, v, client)
		return err
	}
	return fmt.Errorf("%T is a cache.Notifier, but neither a cache.Feed nor a cache.Versioner", e.Store)
}

// notifierNotifies requires a notification after changes. It makes several, because one
// notification may be lost.
func notifierNotifies(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	notifications := w.Notify(ctx)
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
		case _, more := <-notifications:
			if !more {
				return errors.New("the channel was closed before ctx ended")
			}
			return nil
		case <-time.After(timeout / tries):
		}
	}
	return fmt.Errorf("no notification within %v and %d changes", timeout, tries)
}

// notifierCloses requires that the channel is closed soon after ctx ends.
func notifierCloses(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	notifications := w.Notify(ctx)
	cancel()
	late := time.After(timeout)
	for {
		select {
		case _, more := <-notifications:
			if !more {
				return nil
			}
		case <-late:
			return fmt.Errorf("the channel was not closed within %v after ctx ended", timeout)
		}
	}
}

// notifierBlocksNothing requires that changes succeed while no caller receives from the
// channel.
func notifierBlocksNothing(ctx context.Context, e Env) error {
	w, err := e.notifier()
	if err != nil {
		return err
	}
	notifications := w.Notify(ctx)
	if err := e.poll(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sc := newScript(ctx, e.Store)
	for n := range many {
		sc.set(client, entityName(n), hookURL(n))
	}
	_ = notifications // which is never received from
	return sc.err
}
