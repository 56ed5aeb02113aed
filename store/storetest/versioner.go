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

// versions calls Versions and checks the number of versions. After a failure it returns
// empty ones.
func (sc *script) versions(v cache.Versioner, clients ...string) []string {
	got, err := v.Versions(sc.ctx, clients)
	if err == nil && len(got) != len(clients) {
		err = fmt.Errorf("%d versions of %d clients", len(got), len(clients))
	}
	sc.check(err)
	if sc.err != nil {
		return make([]string, len(clients))
	}
	return got
}

// versionsInOrder requires one version per client in the order of the clients, also if
// clients repeat or are unknown, and none for no clients.
func versionsInOrder(sc *script, v cache.Versioner) error {
	clients := append([]string{"unknown"}, lookalikes()...)
	for n, client := range clients[1:] {
		for range n%5 + 1 { // so that their versions can differ
			sc.set(client, "e1", hookURL(n))
		}
	}
	clients = append(clients, "unknown", "unknown too", clients[1])
	slices.Reverse(clients)
	got := sc.versions(v, clients...)
	for n, client := range clients {
		alone := sc.versions(v, client)[0]
		if sc.err == nil && got[n] != alone {
			sc.fail("the version of %q is %q, but %q among others", client, alone, got[n])
		}
	}
	sc.versions(v)
	return sc.err
}

// seenVersions are the versions that the client had.
type seenVersions []string

// expectAnother checks that the client has a version that it never had before.
func (seen *seenVersions) expectAnother(sc *script, v cache.Versioner) {
	got := sc.versions(v, client)[0]
	if n := slices.Index(*seen, got); sc.err == nil && n >= 0 {
		sc.fail("the version of %q is %q, as it was %d changes ago", client, got, len(*seen)-n)
	}
	*seen = append(*seen, got)
}

// versionsDiffer requires a version that the client never had after every change.
func versionsDiffer(sc *script, v cache.Versioner) error {
	var seen seenVersions
	seen.expectAnother(sc, v)
	for range 3 { // the configurations repeat, the versions must not
		for _, change := range changesOf(client) {
			change(sc)
			seen.expectAnother(sc, v)
		}
	}
	return sc.err
}

// versionsDifferThroughPeers requires the same of changes through other handles.
func versionsDifferThroughPeers(sc *script, v cache.Versioner) error {
	var seen seenVersions
	for n, change := range changesOf(client) {
		sc.use(n)
		change(sc)
		seen.expectAnother(sc, v)
	}
	return sc.err
}

// versionsDifferReopened requires the same if the store is reopened in between.
func versionsDifferReopened(sc *script, v cache.Versioner) error {
	var seen seenVersions
	for n := range 6 {
		sc.set(client, "e1", hookURL(n))
		seen.expectAnother(sc, v)
		if n%2 > 0 {
			sc.reopen()
			var err error
			if v, err = optional[cache.Versioner](sc.Store); err != nil {
				return err
			}
		}
	}
	return sc.err
}

// versionsHold requires, concurrently with a writer, that two reads between equal
// versions have equal results.
func versionsHold(sc *script, v cache.Versioner) error {
	return new(stepper).run(sc, func(int) (int64, bool, error) {
		reader := sc.fork(0)
		before := reader.versions(v, client)[0]
		hook := reader.resolve(client, "e1")
		runtime.Gosched() // let the writer run
		again := reader.resolve(client, "e1")
		after := reader.versions(v, client)[0]
		if reader.err == nil && before == after && !same(hook, again) {
			reader.fail("resolve: %s, then %s, but the version was %q before and after", describe(hook), describe(again), before)
		}
		if reader.err != nil {
			return 0, false, reader.err
		}
		step, err := stepOf(again)
		return step, true, err
	})
}

// versionsStay requires that versions stay the same while nothing changes.
func versionsStay(sc *script, v cache.Versioner) error {
	sc.fill(client)
	sc.set("other", "e1", hookURL(1))
	first := sc.versions(v, client, "other", "unknown")
	for range 3 {
		sc.resolve(client, "e1")
		again := sc.versions(v, client, "other", "unknown")
		if sc.err == nil && !slices.Equal(first, again) {
			sc.fail("the versions were %q and are %q, although nothing changed", first, again)
		}
	}
	return sc.err
}

// versionerEndedContext requires that Versions fails if the context ended before the
// call.
func versionerEndedContext(sc *script, v cache.Versioner) error {
	for _, over := range endedContexts(sc.ctx) {
		if _, err := v.Versions(over, []string{client}); err == nil {
			return errors.New("versions succeeded with an ended context")
		}
	}
	return nil
}

// timeout bounds the wait for something that should happen soon.
const timeout = 10 * time.Second

// poll polls once, because some stores send notifications only after that.
func (sc *script) poll() {
	if feed, ok := sc.Store.(cache.Feed); ok {
		_, err := startCursor(sc, feed)
		sc.check(err)
	} else if v, ok := sc.Store.(cache.Versioner); ok {
		sc.versions(v, client)
	} else {
		sc.fail("%T is a cache.Notifier, but neither a cache.Feed nor a cache.Versioner", sc.Store)
	}
}

// notifierNotifies requires a notification after changes. It makes several, because one
// notification may be lost.
func notifierNotifies(sc *script, w cache.Notifier) error {
	notifications := w.Notify(sc.ctx)
	sc.poll()
	const tries = 20
	for n := range tries {
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
func notifierCloses(sc *script, w cache.Notifier) error {
	ctx, cancel := context.WithCancel(sc.ctx)
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
func notifierBlocksNothing(sc *script, w cache.Notifier) error {
	_ = w.Notify(sc.ctx) // which is never received from
	sc.poll()
	ctx, cancel := context.WithTimeout(sc.ctx, timeout)
	defer cancel()
	sc.ctx = ctx
	for n := range many {
		sc.set(client, entityName(n), hookURL(n))
	}
	return sc.err
}
