package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func brokenChanges() []flaw {
	return []flaw{
		{"set-all drops only 1,000 overrides", "01 a change is applied whole, and nothing else", func(s *simple) webhookcfg.Store {
			return edits(s, partly(isSet))
		}, nil},
		{"unset-all drops only 1,000 overrides", "01 a change is applied whole, and nothing else", func(s *simple) webhookcfg.Store {
			return edits(s, partly(isUnset))
		}, nil},
		{"drops the eldest of more than 200 overrides", "01 a change is applied whole, and nothing else", func(s *simple) webhookcfg.Store {
			return edits(s, dropsEldest(200))
		}, nil},
		{"drops the eldest of more than 1,000 overrides", "01 a change is applied whole, and nothing else", func(s *simple) webhookcfg.Store {
			return edits(s, dropsEldest(1000))
		}, nil},
		{"loses a write", "02 a later resolve sees the change", func(s *simple) webhookcfg.Store {
			var count atomic.Int64
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				if count.Add(1)%37 == 0 {
					return cfg
				}
				return cfg.after(c)
			})
		}, nil},
		{"returns what it read before", "02 a later resolve sees the change", func(s *simple) webhookcfg.Store {
			return stale(s, math.MaxInt64)
		}, nil},
		{"treats two changes of a scope in one second as one", "02 a later resolve sees the change", onePerSecond, nil},
		{"keeps the later of two times", "02 a later resolve sees the change", func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				if cfg.overrides[c.Scope.Entity()].Since.After(c.Time) {
					return cfg
				}
				return cfg.after(c)
			})
		}, nil},
		{"joins a read in progress", "02 a later resolve sees the change while others read", func(s *simple) webhookcfg.Store {
			return joinsReads(s, new(flights))
		}, nil},
		{"is not durable", "02 a reopened store has kept the change", asIs, func(*simple) *simple { return newSimple() }},
		{"keeps only bases when reopened", "02 a reopened store has kept the change", asIs, func(s *simple) *simple {
			return s.without(func(_ string, _ webhookcfg.Webhook) bool { return true })
		}},
		{"forgets off when reopened", "02 a reopened store has kept the change", asIs, func(s *simple) *simple {
			return s.without(func(_ string, hook webhookcfg.Webhook) bool { return hook.Source == webhookcfg.SourceOff })
		}},
		{"keeps 1,000 overrides of a client when reopened", "02 a reopened store has kept the change", asIs, func(s *simple) *simple {
			next := s.reopened()
			for _, cfg := range next.clients {
				for n, entity := range slices.Sorted(maps.Keys(cfg.overrides)) {
					if n >= 1000 {
						delete(cfg.overrides, entity)
					}
				}
			}
			return next
		}},
		{"treats the zero time as the epoch when reopened", "02 a reopened store has kept the change", asIs, func(s *simple) *simple {
			return s.with(func(hook webhookcfg.Webhook) webhookcfg.Webhook {
				if hook.Since.IsZero() {
					hook.Since = time.Unix(0, 0)
				}
				return hook
			})
		}},
		{"keeps 2,047 bytes of URLs when reopened", "02 a reopened store has kept the change", asIs, func(s *simple) *simple {
			return s.with(func(hook webhookcfg.Webhook) webhookcfg.Webhook {
				text := hook.URL.Reveal()
				hook.URL = egress.NewURL(text[:min(len(text), 2047)])
				return hook
			})
		}},
		{"sets the base, is interrupted, and keeps the overrides", "03 an interrupted change is whole or absent", halfCut, nil},
		{"set-all drops 64 overrides at a time, and is interrupted", "03 an interrupted change is whole or absent", func(s *simple) webhookcfg.Store {
			return dropsChunks(s, 64, func(ctx context.Context) error { return ctx.Err() })
		}, nil},
		{"reports an error, and makes the change later", "03 an interrupted change is whole or absent", makesLater, nil},
		{"is interrupted and reports success", "03 an interrupted change is whole or absent", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
					return err
				}
				if ctx.Err() != nil {
					return nil
				}
				return s.Apply(context.WithoutCancel(ctx), c)
			}}
		}, nil},
		{"makes half of an interrupted concurrent change", "03 interrupted concurrent changes are whole or absent", halfWhenEnded, nil},
		{"keeps the first URL", "04 set of one gives it an override", func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				if !c.URL.IsZero() && cfg.overrides[c.Scope.Entity()].Source == webhookcfg.SourceOverride {
					return cfg
				}
				return cfg.after(c)
			})
		}, nil},
		{"skips an override that equals the base", "04 set of one gives it an override", func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				if c.URL.Equal(cfg.base.URL) && !c.Scope.IsAll() {
					return cfg
				}
				return cfg.after(c)
			})
		}, nil},
		{"set-all keeps what is off", "05 set of all drops every override", func(s *simple) webhookcfg.Store {
			return edits(s, keepWhere(func(c webhookcfg.Change, hook webhookcfg.Webhook) bool {
				return c.Scope.IsAll() && !c.URL.IsZero() && hook.Source == webhookcfg.SourceOff
			}))
		}, nil},
		{"set-all with the URL of the base does nothing", "05 set of all drops every override", skipsSameBase, nil},
		{"set-all keeps overrides", "05 set of all drops every override", func(s *simple) webhookcfg.Store {
			return edits(s, keepWhere(func(c webhookcfg.Change, hook webhookcfg.Webhook) bool {
				return c.Scope.IsAll() && !c.URL.IsZero() && hook.Source == webhookcfg.SourceOverride
			}))
		}, nil},
		{"counts set-all in a byte, and keeps the overrides before it", "05 set of all drops every override", countsInByte, nil},
		{"falls back to the base instead of off", "06 unset of one turns it off", forgetsOff, nil},
		{"is off without a base", "06 unset of one turns it off", func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				next := cfg.clone().after(c)
				if _, had := cfg.overrides[c.Scope.Entity()]; had && c.URL.IsZero() && !c.Scope.IsAll() {
					next.overrides[c.Scope.Entity()] = webhookcfg.Webhook{Source: webhookcfg.SourceOff, Since: c.Time}
				}
				return next
			})
		}, nil},
		{"unset-all keeps the base", "07 unset of all drops everything", func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				next := cfg.after(c)
				if c.Scope.IsAll() && c.URL.IsZero() {
					next.base = cfg.base
				}
				return next
			})
		}, nil},
		{"unset-all keeps what is off", "07 unset of all drops everything", func(s *simple) webhookcfg.Store {
			return edits(s, keepWhere(func(c webhookcfg.Change, hook webhookcfg.Webhook) bool {
				return c.Scope.IsAll() && c.URL.IsZero() && hook.Source == webhookcfg.SourceOff
			}))
		}, nil},
		{"unsets only what is set", "08 changes can be repeated", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if entity := c.Scope.Entity(); c.URL.IsZero() && entity != "" {
					if hook, err := s.Resolve(ctx, c.Client, entity); err == nil && hook.URL.IsZero() {
						return errors.New("not found")
					}
				}
				return s.Apply(ctx, c)
			}}
		}, nil},
		{"unset turns off and on", "08 changes can be repeated", func(s *simple) webhookcfg.Store {
			return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
				before := cfg.overrides[c.Scope.Entity()]
				next := cfg.after(c)
				if before.Source == webhookcfg.SourceOff && c.URL.IsZero() {
					delete(next.overrides, c.Scope.Entity())
				}
				return next
			})
		}, nil},
		{"returns an error for unknown clients", "09 resolve takes the override, then the base", func(s *simple) webhookcfg.Store {
			return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				hook, err := s.Resolve(ctx, client, entity)
				if err == nil && hook.Source == webhookcfg.SourceNone {
					err = errors.New("not found")
				}
				return hook, err
			}}
		}, nil},
		{"returns the URL of the base with off", "09 resolve takes the override, then the base", func(s *simple) webhookcfg.Store {
			return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				hook, err := s.Resolve(ctx, client, entity)
				if hook.Source == webhookcfg.SourceOff {
					base, _ := s.Resolve(ctx, client, "\x00")
					hook.URL = base.URL
				}
				return hook, err
			}}
		}, nil},
		{"set-all in two steps", "14 a change becomes visible at one moment", twoSteps, nil},
		{"returns for a while what it read before", "14 a change becomes visible at one moment", func(s *simple) webhookcfg.Store {
			return stale(s, 8)
		}, nil},
		{"set-all drops 64 overrides at a time, which shows", "14 a change becomes visible at one moment", func(s *simple) webhookcfg.Store {
			return dropsChunks(s, 64, pauseNil)
		}, nil},
		{"reads the base before an unset", "14 concurrent changes take effect in some order", readsBaseBefore, nil},
		{"one of two concurrent changes is lost", "14 no concurrent change is lost", losesUpdates, nil},
		{"drops changes beyond 32 at a time", "14 no concurrent change is lost", func(s *simple) webhookcfg.Store {
			var making atomic.Int64
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				defer making.Add(-1)
				if making.Add(1) > 32 {
					return cmp.Or(c.Validate(), ctx.Err())
				}
				pause()
				return s.Apply(ctx, c)
			}}
		}, nil},
		{"set-all with the URL of the base does nothing, in a history", "history agrees with the model", skipsSameBase, nil},
		{"loses one entity when reopened", "history with reopening agrees with the model", asIs, func(s *simple) *simple {
			return s.without(func(entity string, _ webhookcfg.Webhook) bool { return entity == "e10" })
		}},
	}
}

// without returns the reopened store without some overrides.
func (s *simple) without(gone func(entity string, hook webhookcfg.Webhook) bool) *simple {
	next := s.reopened()
	for _, cfg := range next.clients {
		for entity, hook := range cfg.overrides {
			if gone(entity, hook) {
				delete(cfg.overrides, entity)
			}
		}
	}
	return next
}

// with returns the reopened store with modified overrides.
func (s *simple) with(other func(hook webhookcfg.Webhook) webhookcfg.Webhook) *simple {
	next := s.reopened()
	for _, cfg := range next.clients {
		for entity, hook := range cfg.overrides {
			cfg.overrides[entity] = other(hook)
		}
	}
	return next
}

// keepWhere returns a change function that leaves some overrides unchanged.
func keepWhere(kept func(webhookcfg.Change, webhookcfg.Webhook) bool) func(configuration, webhookcfg.Change) configuration {
	return func(cfg configuration, c webhookcfg.Change) configuration {
		next := cfg.clone().after(c).clone()
		for entity, hook := range cfg.overrides {
			if kept(c, hook) {
				next.overrides[entity] = hook
			}
		}
		return next
	}
}

// skipsSameBase ignores a set of all with the URL of the base.
func skipsSameBase(s *simple) webhookcfg.Store {
	return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
		if c.Scope.IsAll() && c.URL.Equal(cfg.base.URL) {
			return cfg
		}
		return cfg.after(c)
	})
}

// partly drops at most 1,000 overrides in the changes of all that are affected.
func partly(affected func(webhookcfg.Change) bool) func(configuration, webhookcfg.Change) configuration {
	return func(cfg configuration, c webhookcfg.Change) configuration {
		if !c.Scope.IsAll() || !affected(c) {
			return cfg.after(c)
		}
		left := 1000
		return keepWhere(func(webhookcfg.Change, webhookcfg.Webhook) bool {
			left--
			return left < 0
		})(cfg, c)
	}
}

func isSet(c webhookcfg.Change) bool { return !c.URL.IsZero() }

func isUnset(c webhookcfg.Change) bool { return c.URL.IsZero() }

// stale returns what it read before, and forgets it after a number of reads.
func stale(s *simple, every int64) broken { return staleFrom(s, new(sync.Map), every) }

func staleFrom(s *simple, seen *sync.Map, every int64) broken {
	var count atomic.Int64
	return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
		hook, err := s.Resolve(ctx, client, entity)
		if err != nil {
			return hook, err
		}
		if count.Add(1)%every == 0 {
			seen.Clear()
		}
		before, _ := seen.LoadOrStore([2]string{client, entity}, hook)
		return before.(webhookcfg.Webhook), nil
	}}
}

// setBase makes half of a set of all: it keeps the overrides.
func setBase(cfg configuration, c webhookcfg.Change) configuration {
	return configuration{cfg.after(c).base, cfg.overrides}
}

func halfCut(s *simple) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
			return err
		}
		if c.Scope.IsAll() {
			s.edit(c.Client, func(cfg configuration) configuration { return setBase(cfg, c) })
		}
		return s.Apply(ctx, c)
	}}
}

// halfWhenEnded makes half of a change whose context has ended.
func halfWhenEnded(s *simple) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		err := s.Apply(ctx, c)
		if ctx.Err() != nil && c.Validate() == nil {
			s.edit(c.Client, func(cfg configuration) configuration {
				cfg.overrides["e2"] = webhookcfg.Webhook{URL: egress.NewURL("https://half.example.com"), Source: webhookcfg.SourceOverride}
				return cfg
			})
		}
		return err
	}}
}

// makesLater makes an interrupted change after the next change of the client.
func makesLater(s *simple) webhookcfg.Store {
	var mu sync.Mutex
	later := make(map[string]webhookcfg.Change)
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		mu.Lock()
		defer mu.Unlock()
		err := s.Apply(ctx, c)
		if err != nil && c.Validate() == nil {
			later[c.Client] = c
			return err
		}
		if cut, ok := later[c.Client]; ok {
			delete(later, c.Client)
			return errors.Join(err, s.Apply(ctx, cut))
		}
		return err
	}}
}

// dropsEldest keeps a number of overrides.
func dropsEldest(limit int) func(configuration, webhookcfg.Change) configuration {
	return func(cfg configuration, c webhookcfg.Change) configuration {
		next := cfg.after(c)
		if entities := slices.Collect(maps.Keys(next.overrides)); len(entities) > limit {
			delete(next.overrides, slices.MinFunc(entities, func(a, b string) int {
				return next.overrides[a].Since.Compare(next.overrides[b].Since)
			}))
		}
		return next
	}
}

// onePerSecond ignores a change of a scope that changed in the same second.
func onePerSecond(s *simple) webhookcfg.Store {
	var last sync.Map
	return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
		before, _ := last.Swap(c.Client+"/"+c.Scope.Entity(), c.Time.Unix())
		if before == c.Time.Unix() {
			return cfg
		}
		return cfg.after(c)
	})
}

// countsInByte keeps overrides under the number of changes of all before them, modulo 256.
func countsInByte(s *simple) webhookcfg.Store {
	counts := make(map[string]uint8)
	kept := make(map[string]map[string]webhookcfg.Webhook)
	key := func(client string) string { return fmt.Sprint(client, "/", counts[client]) }
	return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
		next := cfg.after(c)
		if !c.Scope.IsAll() {
			kept[key(c.Client)] = next.overrides
			return next
		}
		counts[c.Client]++
		next.overrides = maps.Clone(kept[key(c.Client)])
		return next
	})
}
