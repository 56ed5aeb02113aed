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

// epoch is one second before the time of the first change.
const epoch = 1_800_000_000

// script makes changes to a store and checks the results. After the first failure its
// methods do nothing. Each change has a time of its own, one second after the one
// before.
type script struct {
	ctx   context.Context
	store webhookcfg.Store
	now   int64
	steps []string
	err   error
}

// newScript returns a script without steps.
func newScript(ctx context.Context, s webhookcfg.Store) *script {
	return &script{ctx: ctx, store: s, now: epoch}
}

func (sc *script) set(client, entity, url string) {
	sc.apply(webhookcfg.Set(client, webhookcfg.Entity(entity), egress.NewURL(url)))
}

func (sc *script) setAll(client, url string) {
	sc.apply(webhookcfg.Set(client, webhookcfg.All(), egress.NewURL(url)))
}

func (sc *script) unset(client, entity string) {
	sc.apply(webhookcfg.Unset(client, webhookcfg.Entity(entity)))
}

func (sc *script) unsetAll(client string) {
	sc.apply(webhookcfg.Unset(client, webhookcfg.All()))
}

// apply makes a change one second after the one before.
func (sc *script) apply(c webhookcfg.Change) {
	sc.now++
	sc.applyAt(c, time.Unix(sc.now, 0))
}

// applyAt makes a change with the given time.
func (sc *script) applyAt(c webhookcfg.Change, at time.Time) {
	if sc.err != nil {
		return
	}
	c.Time = at
	sc.steps = append(sc.steps, describeChange(c))
	if err := sc.store.Apply(sc.ctx, c); err != nil {
		sc.fail("error: %q", err)
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
	hook, err := sc.store.Resolve(sc.ctx, client, entity)
	if err != nil {
		sc.fail("resolve of %q / %q: error %q", client, entity, err)
	}
	return hook
}

// reopen closes the store and continues with the same state, opened again.
func (sc *script) reopen(e Env) {
	if sc.err != nil {
		return
	}
	sc.steps = append(sc.steps, "reopen")
	sc.store = e.Reopen(sc.store)
}

// fail records a failure together with the last few steps.
func (sc *script) fail(format string, args ...any) {
	const shown = 12
	steps := sc.steps
	if len(steps) > shown {
		steps = append([]string{"…"}, steps[len(steps)-shown:]...)
	}
	sc.err = fmt.Errorf("after%s\n%s", lines(steps), fmt.Sprintf(format, args...))
}

// lines formats steps, one per line.
func lines(steps []string) string { return "\n\t" + strings.Join(steps, "\n\t") }

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
		fmt.Fprintf(&b, " since %d", hook.Since.Unix())
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
