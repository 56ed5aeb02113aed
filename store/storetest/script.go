package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// client is the client in most cases.
const client = "acme"

// epoch is the time of step 0, as Unix time in seconds. timeOf returns the time of any step.
// Steps are only a microsecond apart, because a store must be able to tell such times apart.
const epoch = 1_800_000_000

func timeOf(step int64) time.Time {
	return time.Unix(epoch, 0).Add(time.Duration(step) * time.Microsecond)
}

// stepAt is the inverse of timeOf.
func stepAt(t time.Time) int64 { return t.UnixMicro() - time.Unix(epoch, 0).UnixMicro() }

// script makes changes to a store and checks the results. Each change comes one step after
// the one before. After the first failure, its methods do nothing.
//
// With several handles, it makes changes through one after the other, and checks results
// through all of them.
type script struct {
	Env
	ctx     context.Context
	handles []webhookcfg.Store // on the same state; the first one is the store of the case
	turn    int                // the next change goes through handle turn, modulo their number
	made    *made              // what the changes of this script and its forks lead to
	now     int64              // the step of the last change
	steps   []string
	err     error
}

// newScript returns a script without steps.
func newScript(ctx context.Context, e Env) *script {
	return &script{Env: e, ctx: ctx, handles: []webhookcfg.Store{e.Store}, made: &made{clients: make(map[string]model)}}
}

// fork returns a new script for concurrent use. Its first change goes through the nth handle.
func (sc *script) fork(n int) *script {
	forked := newScript(sc.ctx, sc.Env)
	forked.handles, forked.turn, forked.made = sc.handles, n, sc.made
	return forked
}

func (sc *script) set(client, entity, url string) {
	sc.apply(webhookcfg.SetChange(client, webhookcfg.Entity(entity), egress.NewURL(url)))
}

func (sc *script) setAll(client, url string) {
	sc.apply(webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(url)))
}

func (sc *script) unset(client, entity string) {
	sc.apply(webhookcfg.UnsetChange(client, webhookcfg.Entity(entity)))
}

func (sc *script) unsetAll(client string) {
	sc.apply(webhookcfg.UnsetChange(client, webhookcfg.All()))
}

// apply makes a change one step after the last one, and returns it with its time.
func (sc *script) apply(c webhookcfg.Change) webhookcfg.Change {
	sc.now++
	c.Time = timeOf(sc.now)
	sc.applyAt(c, c.Time)
	return c
}

// applyAt makes a change with the given time.
func (sc *script) applyAt(c webhookcfg.Change, at time.Time) {
	if sc.err != nil {
		return
	}
	c.Time = at
	if err := sc.send(sc.ctx, c, describeChange(c)); err != nil {
		sc.fail("Apply must make the last of these changes, but returned the error %w", err)
		return
	}
	sc.made.change(c)
}

// send makes a change through the next handle.
func (sc *script) send(ctx context.Context, c webhookcfg.Change, step string) error {
	n := sc.turn % len(sc.handles)
	sc.turn++
	if len(sc.handles) > 1 {
		step = fmt.Sprintf("handle %d: %s", n, step)
	}
	sc.steps = append(sc.steps, step)
	return sc.handles[n].Apply(ctx, c)
}

// expect checks that the webhook is the wanted one, with its time to the microsecond.
func (sc *script) expect(client, entity string, want webhookcfg.Webhook) {
	hook := sc.resolve(client, entity)
	if sc.err == nil && !same(hook, want) {
		sc.fail("Resolve(%q, %q) returned %s, want %s", client, entity, describe(hook), describe(want))
	}
}

// expectURL checks that there's an override or a base with the URL.
func (sc *script) expectURL(client, entity string, source webhookcfg.Source, url string) {
	hook := sc.resolve(client, entity)
	if sc.err == nil && (hook.Source != source || hook.URL.Reveal() != url) {
		want := webhookcfg.Webhook{Source: source, URL: egress.NewURL(url)}
		sc.fail("Resolve(%q, %q) returned %s, want %s", client, entity, describe(hook), describe(want))
	}
}

// expectOff checks that the entity is off.
func (sc *script) expectOff(client, entity string) {
	sc.expectURL(client, entity, off, "")
}

// expectNone checks that nothing is in effect.
func (sc *script) expectNone(client, entity string) {
	hook := sc.resolve(client, entity)
	if sc.err == nil && (hook.Source != webhookcfg.SourceNone || !hook.URL.IsZero() || !hook.Since.IsZero()) {
		sc.fail("Resolve(%q, %q) returned %s, want the zero Webhook, because nothing is in effect", client, entity, describe(hook))
	}
}

func (sc *script) resolve(client, entity string) webhookcfg.Webhook {
	if sc.err != nil {
		return webhookcfg.Webhook{}
	}
	var first webhookcfg.Webhook
	for n, handle := range sc.handles {
		hook, err := handle.Resolve(sc.ctx, client, entity)
		switch {
		case err != nil:
			sc.fail("Resolve(%q, %q) returned the error %w", client, entity, err)
			return hook
		case n == 0:
			first = hook
		case !same(hook, first):
			sc.fail("Resolve(%q, %q) returned %s through handle %d, but %s through handle 0: no handle may rely on its memory, and Harness.OpenPeer must open the same state", client, entity, describe(hook), n, describe(first))
			return first
		}
	}
	return first
}

// reopen closes the store, opens the same state again, and goes on with that.
func (sc *script) reopen() {
	if sc.err != nil {
		return
	}
	sc.steps = append(sc.steps, "reopen")
	sc.Store = sc.Reopen(sc.Store)
	sc.handles = []webhookcfg.Store{sc.Store}
}

// check records a failure if err isn't nil.
func (sc *script) check(err error) {
	if sc.err == nil && err != nil {
		sc.fail("%w", err)
	}
}

// fail records a failure, together with the last calls before it.
func (sc *script) fail(format string, args ...any) {
	steps := sc.steps
	if len(steps) > historyLength {
		steps = append([]string{"…"}, steps[len(steps)-historyLength:]...)
	}
	sc.err = fmt.Errorf(format, args...)
	if len(steps) > 0 {
		sc.err = fmt.Errorf("after these calls:\n\t%s\n%w", strings.Join(steps, "\n\t"), sc.err)
	}
}

func describeChange(c webhookcfg.Change) string {
	what := "all"
	if !c.Scope.IsAll() {
		what = fmt.Sprintf("%.80q", c.Scope.Entity())
	}
	if c.URL.IsZero() {
		return fmt.Sprintf("unset %s of %.80q", what, c.Client)
	}
	return fmt.Sprintf("set %s of %.80q: %.80s", what, c.Client, c.URL.Reveal())
}

// describe shows a webhook in full, because the suite's URLs aren't secret.
func describe(hook webhookcfg.Webhook) string {
	var b strings.Builder
	b.WriteString(hook.Source.String())
	if !hook.URL.IsZero() {
		b.WriteString(" " + hook.URL.Reveal())
	}
	if !hook.Since.IsZero() {
		b.WriteString(" since " + hook.Since.UTC().Format(time.RFC3339Nano))
	}
	return b.String()
}

// hookURL returns a different URL for every n.
func hookURL(n int) string { return fmt.Sprintf("https://hooks.example.com/%d", n) }

func entityName(n int) string { return fmt.Sprintf("e%d", n) }

// refused returns nil if err wraps ErrInvalidArgument.
func refused(what string, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s: no error, but it must be refused with an error that wraps webhookcfg.ErrInvalidArgument", what)
	case !errors.Is(err, webhookcfg.ErrInvalidArgument):
		return fmt.Errorf("%s: the error %q must wrap webhookcfg.ErrInvalidArgument", what, err)
	}
	return nil
}
