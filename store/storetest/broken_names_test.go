package storetest_test

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// brokenNames are flaws that show only with some names of clients and entities, or with some
// URLs.
func brokenNames() []flaw {
	const differ, isolated, unknown = "12 names differ by any byte", "12 clients are isolated", "lister returns an empty page for an unknown client"
	var all []flaw
	for _, name := range []string{"default", "base", "__base__", "__all__", "ALL", "_", "-", "0", "*", "\x00", "acme"} {
		all = append(all, flaw{"keeps the base as the entity " + name, differ, func(s *simple) webhookcfg.Store {
			return keepsBaseAs(s, name)
		}, nil})
	}
	for _, name := range []string{"default", "*", "_", "root"} {
		all = append(all, flaw{"resolves unknown clients as " + name, isolated, func(s *simple) webhookcfg.Store {
			return fallsBackTo(s, name)
		}, nil})
	}
	for syntax, matches := range map[string]matcher{"LIKE": like, "a glob": glob, "a regular expression": expression} {
		all = append(all,
			flaw{"takes the client of a set-all for " + syntax, isolated, func(s *simple) webhookcfg.Store {
				return dropsMatchingClients(s, matches, false)
			}, nil},
			flaw{"takes the client of an unset-all for " + syntax, isolated, func(s *simple) webhookcfg.Store {
				return dropsMatchingClients(s, matches, true)
			}, nil},
			flaw{"takes the entity of an unset for " + syntax, differ, func(s *simple) webhookcfg.Store {
				return changesMatching(s, matches, isUnset)
			}, nil},
			flaw{"takes the entity of a set for " + syntax, differ, func(s *simple) webhookcfg.Store {
				return changesMatching(s, matches, isSet)
			}, nil},
			flaw{"takes the client of a listing for " + syntax, unknown, func(s *simple) webhookcfg.Store {
				return listsMatching(s, matches)
			}, nil})
	}
	for _, separator := range []string{"#", "\x00", "::", "\x1f", "\n", "%2F", "="} {
		all = append(all, flaw{"joins client and entity by " + url.PathEscape(separator), differ, func(s *simple) webhookcfg.Store {
			return joins(s, separator)
		}, nil})
	}
	first := func(bytes int) func(string) string {
		return func(text string) string { return text[:min(len(text), bytes)] }
	}
	for name, key := range map[string]func(string) string{
		"case":                   strings.ToLower,
		"the case of the host":   lowerHost,
		"their first 128 bytes":  first(128),
		"their first 192 bytes":  first(192),
		"their first 255 bytes":  first(255),
		"their first 512 bytes":  first(512),
		"their first 1024 bytes": first(1024),
		"their last 1000 bytes":  func(text string) string { return text[max(0, len(text)-1000):] },
		"%2f":                    func(text string) string { return strings.ReplaceAll(text, "%2f", "%2F") },
		"decoded escapes":        func(text string) string { decoded, _ := url.PathUnescape(text); return cmp.Or(decoded, text) },
		"a last slash":           func(text string) string { return strings.TrimRight(text, "/") },
		"the default port":       func(text string) string { return strings.Replace(text, ":443", "", 1) },
		"the path":               func(text string) string { before, _, _ := strings.Cut(text, "?"); return before },
		"the sorted query":       sortedQuery,
	} {
		all = append(all, flaw{"keeps URLs once, which differ by " + name, "11 the URL is kept byte for byte", func(s *simple) webhookcfg.Store {
			return sharesURLs(s, key)
		}, nil})
	}
	return append(all, flaw{"keeps URLs once, by case, when reopened", "02 a reopened store has kept the change", asIs, func(s *simple) *simple {
		urls := make(map[string]egress.URL)
		return s.with(func(hook webhookcfg.Webhook) webhookcfg.Webhook {
			key := strings.ToLower(hook.URL.Reveal())
			if _, ok := urls[key]; !ok {
				urls[key] = hook.URL
			}
			hook.URL = urls[key]
			return hook
		})
	}})
}

// keepsBaseAs is a store in which an entity is the base.
func keepsBaseAs(s *simple, name string) webhookcfg.Store {
	st := edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
		if c.Scope.Entity() != name {
			return cfg.after(c)
		}
		c.Scope = webhookcfg.All()
		return setBase(cfg, c)
	})
	return st
}

// fallsBackTo resolves clients without a configuration as another one.
func fallsBackTo(s *simple, other string) webhookcfg.Store {
	return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
		hook, err := s.Resolve(ctx, client, entity)
		if err == nil && hook.Source == webhookcfg.SourceNone {
			return s.Resolve(ctx, other, entity)
		}
		return hook, err
	}}
}

// A matcher reports whether a name matches a pattern.
type matcher func(pattern, name string) bool

func like(pattern, name string) bool {
	var quoted strings.Builder
	for _, r := range pattern {
		switch r {
		case '%':
			quoted.WriteString("(?s:.*)")
		case '_':
			quoted.WriteString("(?s:.)")
		default:
			quoted.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return expression(quoted.String(), name)
}

func glob(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}

func expression(pattern, name string) bool {
	matched, err := regexp.MatchString("^(?:"+pattern+")$", name)
	return err == nil && matched
}

// dropsMatchingClients also drops the overrides of other clients if their names match, when a
// client changes all.
func dropsMatchingClients(s *simple, matches matcher, unset bool) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		err := s.Apply(ctx, c)
		if err == nil && c.Scope.IsAll() && c.URL.IsZero() == unset {
			s.mu.Lock()
			defer s.mu.Unlock()
			for name, cfg := range s.clients {
				if name != c.Client && hasWildcard(c.Client) && matches(c.Client, name) {
					s.clients[name] = configuration{base: cfg.base}
				}
			}
		}
		return err
	}}
}

// hasWildcard saves the time of matching names without one.
func hasWildcard(name string) bool { return strings.ContainsAny(name, `%_*?[.|^(\`) }

// changesMatching changes all overrides that match the name of the entity.
func changesMatching(s *simple, matches matcher, affected func(webhookcfg.Change) bool) webhookcfg.Store {
	return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
		pattern := c.Scope.Entity()
		if pattern == "" || !affected(c) || !hasWildcard(pattern) {
			return cfg.after(c)
		}
		next := cfg.clone()
		for name := range cfg.overrides {
			if matches(pattern, name) {
				c.Scope = webhookcfg.Entity(name)
				next = next.after(c)
			}
		}
		c.Scope = webhookcfg.Entity(pattern)
		return next.after(c)
	})
}

// listsMatching lists the overrides of any client that matches, if the client has none.
func listsMatching(s *simple, matches matcher) webhookcfg.Store {
	return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
		page, err := s.List(ctx, client, after, limit)
		if err != nil || len(page.Overrides) > 0 {
			return page, err
		}
		s.mu.RLock()
		found := ""
		for name := range s.clients {
			if name != client && hasWildcard(client) && matches(client, name) {
				found = name
			}
		}
		s.mu.RUnlock()
		if found == "" {
			return page, err
		}
		return s.List(ctx, found, after, limit)
	}}
}

// sharesURLs keeps each URL once, under a key that several may have.
func sharesURLs(s *simple, key func(string) string) webhookcfg.Store {
	var urls sync.Map
	return changes(s, func(c webhookcfg.Change) webhookcfg.Change {
		if !c.URL.IsZero() {
			kept, _ := urls.LoadOrStore(key(c.URL.Reveal()), c.URL)
			c.URL = kept.(egress.URL)
		}
		return c
	})
}

func lowerHost(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return text
	}
	return strings.Replace(text, parsed.Host, strings.ToLower(parsed.Host), 1)
}

func sortedQuery(text string) string {
	before, query, found := strings.Cut(text, "?")
	if !found {
		return text
	}
	parts := strings.Split(query, "&")
	slices.Sort(parts)
	return before + "?" + strings.Join(parts, "&")
}
