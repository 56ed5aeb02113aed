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

// invalidChanges are those that Change.Validate refuses, each with its reason.
func invalidChanges(url egress.URL) map[string]webhookcfg.Change {
	unsetWithURL := webhookcfg.Unset(client, webhookcfg.Entity("e1"))
	unsetWithURL.URL = url
	unsetAllWithURL := webhookcfg.Unset(client, webhookcfg.All())
	unsetAllWithURL.URL = url
	return map[string]webhookcfg.Change{
		"the zero change":              {},
		"neither a set nor an unset":   {Client: client, Scope: webhookcfg.All(), URL: url},
		"a set without a client":       webhookcfg.Set("", webhookcfg.Entity("e1"), url),
		"a set of all, of no client":   webhookcfg.Set("", webhookcfg.All(), url),
		"a set without an entity":      webhookcfg.Set(client, webhookcfg.Entity(""), url),
		"a set without a scope":        webhookcfg.Set(client, webhookcfg.Scope{}, url),
		"a set without a URL":          webhookcfg.Set(client, webhookcfg.Entity("e1"), egress.URL{}),
		"a set of all without a URL":   webhookcfg.Set(client, webhookcfg.All(), egress.URL{}),
		"an unset without a client":    webhookcfg.Unset("", webhookcfg.Entity("e1")),
		"an unset of all, of nobody":   webhookcfg.Unset("", webhookcfg.All()),
		"an unset without an entity":   webhookcfg.Unset(client, webhookcfg.Entity("")),
		"an unset with a URL":          unsetWithURL,
		"an unset of all, with a URL ": unsetAllWithURL,
	}
}

func invalidRefused(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.setAll(client, hookURL(1))
	p.set(client, "e1", hookURL(2))
	p.unset(client, "e2")
	if p.err != nil {
		return p.err
	}
	for what, c := range invalidChanges(egress.NewURL(hookURL(3))) {
		if err := refused(what, e.Store.Apply(ctx, c)); err != nil {
			return err
		}
		p.steps = append(p.steps, what)
		p.expectURL(client, "e1", override, hookURL(2))
		p.expectOff(client, "e2")
		p.expectURL(client, unnamed, base, hookURL(1))
	}
	for _, name := range [][2]string{{"", "e1"}, {client, ""}, {"", ""}} {
		_, err := e.Store.Resolve(ctx, name[0], name[1])
		if err := refused(fmt.Sprintf("resolve of %q / %q", name[0], name[1]), err); err != nil {
			return err
		}
	}
	return p.err
}

// endedContexts are contexts that have ended, one for each reason.
func endedContexts(ctx context.Context) (all []context.Context, release func()) {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	late, cancelLate := context.WithDeadline(ctx, time.Unix(0, 0))
	return []context.Context{canceled, late}, cancelLate
}

func endedContext(ctx context.Context, e Env) error {
	ended, release := endedContexts(ctx)
	defer release()
	for n, over := range ended {
		for kind := range changeKinds {
			r, err := rehearse(ctx, e.Store, fmt.Sprintf("ended-%d-%d", n, kind))
			if err != nil {
				return err
			}
			c := r.change(kind)
			if err := e.Store.Apply(over, c); err == nil {
				return fmt.Errorf("%s succeeded with a context that had ended", describeChange(c))
			}
			if err := r.settle(c, r.state); err != nil {
				return err
			}
			if _, err := e.Store.Resolve(over, r.client, "e1"); err == nil {
				return errors.New("resolve succeeded with a context that had ended")
			}
		}
	}
	return nil
}

func errorsHoldNoURL(ctx context.Context, e Env) error {
	const secret = "t0ken-in-the-path"
	url := egress.NewURL("https://hooks.example.com/" + secret + "?" + secret)
	ended, release := endedContexts(ctx)
	defer release()
	var all []error
	for _, c := range invalidChanges(url) {
		all = append(all, e.Store.Apply(ctx, c))
	}
	all = append(all, e.Store.Apply(ctx, webhookcfg.Set(client, webhookcfg.All(), url)))
	for _, over := range ended {
		_, err := e.Store.Resolve(over, client, "e1")
		all = append(all, err, e.Store.Apply(over, webhookcfg.Set(client, webhookcfg.Entity("e1"), url)))
	}
	for _, err := range all {
		if err != nil && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
			return errors.New("the path of a URL stands in the text of an error")
		}
	}
	return nil
}
