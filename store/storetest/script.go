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

// client is whose configuration most cases are about.
const client = "acme"

// epoch is the time of the changes before the first.
const epoch = 1_800_000_000

// play is a scene on a store: changes, and what is expected after them. It goes
// on until something fails; from then on its methods do nothing. Each change has
// a time of its own, a second after the one before.
type play struct {
	ctx   context.Context
	store webhookcfg.Store
	now   int64
	steps []string
	err   error
}

func begin(ctx context.Context, s webhookcfg.Store) *play {
	return &play{ctx: ctx, store: s, now: epoch}
}

func (p *play) set(client, entity, url string) {
	p.apply(webhookcfg.Set(client, webhookcfg.Entity(entity), egress.NewURL(url)))
}

func (p *play) setAll(client, url string) {
	p.apply(webhookcfg.Set(client, webhookcfg.All(), egress.NewURL(url)))
}

func (p *play) unset(client, entity string) {
	p.apply(webhookcfg.Unset(client, webhookcfg.Entity(entity)))
}

func (p *play) unsetAll(client string) {
	p.apply(webhookcfg.Unset(client, webhookcfg.All()))
}

func (p *play) apply(c webhookcfg.Change) {
	p.now++
	p.applyAt(c, time.Unix(p.now, 0))
}

func (p *play) applyAt(c webhookcfg.Change, at time.Time) {
	if p.err != nil {
		return
	}
	c.Time = at
	p.steps = append(p.steps, describeChange(c))
	if err := p.store.Apply(p.ctx, c); err != nil {
		p.fail("it returned the error %q", err)
	}
}

// expectURL expects an override or a base with that URL.
func (p *play) expectURL(client, entity string, source webhookcfg.Source, url string) {
	hook := p.resolve(client, entity)
	if p.err == nil && (hook.Source != source || hook.URL.Reveal() != url) {
		want := webhookcfg.Webhook{Source: source, URL: egress.NewURL(url)}
		p.fail("resolve of %q / %q gives %s, want %s", client, entity, describe(hook), describe(want))
	}
}

// expectOff expects an override that says "off".
func (p *play) expectOff(client, entity string) {
	p.expectURL(client, entity, off, "")
}

// expectNone expects the zero Webhook.
func (p *play) expectNone(client, entity string) {
	hook := p.resolve(client, entity)
	if p.err == nil && (hook.Source != webhookcfg.SourceNone || !hook.URL.IsZero() || !hook.Since.IsZero()) {
		p.fail("resolve of %q / %q gives %s, want the zero Webhook", client, entity, describe(hook))
	}
}

func (p *play) resolve(client, entity string) webhookcfg.Webhook {
	if p.err != nil {
		return webhookcfg.Webhook{}
	}
	hook, err := p.store.Resolve(p.ctx, client, entity)
	if err != nil {
		p.fail("resolve of %q / %q returned the error %q", client, entity, err)
	}
	return hook
}

// reopen goes on with the same state, opened again.
func (p *play) reopen(e Env) {
	if p.err != nil {
		return
	}
	p.steps = append(p.steps, "reopen")
	p.store = e.Reopen(p.store)
}

// fail ends the play with what is wrong after the last few steps.
func (p *play) fail(format string, args ...any) {
	const shown = 12
	steps := p.steps
	if len(steps) > shown {
		steps = append([]string{"…"}, steps[len(steps)-shown:]...)
	}
	p.err = fmt.Errorf("after%s\n%s", lines(steps), fmt.Sprintf(format, args...))
}

// lines is a list with a line for each step.
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

// describe is a webhook in full. The URLs of the suite are no secrets.
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

// hookURL is a URL that differs for every n.
func hookURL(n int) string { return fmt.Sprintf("https://hooks.example.com/%d", n) }

func entityName(n int) string { return fmt.Sprintf("e%d", n) }

// refused returns nil if err wraps ErrInvalidArgument.
func refused(what string, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s succeeded", what)
	case !errors.Is(err, webhookcfg.ErrInvalidArgument):
		return fmt.Errorf("%s returned %q, which does not wrap ErrInvalidArgument", what, err)
	}
	return nil
}
