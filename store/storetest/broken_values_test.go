package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// keepsText is a store that keeps another text of a URL.
func keepsText(other func(text string) string) func(*simple) webhookcfg.Store {
	return func(s *simple) webhookcfg.Store {
		return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
			if !c.URL.IsZero() {
				c.URL = egress.NewURL(other(c.URL.Reveal()))
			}
			return c
		})
	}
}

func brokenValues() []flaw {
	return []flaw{
		{"loses since", "10 since is the time of the change", func(s *simple) webhookcfg.Store {
			return resolves(s, func(hook webhookcfg.Webhook, _ string) webhookcfg.Webhook {
				hook.Since = time.Time{}
				return hook
			})
		}, nil},
		{"treats the zero time as the epoch", "10 since is the time of the change", func(s *simple) webhookcfg.Store {
			return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
				if c.Time.IsZero() {
					c.Time = time.Unix(0, 0)
				}
				return c
			})
		}, nil},
		{"keeps 32 bits of seconds", "10 since is the time of the change", func(s *simple) webhookcfg.Store {
			return resolves(s, func(hook webhookcfg.Webhook, _ string) webhookcfg.Webhook {
				if !hook.Since.IsZero() {
					hook.Since = time.Unix(int64(uint32(hook.Since.Unix())), 0)
				}
				return hook
			})
		}, nil},
		{"keeps seconds", "10 since is the time of the change", keepsTimes(time.Second), nil},
		{"keeps milliseconds", "10 since is the time of the change", keepsTimes(time.Millisecond), nil},
		{"keeps multiples of four microseconds", "10 since is the time of the change", keepsTimes(4 * time.Microsecond), nil},
		{"drops the zone of a time", "10 since is the time of the change", func(s *simple) webhookcfg.Store {
			return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
				_, offset := c.Time.Zone()
				c.Time = c.Time.Add(time.Duration(offset) * time.Second)
				return c
			})
		}, nil},
		{"normalizes URLs", "11 the URL is kept byte for byte", func(s *simple) webhookcfg.Store {
			return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
				if parsed, err := url.Parse(c.URL.Reveal()); err == nil {
					c.URL = egress.NewURL(parsed.String())
				}
				return c
			})
		}, nil},
		{"truncates URLs to 2,047 bytes", "11 the URL is kept byte for byte", func(s *simple) webhookcfg.Store {
			return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
				text := c.URL.Reveal()
				c.URL = egress.NewURL(text[:min(len(text), 2047)])
				return c
			})
		}, nil},
		{"keeps URLs for a page", "11 the URL is kept byte for byte", keepsText(html.UnescapeString), nil},
		{"expands URLs as a shell does", "11 the URL is kept byte for byte", keepsText(func(text string) string { return os.Expand(text, func(string) string { return "" }) }), nil},
		{"decodes URLs as a form does", "11 the URL is kept byte for byte", keepsText(func(text string) string {
			if plain, err := url.QueryUnescape(text); err == nil {
				return plain
			}
			return text
		}), nil},
		{"keeps one byte of client names", "12 clients are isolated", func(s *simple) webhookcfg.Store {
			return renames(s, func(name string) string { return name[:min(len(name), 1)] }, unchanged)
		}, nil},
		{"unset-all unsets all clients with the prefix", "12 clients are isolated", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				err := s.Apply(ctx, c)
				if err == nil && c.Scope.IsAll() && c.URL.IsZero() {
					s.mu.Lock()
					defer s.mu.Unlock()
					for client := range s.clients {
						if strings.HasPrefix(client, c.Client) {
							delete(s.clients, client)
						}
					}
				}
				return err
			}}
		}, nil},
		{"sets the base of all clients", "12 clients are isolated", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				err := s.Apply(ctx, c)
				if err == nil && c.Scope.IsAll() && !c.URL.IsZero() {
					s.mu.Lock()
					defer s.mu.Unlock()
					for client, cfg := range s.clients {
						s.clients[client] = setBase(cfg.clone(), c)
					}
				}
				return err
			}}
		}, nil},
		{"folds the case of entities", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return renames(s, unchanged, strings.ToLower)
		}, nil},
		{"folds the case of clients", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return renames(s, strings.ToLower, unchanged)
		}, nil},
		{"trims names", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return renames(s, unchanged, func(name string) string { return cmp.Or(strings.TrimRight(name, " "), name) })
		}, nil},
		{"keeps 127 bytes of names", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return renames(s, unchanged, func(name string) string { return name[:min(len(name), 127)] })
		}, nil},
		{"keeps 255 bytes of names", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			cut := func(name string) string { return name[:min(len(name), 255)] }
			return renames(s, cut, cut)
		}, nil},
		{"keeps 1,023 bytes of clients", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return renames(s, func(name string) string { return name[:min(len(name), 1023)] }, unchanged)
		}, nil},
		{"ends names of entities at a zero byte", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return renames(s, unchanged, func(name string) string { return endsAt(name, "\x00") })
		}, nil},
		{"ends names of clients at a line feed", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return renames(s, func(name string) string { return endsAt(name, "\n") }, unchanged)
		}, nil},
		{"joins client and entity", "12 names differ by any byte", func(s *simple) webhookcfg.Store {
			return joins(s, "/")
		}, nil},
	}
}

// keepsTimes returns a store of times with a coarse precision.
func keepsTimes(precision time.Duration) func(s *simple) webhookcfg.Store {
	return func(s *simple) webhookcfg.Store {
		return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
			c.Time = c.Time.Truncate(precision)
			return c
		})
	}
}

// endsAt returns the name up to the end, if that leaves anything.
func endsAt(name, end string) string {
	before, _, _ := strings.Cut(name, end)
	return cmp.Or(before, name)
}

// joins keeps overrides under names of client and entity, joined by the separator.
func joins(s *simple, separator string) broken {
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if name := c.Scope.Entity(); name != "" && c.Client != "" {
				c.Client, c.Scope = "joined", webhookcfg.Entity(c.Client+separator+name)
			}
			return s.Apply(ctx, c)
		},
		resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			if client == "" || entity == "" {
				return s.Resolve(ctx, client, entity)
			}
			return s.Resolve(ctx, "joined", client+separator+entity)
		},
	}
}

func brokenRefusals() []flaw {
	return []flaw{
		{"accepts invalid changes", "13 invalid arguments are refused", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				s.edit(c.Client, func(cfg configuration) configuration { return cfg.after(c) })
				return nil
			}}
		}, nil},
		{"treats no entity as all", "13 invalid arguments are refused", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := c.Validate(); err != nil && c.Scope.Entity() == "" && c.Client != "" {
					c.Scope = webhookcfg.All()
					return errors.Join(err, s.Apply(ctx, c))
				}
				return s.Apply(ctx, c)
			}}
		}, nil},
		{"refuses with another error", "13 invalid arguments are refused", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := c.Validate(); err != nil {
					return errors.New("invalid")
				}
				return s.Apply(ctx, c)
			}}
		}, nil},
		{"resolves no entity to the base", "13 invalid arguments are refused", func(s *simple) webhookcfg.Store {
			return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				return s.Resolve(ctx, client, cmp.Or(entity, "\x00"))
			}}
		}, nil},
		{"ignores the context of a change", "15 an ended context changes nothing", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				return s.Apply(context.WithoutCancel(ctx), c)
			}}
		}, nil},
		{"makes the change and reports an error", "15 an ended context changes nothing", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				return cmp.Or(s.Apply(context.WithoutCancel(ctx), c), ctx.Err())
			}}
		}, nil},
		{"ignores the context of a resolve", "15 an ended context changes nothing", func(s *simple) webhookcfg.Store {
			return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				return s.Resolve(context.WithoutCancel(ctx), client, entity)
			}}
		}, nil},
		{"quotes the URL", "errors hold no URL", func(s *simple) webhookcfg.Store {
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				if err := s.Apply(ctx, c); err != nil {
					return fmt.Errorf("set %s: %w", c.URL.Reveal(), err)
				}
				return nil
			}}
		}, nil},
	}
}
