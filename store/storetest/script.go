package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// client is the client in most cases.
const client = "acme"

// epoch is the time of step 0, in seconds of Unix time, and timeOf that of any step: the steps
// are a microsecond apart, which a store must tell apart.
const epoch = 1_800_000_000

func timeOf(step int64) time.Time {
	return time.Unix(epoch, 0).Add(time.Duration(step) * time.Microsecond)
}

// stepAt is the inverse of timeOf.
func stepAt(t time.Time) int64 { return t.UnixMicro() - time.Unix(epoch, 0).UnixMicro() }

// script makes changes to a store and checks the results. After the first failure its
// methods do nothing. Each change has a time of its own, one step after the one before.
//
// With several handles, the changes are made through one after the other, and results are
// checked through all of them.
type script struct {
	Env
	ctx     context.Context
	handles []webhookcfg.Store // on the same state; the first is that of the case
	turn    int                // which handle makes the next change, counted in turn
	now     int64              // the step of the last change
	steps   []string
	err     error
}

// newScript returns a script without steps.
func newScript(ctx context.Context, e Env) *script {
	return &script{Env: e, ctx: ctx, handles: []webhookcfg.Store{e.Store}}
}

// fork returns a new script for concurrent use, whose first change is made through the nth
// handle, counted in turn.
func (sc *script) fork(n int) *script {
	forked := newScript(sc.ctx, sc.Env)
	forked.handles, forked.turn = sc.handles, n
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

// apply makes a change one step after the one before, and returns it with its time.
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
		sc.fail("error: %w", err)
	}
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

// expect checks for the webhook, with its time to the microsecond.
func (sc *script) expect(client, entity string, want webhookcfg.Webhook) {
	hook := sc.resolve(client, entity)
	if sc.err == nil && !same(hook, want) {
		sc.fail("resolve of %q / %q: %s, want %s", client, entity, describe(hook), describe(want))
	}
}

// expectURL checks for an override or a base with the URL.
func (sc *script) expectURL(client, entity string, source webhookcfg.Source, url string) {
	hook := sc.resolve(client, entity)
	if sc.err == nil && (hook.Source != source || hook.URL.Reveal() != url) {
		want := webhookcfg.Webhook{Source: source, URL: egress.NewURL(url)}
		sc.fail("resolve of %q / %q: %s, want %s", client, entity, describe(hook), describe(want))
	}
}

// expectOff checks for an override that is off.
func (sc *script) expectOff(client, entity string) {
	sc.expectURL(client, entity, off, "")
}

// expectNone checks for the zero Webhook.
func (sc *script) expectNone(client, entity string) {
	hook := sc.resolve(client, entity)
	if sc.err == nil && (hook.Source != webhookcfg.SourceNone || !hook.URL.IsZero() || !hook.Since.IsZero()) {
		sc.fail("resolve of %q / %q: %s, want the zero Webhook", client, entity, describe(hook))
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
			sc.fail("resolve of %q / %q: error %w", client, entity, err)
			return hook
		case n == 0:
			first = hook
		case !same(hook, first):
			sc.fail("resolve of %q / %q through handle %d: %s, but %s through handle 0", client, entity, n, describe(hook), describe(first))
			return first
		}
	}
	return first
}

// reopen closes the store and continues with the same state, opened again.
func (sc *script) reopen() {
	if sc.err != nil {
		return
	}
	sc.steps = append(sc.steps, "reopen")
	sc.Store = sc.Reopen(sc.Store)
	sc.handles = []webhookcfg.Store{sc.Store}
}

// check records err, if it is not nil, as a failure.
func (sc *script) check(err error) {
	if sc.err == nil && err != nil {
		sc.fail("%w", err)
	}
}

// fail records a failure together with the last steps, those of a whole history.
func (sc *script) fail(format string, args ...any) {
	steps := sc.steps
	if len(steps) > historyLength {
		steps = append([]string{"…"}, steps[len(steps)-historyLength:]...)
	}
	sc.err = fmt.Errorf("after\n\t%s\n%w", strings.Join(steps, "\n\t"), fmt.Errorf(format, args...))
}

func describeChange(c webhookcfg.Change) string {
	what := "all"
	if !c.Scope.IsAll() {
		what = strconv.Quote(c.Scope.Entity())
	}
	if c.URL.IsZero() {
		return fmt.Sprintf("unset %s of %q", what, c.Client)
	}
	return fmt.Sprintf("set %s of %q: %s", what, c.Client, c.URL.Reveal())
}

// describe formats a webhook in full. The URLs of the suite are not secret.
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

// hookURL returns a URL that is different for every n.
func hookURL(n int) string { return fmt.Sprintf("https://hooks.example.com/%d", n) }

func entityName(n int) string { return fmt.Sprintf("e%d", n) }

// refused returns nil if err wraps ErrInvalidArgument.
func refused(what string, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s succeeded", what)
	case !errors.Is(err, webhookcfg.ErrInvalidArgument):
		return fmt.Errorf("%s: error %q does not wrap ErrInvalidArgument", what, err)
	}
	return nil
}
