package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"example.com/go-webhookcfg/internal/interrupt"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// versions calls Versions and checks that there's one for each client. After a failure it
// returns empty ones.
func (sc *script) versions(v cache.Versioner, clients ...string) []string {
	got, err := v.Versions(sc.ctx, slices.Clone(clients))
	if err == nil && len(got) != len(clients) {
		err = fmt.Errorf("there are %d versions for %d clients: return one for each", len(got), len(clients))
	}
	sc.check(err)
	if sc.err != nil {
		return make([]string, len(clients))
	}
	return got
}

// versionsInOrder checks that there's a version for each client, in the order of the clients,
// even if clients repeat or are unknown, and none if you ask for none.
func versionsInOrder(sc *script, v cache.Versioner) error {
	clients := append([]string{"unknown"}, sc.lookalikes()...)
	for n, client := range clients[1:] {
		for range n%5 + 1 { // so that their versions can differ
			sc.set(client, "e1", hookURL(n))
		}
	}
	clients = append(clients, "unknown", "unknown too", clients[1])
	known := len(clients)
	for n := range sc.crowd() {
		clients = append(clients, fmt.Sprint("unknown ", n))
	}
	slices.Reverse(clients[:known])
	got := sc.versions(v, clients...)
	for n, client := range clients[:known] {
		alone := sc.versions(v, client)[0]
		if sc.err == nil && got[n] != alone {
			sc.fail("Versions returned %[2]q for %[1]q alone, but %[3]q for it among other clients: the order must be that of the argument", client, alone, got[n])
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
		sc.fail("the version of %q is %q, as it was %d change(s) ago, but after every change it must be one that the client never had", client, got, len(*seen)-n)
	}
	*seen = append(*seen, got)
}

// versionsDiffer checks that every change gives a version that the client never had, for many
// changes, and for several changes at one time.
func versionsDiffer(sc *script, v cache.Versioner) error {
	var seen seenVersions
	seen.expectAnother(sc, v)
	for range 3 { // the configurations repeat, the versions must not
		for _, change := range changesOf(client) {
			change(sc)
			seen.expectAnother(sc, v)
		}
	}
	const changes = 300 // more than a byte counts
	for n := range sc.fewer(changes) {
		sc.applyAt(webhookcfg.SetChange(client, webhookcfg.Entity("e1"), egress.NewURL(hookURL(n))), timeOf(sc.now))
		seen.expectAnother(sc, v)
	}
	return sc.err
}

// versionsDifferReopened checks the same for a store that's reopened in between.
func versionsDifferReopened(sc *script, v cache.Versioner) error {
	var seen seenVersions
	for n, change := range changesOf(client) {
		change(sc)
		seen.expectAnother(sc, v)
		if n%2 > 0 { // sometimes when the client has nothing set
			sc.reopen()
			var err error
			if v, err = optional[cache.Versioner](sc.Store); err != nil {
				return err
			}
		}
	}
	sc.expectAll("after opening the store again")
	return sc.err
}

// versionsHold checks, while a writer makes changes, that two reads between equal versions
// have equal results.
func versionsHold(sc *script, v cache.Versioner) error {
	m := &stepper{entities: 1, minReads: int64(sc.fewer(250))}
	return m.run(sc, func(_, _ int) (first, last int64, err error) {
		reader := newScript(sc.ctx, sc.Env)
		before := reader.versions(v, client)[0]
		hook := reader.resolve(client, entityName(0))
		runtime.Gosched() // let the writer run
		again := reader.resolve(client, entityName(0))
		after := reader.versions(v, client)[0]
		if reader.err == nil && before == after && !same(hook, again) {
			reader.fail("Resolve returned %s and then %s, but Versions returned %q before and after: the version must change with the webhook", describe(hook), describe(again), before)
		}
		if reader.err != nil {
			return 0, 0, reader.err
		}
		return m.steps(0, again)
	})
}

// versionsStay checks that versions stay the same while nothing changes.
func versionsStay(sc *script, v cache.Versioner) error {
	sc.fill(client)
	sc.set("other", "e1", hookURL(1))
	first := sc.versions(v, client, "other", "unknown")
	for range 3 {
		sc.resolve(client, "e1")
		again := sc.versions(v, client, "other", "unknown")
		if sc.err == nil && !slices.Equal(first, again) {
			sc.fail("Versions returned %q and then %q, although nothing changed in between", first, again)
		}
	}
	return sc.err
}

// versionerEndedContext checks that Versions returns an error if the context ended before the
// call. If it ends during the call, Versions can return an error or the versions.
func versionerEndedContext(sc *script, v cache.Versioner) error {
	for _, over := range endedContexts(sc.ctx) {
		if _, err := v.Versions(over, []string{client}); err == nil {
			return errors.New("a call of Versions with an ended ctx returned no error: check ctx.Err first")
		}
	}
	clients := []string{client, "other", "unknown"}
	sc.set(client, "e1", hookURL(1))
	sc.set("other", "e1", hookURL(1))
	want := sc.versions(v, clients...)
	sc.check(interrupt.Each(sc.ctx, func(over context.Context) error {
		got, err := v.Versions(over, clients)
		if err == nil && !slices.Equal(got, want) {
			return fmt.Errorf("the versions are %q, want %q or an error", got, want)
		}
		return holdsNoURL(err)
	}))
	return sc.err
}

// timeout limits the wait for something that should happen soon, even on a busy machine.
const timeout = time.Minute

// poll polls once, because some stores don't notify before the first poll.
func (sc *script) poll() {
	if feed, ok := sc.Store.(cache.Feed); ok {
		_, err := startCursor(sc, feed)
		if !errors.Is(err, errors.ErrUnsupported) {
			sc.check(err)
			return
		}
	}
	if v, ok := sc.Store.(cache.Versioner); ok {
		sc.versions(v, client)
	} else {
		sc.fail("%T is a cache.Notifier, but neither a cache.Feed nor a cache.Versioner, so there's nothing to poll: add one of them", sc.Store)
	}
}

// notifierNotifies checks that a change notifies all callers, again and again, even after a
// caller has left. It makes several changes, because notifications can be lost.
func notifierNotifies(sc *script, w cache.Notifier) error {
	ctx, cancel := context.WithCancel(sc.ctx)
	defer cancel()
	leaving, staying := w.Notify(ctx), w.Notify(sc.ctx)
	sc.poll()
	for range 3 {
		if err := sc.notified(leaving, staying); err != nil {
			return err
		}
	}
	cancel()
	return sc.notified(staying)
}

// notified returns nil once a change has notified every channel.
func (sc *script) notified(channels ...<-chan struct{}) error {
	const tries = 20
	for n := range tries {
		for _, channel := range channels {
			select {
			case <-channel: // from an earlier change
			default:
			}
		}
		sc.set(client, "e1", hookURL(n))
		if sc.err != nil {
			return sc.err
		}
		ctx, cancel := context.WithTimeout(sc.ctx, timeout/tries)
		defer cancel()
		count := 0
		for _, channel := range channels {
			select {
			case _, more := <-channel:
				if !more {
					return errors.New("the channel of Notify was closed, although ctx hasn't ended")
				}
				count++
			case <-ctx.Done():
			}
		}
		if count == len(channels) {
			return nil
		}
	}
	return fmt.Errorf("within %v and %d changes, there was none that notified all callers of Notify", timeout, tries)
}

// notifierCloses checks that the channel is closed soon after ctx ends.
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
			return fmt.Errorf("the channel of Notify is still open %v after ctx ended: close it then", timeout)
		}
	}
}

// notifierBlocksNothing checks that changes succeed while nobody receives from the channel.
func notifierBlocksNothing(sc *script, w cache.Notifier) error {
	_ = w.Notify(sc.ctx) // nobody receives from it
	sc.poll()
	ctx, cancel := context.WithTimeout(sc.ctx, timeout)
	defer cancel()
	sc.ctx = ctx
	for n := range many {
		sc.set(client, entityName(n), hookURL(n))
	}
	return sc.err
}
