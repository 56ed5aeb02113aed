package storetest

import (
	"context"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const (
	off      = webhookcfg.SourceOff
	base     = webhookcfg.SourceBase
	override = webhookcfg.SourceOverride
)

func setOne(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	p.expectURL(client, "e1", override, hookURL(1))
	p.expectNone(client, "e2")
	p.set(client, "e1", hookURL(2))
	p.expectURL(client, "e1", override, hookURL(2))
	p.setAll(client, hookURL(3))
	p.set(client, "e1", hookURL(4))
	p.expectURL(client, "e1", override, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(3))
	p.unset(client, "e1")
	p.set(client, "e1", hookURL(5))
	p.expectURL(client, "e1", override, hookURL(5))
	p.set(client, "e2", hookURL(3)) // the URL of the base, and yet an override
	p.expectURL(client, "e2", override, hookURL(3))
	return p.err
}

func setAll(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	p.setAll(client, hookURL(2))
	p.expectURL(client, "e1", base, hookURL(2))
	p.expectURL(client, unnamed, base, hookURL(2))
	p.set(client, "e1", hookURL(3))
	p.unset(client, "e2")
	p.setAll(client, hookURL(4))
	p.expectURL(client, "e1", base, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(4))
	p.expectURL(client, unnamed, base, hookURL(4))
	p.set(client, "e1", hookURL(5))
	p.unset(client, "e2")
	p.setAll(client, hookURL(4)) // the base already, and yet a change
	p.expectURL(client, "e1", base, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(4))
	return p.err
}

func unsetOne(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	p.unset(client, "e1")
	p.expectNone(client, "e1")
	p.setAll(client, hookURL(2))
	p.expectURL(client, "e1", base, hookURL(2)) // dropped, not off
	p.unset(client, "e1")
	p.expectOff(client, "e1")
	p.expectURL(client, "e2", base, hookURL(2))
	p.set(client, "e2", hookURL(3))
	p.unset(client, "e2")
	p.expectOff(client, "e2") // not back to the base
	return p.err
}

func unsetAll(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.setAll(client, hookURL(1))
	p.set(client, "e1", hookURL(2))
	p.unset(client, "e2")
	p.unsetAll(client)
	for _, entity := range []string{"e1", "e2", unnamed} {
		p.expectNone(client, entity)
	}
	p.set(client, "e1", hookURL(3))
	p.expectNone(client, "e2")
	p.unset(client, "e1") // the base is gone: nothing is off
	p.expectNone(client, "e1")
	p.setAll(client, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(4)) // what was off does not come back
	return p.err
}

func repeated(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.unset(client, "e1")
	p.unsetAll(client)
	p.expectNone(client, "e1")
	for range 2 {
		p.set(client, "e1", hookURL(1))
		p.expectURL(client, "e1", override, hookURL(1))
	}
	for range 2 {
		p.unset(client, "e1")
		p.expectNone(client, "e1")
	}
	for range 2 {
		p.setAll(client, hookURL(2))
		p.expectURL(client, "e1", base, hookURL(2))
	}
	for range 2 {
		p.unset(client, "e1")
		p.expectOff(client, "e1")
	}
	for range 2 {
		p.unsetAll(client)
		p.expectNone(client, "e1")
	}
	return p.err
}

func resolveOrder(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.expectNone("unknown", "e1")
	p.set(client, "e1", hookURL(1))
	p.expectNone(client, "e2")
	p.setAll(client, hookURL(2))
	p.set(client, "e1", hookURL(3))
	p.unset(client, "e2")
	p.expectURL(client, "e1", override, hookURL(3))
	p.expectOff(client, "e2")
	p.expectURL(client, unnamed, base, hookURL(2))
	return p.err
}

func sinceKept(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	for _, at := range times() {
		p.applyAt(webhookcfg.Set(client, webhookcfg.All(), egress.NewURL(hookURL(1))), at)
		p.expectSince(client, unnamed, at)
		p.setAll(client, hookURL(2))
		p.applyAt(webhookcfg.Set(client, webhookcfg.Entity("e1"), egress.NewURL(hookURL(3))), at)
		p.applyAt(webhookcfg.Unset(client, webhookcfg.Entity("e2")), at)
		p.expectSince(client, "e1", at)
		p.expectSince(client, "e2", at)
		p.expectSince(client, unnamed, time.Unix(p.now, 0))
	}
	return p.err
}

// times are such as are easily taken for another.
func times() []time.Time {
	return []time.Time{
		{},
		time.Unix(0, 0),
		time.Unix(1_767_323_045, 999_999_999),
		time.Date(2026, time.July, 1, 12, 0, 0, 0, time.FixedZone("", 5*60*60+30*60)),
		time.Date(2107, time.January, 1, 0, 0, 0, 0, time.UTC), // past 32 bits of seconds
	}
}

func (p *play) expectSince(client, entity string, at time.Time) {
	hook := p.resolve(client, entity)
	late := hook.Since.Sub(at)
	if p.err == nil && (late <= -time.Second || late >= time.Second || at.IsZero() != hook.Since.IsZero()) {
		p.fail("%q / %q is %s since %s, want %s", client, entity, hook.Source, hook.Since, at)
	}
}

func urlKept(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	for _, url := range urls() {
		p.setAll(client, url)
		p.set(client, "e1", url)
		p.expectURL(client, "e1", override, url)
		p.expectURL(client, unnamed, base, url)
	}
	return p.err
}

// urls are such as the default policy lets through, of which tidying spoils most.
func urls() []string {
	const longest = 2048
	long := "https://hooks.example.com/"
	return []string{
		"https://a.example",
		"HTTPS://Hooks.Example.COM:443/A/../b//c/./",
		"https://hooks.example.com/%2f%2F%41%zz?a=b&A=B&&c=+%20;d",
		"https://hooks.example.com?",
		`https://hooks.example.com/!"$%&'()*+,-./:;<=>?@[]^_` + "`{|}~",
		"https://[2001:DB8:0::1]:8443/",
		long + strings.Repeat("x", longest-len(long)),
	}
}

func clientsIsolated(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	neighbours := []string{"acm", "acme ", "acme/", "acme/e1", "acme1", "ACME", "acme%", "%"}
	p.setAll(client, hookURL(0))
	for n, other := range neighbours {
		p.expectNone(other, unnamed)
		p.setAll(other, hookURL(n+1))
		p.set(other, "e1", hookURL(-n-1))
		p.unset(other, "e2")
	}
	expectNeighbours := func() {
		for n, other := range neighbours {
			p.expectURL(other, unnamed, base, hookURL(n+1))
			p.expectURL(other, "e1", override, hookURL(-n-1))
			p.expectOff(other, "e2")
		}
	}
	p.expectURL(client, "e1", base, hookURL(0))
	p.setAll(client, hookURL(100))
	expectNeighbours()
	p.unsetAll(client)
	expectNeighbours()
	return p.err
}

func namesDiffer(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	for n, entity := range lookalikes() {
		p.set(client, entity, hookURL(n))
		p.set("client "+entity, "e1", hookURL(-n-1))
	}
	for n, entity := range lookalikes() {
		p.expectURL(client, entity, override, hookURL(n))
		p.expectURL("client "+entity, "e1", override, hookURL(-n-1))
	}
	p.expectNone(client, unnamed)
	for n, entity := range lookalikes() {
		p.unset(client, entity)
		p.expectNone(client, entity)
		if n+1 < len(lookalikes()) {
			p.expectURL(client, lookalikes()[n+1], override, hookURL(n+1))
		}
	}
	// Pairs that are the same once client and entity are joined.
	for n, mark := range []string{"", "/", ":", ".", "-", "_", "|", "@", " ", "~"} {
		p.set("a", "b"+mark+"c", hookURL(2*n))
		p.set("a"+mark+"b", "c", hookURL(2*n+1))
		p.expectURL("a", "b"+mark+"c", override, hookURL(2*n))
		p.expectURL("a"+mark+"b", "c", override, hookURL(2*n+1))
	}
	return p.err
}

// lookalikes are names that somebody's collation, escaping or pattern takes for
// another.
func lookalikes() []string {
	const longest = 128
	long := strings.Repeat("x", longest-1)
	return []string{
		"e", "E", "e ", " e", "e1", "e10", "01", "1", "1.0", "e.", "e:", "e%20", "e+",
		"%", "_", "*", "?", "'", `"`, "null", "NULL", "true", "off", "all",
		"é", "e\u0301", "É", "ß", "ss", "i", "İ", "ı", "\U0001f600", "\U0001f601", "中", "ｅ",
		long + "y", long + "z",
	}
}
