package storetest_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
)

func brokenVersions() []flaw {
	return []flaw{
		{"sorts the versions by client", "versioner returns versions in the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, slices.Sorted(slices.Values(clients)))
			}}
		}, nil},
		{"returns no version of unknown clients", "versioner returns versions in the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, slices.DeleteFunc(slices.Clone(clients), func(client string) bool {
					return s.clients[client].base.Source == 0 && s.clients[client].overrides == nil
				}))
			}}
		}, nil},
		{"returns versions of 1,000 clients at most", "versioner returns versions in the order of the clients", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(ctx context.Context, clients []string) ([]string, error) {
				return s.Versions(ctx, clients[:min(len(clients), 1000)])
			}}
		}, nil},
		{"returns the time of the last change, in seconds", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			var last sync.Map
			st := versioned(s, func(client string) string {
				at, _ := last.Load(client)
				return fmt.Sprint(at)
			})
			st.apply = func(ctx context.Context, c webhookcfg.Change) error {
				last.Store(c.Client, c.Time.Unix())
				return s.Apply(ctx, c)
			}
			return st
		}, nil},
		{"counts in six bits", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			return versioned(s, func(client string) string { return strconv.Itoa(s.versions[client] % 64) })
		}, nil},
		{"counts in a byte", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			return versioned(s, func(client string) string { return strconv.Itoa(s.versions[client] % 256) })
		}, nil},
		{"has no version of a client without a configuration", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			return versioned(s, func(client string) string {
				if cfg := s.clients[client]; cfg.base.URL.IsZero() && len(cfg.overrides) == 0 {
					return ""
				}
				return strconv.Itoa(s.versions[client])
			})
		}, nil},
		{"derives the version from the configuration", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			return versioned(s, func(client string) string {
				cfg := s.clients[client]
				return fmt.Sprint(cfg.base.URL.Reveal(), len(cfg.overrides), cfg.overrides["e1"].URL.Reveal())
			})
		}, nil},
		{"counts only changes of all", "versioner returns a new version after a change", func(s *simple) webhookcfg.Store {
			var generation sync.Map
			st := versioned(s, func(client string) string {
				n, _ := generation.LoadOrStore(client, new(atomic.Int64))
				return strconv.FormatInt(n.(*atomic.Int64).Load(), 10)
			})
			st.apply = func(ctx context.Context, c webhookcfg.Change) error {
				if n, ok := generation.Load(c.Client); ok && c.Scope.IsAll() {
					n.(*atomic.Int64).Add(1)
				}
				return s.Apply(ctx, c)
			}
			return st
		}, nil},
		{"restarts its versions when reopened", "versioner returns a new version when reopened and changed", asIs, func(s *simple) *simple {
			next := s.reopened()
			clear(next.versions)
			return next
		}},
		{"forgets the version of an empty client when reopened", "versioner returns a new version when reopened and changed", asIs, func(s *simple) *simple {
			next := s.reopened()
			for client, cfg := range next.clients {
				if cfg.base.URL.IsZero() && len(cfg.overrides) == 0 {
					delete(next.versions, client)
				}
			}
			return next
		}},
		{"counts before it makes the change", "versioner is correct concurrently with a writer", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error {
				_ = count()
				pause()
				return apply()
			})
		}, nil},
		{"counts after it made the change", "versioner is correct concurrently with a writer", func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error {
				err := apply()
				pause()
				_ = count()
				return err
			})
		}, nil},
		{"returns another version each time", "versioner keeps versions while nothing changes", func(s *simple) webhookcfg.Store {
			var calls atomic.Int64
			return versioned(s, func(string) string { return strconv.FormatInt(calls.Add(1), 10) })
		}, nil},
		{"ignores the context of Versions", "versioner refuses an ended context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, versions: func(_ context.Context, clients []string) ([]string, error) {
				return s.Versions(context.Background(), clients)
			}}
		}, nil},
	}
}

// versioned is a store that returns other versions.
func versioned(s *simple, version func(client string) string) broken {
	return broken{simple: s, versions: func(_ context.Context, clients []string) (all []string, _ error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, client := range clients {
			all = append(all, version(client))
		}
		return all, nil
	}}
}

// countsVersions counts changes outside of the store, in the order that both defines.
func countsVersions(s *simple, both func(apply, count func() error) error) webhookcfg.Store {
	var changes atomic.Int64
	st := versioned(s, func(string) string { return strconv.FormatInt(changes.Load(), 10) })
	st.apply = func(ctx context.Context, c webhookcfg.Change) error {
		return both(func() error { return s.Apply(ctx, c) }, func() error {
			changes.Add(1)
			return nil
		})
	}
	return st
}

func brokenNotifiers() []flaw {
	return []flaw{
		{"never notifies", "notifier notifies all callers after a change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				never := make(chan struct{})
				context.AfterFunc(ctx, func() { close(never) })
				return never
			}}
		}, nil},
		{"notifies once", "notifier notifies all callers after a change", func(s *simple) webhookcfg.Store {
			return notifies(s, 1)
		}, nil},
		{"returns one channel to all callers", "notifier notifies all callers after a change", func(s *simple) webhookcfg.Store {
			var channel <-chan struct{}
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				if channel == nil {
					channel = s.Notify(ctx)
				}
				return channel
			}}
		}, nil},
		{"notifies one caller", "notifier notifies all callers after a change", func(s *simple) webhookcfg.Store {
			return notifies(s, math.MaxInt)
		}, nil},
		{"closes the channel at once", "notifier notifies all callers after a change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(context.Context) <-chan struct{} {
				over := make(chan struct{})
				close(over)
				return over
			}}
		}, nil},
		{"leaves the channel open", "notifier closes the channel with the context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				return s.Notify(context.WithoutCancel(ctx))
			}}
		}, nil},
		{"waits for its notifications to be received", "notifier blocks no change", waitsForReceiver, nil},
	}
}

// notifies is a store whose callers share a number of notifications.
func notifies(s *simple, left int) webhookcfg.Store {
	var mu sync.Mutex
	var shared <-chan struct{}
	return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		if shared == nil {
			shared = s.Notify(context.WithoutCancel(ctx))
		}
		channel := make(chan struct{}, 1)
		go func() {
			defer close(channel)
			for {
				select {
				case <-ctx.Done():
					return
				case <-shared:
				}
				mu.Lock()
				if left > 0 {
					left--
					select {
					case channel <- struct{}{}:
					default:
					}
				}
				mu.Unlock()
			}
		}()
		return channel
	}}
}

func waitsForReceiver(s *simple) webhookcfg.Store {
	notifications := make(chan struct{})
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if err := s.Apply(ctx, c); err != nil {
				return err
			}
			select {
			case notifications <- struct{}{}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		notify: func(context.Context) <-chan struct{} { return notifications },
	}
}
