package linearizable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// random is the n-th operation of a history; the number dates it.
func random(client string, n int) input {
	in := input{client: client, entity: rand.IntN(entities), at: int64(n + 1)}
	switch rand.IntN(10) {
	case 0, 1, 2, 3:
		if rand.IntN(3) == 0 {
			in.entity = entities
		}
		if rand.IntN(3) > 0 {
			in.url = fmt.Sprintf("https://h.example.com/%d", in.at)
		}
	case 4, 5:
		in.kind = resolve
	default:
		in.kind = list
	}
	return in
}

// play carries out one operation.
func play(ctx context.Context, st Store, in input) (output, error) {
	name := fmt.Sprint("e", in.entity)
	switch in.kind {
	case resolve:
		hook, err := st.Resolve(ctx, in.client, name)
		return output{source: hook.Source, entry: newEntry(hook)}, err
	case list:
		page, err := st.List(ctx, in.client, "", entities)
		if err != nil {
			return output{}, err
		}
		seen, err := newState(page)
		return output{page: seen}, err
	}
	return output{}, st.Apply(ctx, in.change(name))
}

func (in input) change(name string) webhookcfg.Change {
	scope := webhookcfg.Entity(name)
	if in.entity == entities {
		scope = webhookcfg.All()
	}
	c := webhookcfg.Unset(in.client, scope)
	if in.url != "" {
		c = webhookcfg.Set(in.client, scope, egress.NewURL(in.url))
	}
	c.Time = time.Unix(in.at, 0)
	return c
}

func newEntry(hook webhookcfg.Webhook) entry {
	if hook.Source == webhookcfg.SourceNone {
		return entry{}
	}
	return entry{hook.URL.Reveal(), hook.Since.Unix()}
}

func newState(page webhookcfg.Page) (state, error) {
	s := state{base: newEntry(page.Base)}
	for _, o := range page.Overrides {
		var e int
		if _, err := fmt.Sscanf(o.Entity, "e%d", &e); err != nil || e < 0 || e >= entities {
			return s, fmt.Errorf("the page has an override of %q", o.Entity)
		}
		s.overrides[e] = newEntry(o.Webhook)
	}
	return s, nil
}
