package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"example.com/go-webhookcfg/examples/internal/textfile"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// errSealed is the error of a command that needs to decrypt or encrypt URLs.
var errSealed = errors.New("the store has encrypted URLs: give -sealed-keys. If you have no file of the keys, your service has to do this; see README.md")

// readKeys reads the keys of package store/sealed. The first one encrypts. Unless shared is set,
// other users can't have access to the file.
func readKeys(path string, shared bool) (sealed.Keys, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && !shared && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: other users have access to the keys (mode %04o): chmod 600 it, or, if the service isn't its owner, give -shared", path, info.Mode().Perm())
	}
	content, err := textfile.Read(path)
	if err != nil {
		return nil, err
	}
	var keys []*sealed.Key
	for line := range strings.Lines(content) {
		id, encoded, _ := strings.Cut(strings.TrimSpace(line), " ")
		if id == "" {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || encoded == "" { // don't show the line, which may have a secret
			return nil, fmt.Errorf("%s: key %d isn't an ID, a space, and the base64 of 32 bytes", path, len(keys)+1)
		}
		key, err := sealed.NewKey(id, secret)
		if err != nil {
			return nil, fmt.Errorf("%s: key %d: %w", path, len(keys)+1, err)
		}
		keys = append(keys, key)
	}
	return sealed.SharedKeys(keys...)
}

// unseal makes a store decrypt and encrypt URLs with keys.
func (st *opened) unseal(keys sealed.Keys, allowPlain bool) error {
	wrapped, err := sealed.New(st.operable, keys, &sealed.Options{AllowPlain: allowPlain})
	if err != nil {
		return err
	}
	st.sealed, st.allowsPlain = st.patient, allowPlain
	st.operable = wrapped.(operable) // as the store itself is
	return nil
}

// maxPlain is how many URLs namePlain names.
const maxPlain = 100

// namePlain names the URLs that aren't encrypted in stores where all have to be, and returns how
// many there are. With a client, it only looks at that one's.
func (s *session) namePlain(ctx context.Context, client string, stores ...*opened) (n int, err error) {
	for _, st := range stores {
		if st.sealed == nil || st.allowsPlain {
			continue
		}
		clients := admin.Clients(ctx, st.sealed)
		if client != "" {
			clients = func(yield func(string, error) bool) { yield(client, nil) }
		}
		for client, err := range clients {
			if err != nil {
				return n, err
			}
			for e, err := range admin.Webhooks(ctx, st.sealed, client) {
				if err != nil {
					return n, err
				}
				if e.Webhook.URL.IsZero() || sealed.IsEnvelope(e.Webhook.URL) {
					continue
				}
				if n++; n > maxPlain {
					continue
				}
				r := s.record(client, e.Scope.Entity(), e.Webhook)
				r.Rule = "the URL isn't encrypted"
				if err := s.print(r, "%s: %s, %v", st.name, printable(client), r); err != nil {
					return n, err
				}
			}
		}
	}
	if n > 0 {
		fmt.Fprintf(s.stderr, "admin: %d URLs aren't encrypted, so they were stored without the keys, perhaps by somebody who has none: have the clients set those of entities again through the API, or use admin set. A default set again drops what single entities have, so rather stop the service and copy the store to a new one with -allow-plain. If the service encrypts only from now on, give that flag, too.\n", n)
	}
	return n, nil
}

// checkSet refuses to set a readable URL in a store with encrypted ones, and one that the service
// couldn't decrypt.
func (s *session) checkSet(ctx context.Context, st *opened) error {
	if s.keys != nil {
		return s.checkFirstKey(ctx, st)
	}
	_, encrypted, err := st.urls(ctx, s.args[1])
	if err == nil && encrypted {
		err = errSealed
	}
	return err
}

// checkFirstKey refuses keys whose first one encrypts none of the URLs, because a service perhaps doesn't
// have it, or not with this secret. It looks where urls does.
func (s *session) checkFirstKey(ctx context.Context, st *opened) error {
	client := s.args[1]
	keys, err := s.keys.Keys(ctx, client)
	if err != nil {
		return err
	}
	first := keys[0]
	shared, err := sealed.SharedKeys(first)
	if err != nil {
		return err
	}
	opening, err := sealed.New(st.sealed, shared, nil)
	if err != nil {
		return err
	}
	names, err := firstClients(ctx, st.sealed, client)
	if err != nil {
		return err
	}
	var readable, encrypted, otherSecret bool
	for _, name := range names {
		hooks, err := st.sealed.List(ctx, name, "", 10)
		if err != nil {
			return err
		}
		for _, o := range append(hooks.Overrides, webhookcfg.Override{Entity: "?"}) { // "?" has the base
			hook, err := st.sealed.Resolve(ctx, name, o.Entity)
			if err != nil {
				return err
			}
			switch {
			case hook.URL.IsZero():
			case !sealed.IsEnvelope(hook.URL):
				readable = true
			default:
				encrypted = true
				_, err := opening.Resolve(ctx, name, o.Entity)
				switch {
				case errors.Is(err, sealed.ErrEnvelope):
					otherSecret = true
				case !errors.Is(err, sealed.ErrKey):
					return err // which is nil if the key opens it
				}
			}
		}
	}
	switch {
	case otherSecret:
		return fmt.Errorf("key %q opens none of the URLs that have its ID, so the service would have another secret for it: give the service's keys", first.ID())
	case st.allowsPlain || !readable && !encrypted:
		return nil
	case encrypted:
		return fmt.Errorf("no URL is encrypted with key %q, so the service may not have it: put the key that the service encrypts with on the first line, or, if the service has this one, give -allow-plain", first.ID())
	}
	return errors.New("none of the store's URLs is encrypted, so the service may have no keys: leave out -sealed-keys or, if the service encrypts from now on, give -allow-plain")
}

// checkReplace refuses to replace encrypted URLs by readable ones.
func (s *session) checkReplace(ctx context.Context, to, from *opened) error {
	if s.keys != nil {
		return nil
	}
	_, encrypted, err := to.urls(ctx, "")
	if err != nil || !encrypted {
		return err
	}
	readable, encrypted, err := from.urls(ctx, "")
	if err == nil && readable && !encrypted {
		err = errSealed
	}
	return err
}

// urls reports whether a store has readable and encrypted URLs. It looks at the first hundred
// clients, and at the given one.
func (st *opened) urls(ctx context.Context, client string) (readable, encrypted bool, err error) {
	look := func(url egress.URL) {
		encrypted = encrypted || sealed.IsEnvelope(url)
		readable = readable || !sealed.IsEnvelope(url) && !url.IsZero()
	}
	names, err := firstClients(ctx, st, client)
	if err != nil {
		return false, false, err
	}
	for _, name := range names {
		hooks, err := st.List(ctx, name, "", 10)
		if err != nil {
			return false, false, err
		}
		look(hooks.Base.URL)
		for _, o := range hooks.Overrides {
			look(o.Webhook.URL)
		}
	}
	return readable, encrypted, nil
}

// firstClients returns the names of the given client, if there is one, and of the first hundred.
func firstClients(ctx context.Context, st operable, client string) (names []string, err error) {
	if client != "" {
		names = append(names, client)
	}
	page, err := st.ListClients(ctx, "", 100)
	return append(names, page.Clients...), err
}
