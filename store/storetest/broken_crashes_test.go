package storetest_test

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

// brokenCrashes are durable stores that lose something if they are not closed.
func brokenCrashes() []flaw {
	const kept, interrupted = "02 a store has kept the change after a crash", "03 an interrupted change is whole or absent after a crash"
	const history = "history with crashes agrees with the model"
	return []flaw{
		{"writes when it is closed", kept, asIs, func(*simple) *simple { return newSimple() }},
		{"writes overrides when it is closed", kept, asIs, func(s *simple) *simple {
			return s.without(func(string, webhookcfg.Webhook) bool { return true })
		}},
		{"writes a base when it is closed", kept, asIs, func(s *simple) *simple {
			next := s.reopened()
			for client, cfg := range next.clients {
				next.clients[client] = configuration{overrides: cfg.overrides}
			}
			return next
		}},
		{"writes a change with the next one", kept, remembersLast, forgetsLast},
		{"writes a change with the next one, in a history", history, remembersLast, forgetsLast},
		{"writes what is off when it is closed", history, asIs, func(s *simple) *simple {
			return s.without(func(_ string, hook webhookcfg.Webhook) bool { return hook.Source == webhookcfg.SourceOff })
		}},
		{"has written half of an interrupted set of all", interrupted, writesHalf, func(s *simple) *simple {
			next := s.reopened()
			s.named.Range(func(client, c any) bool {
				next.clients[client.(string)] = setBase(next.clients[client.(string)], c.(webhookcfg.Change))
				return true
			})
			return next
		}},
		{"forgets a client whose change was interrupted", interrupted, writesHalf, func(s *simple) *simple {
			next := s.reopened()
			s.named.Range(func(client, _ any) bool {
				delete(next.clients, client.(string))
				return true
			})
			return next
		}},
		{"restarts its cursors after a crash", "feed resets or continues after a crash", restartsCursors, nil},
		{"counts versions since it was closed", "versioner returns a new version after a crash and a change", asIs, func(s *simple) *simple {
			next := s.reopened()
			clear(next.versions)
			return next
		}},
	}
}

// remembersLast remembers the state before the last change.
func remembersLast(s *simple) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		s.mu.RLock()
		s.named.Store("last", c.Client)
		s.named.Store("before", s.clients[c.Client].clone())
		s.mu.RUnlock()
		return s.Apply(ctx, c)
	}}
}

// forgetsLast returns the state before the last change.
func forgetsLast(s *simple) *simple {
	next := s.reopened()
	if client, ok := s.named.Load("last"); ok {
		before, _ := s.named.Load("before")
		next.clients[client.(string)] = before.(configuration)
	}
	return next
}

// writesHalf remembers the sets of all that were interrupted, by client.
func writesHalf(s *simple) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		err := s.Apply(ctx, c)
		if err != nil && c.Scope.IsAll() && isSet(c) {
			s.named.Store(c.Client, c)
		}
		return err
	}}
}
