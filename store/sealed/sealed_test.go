package sealed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// secretURL has a token in its path and one in its query.
const secretURL = "https://hooks.example.com/PATH-T0KEN?q=QUERY-T0KEN"

func newKey(t testing.TB, id string) *sealed.Key {
	t.Helper()
	key, err := sealed.NewKey(id, bytes.Repeat([]byte(id[:1]), 32))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// seal wraps a store. The keys have the given IDs.
func seal(t testing.TB, inner webhookcfg.Store, o *sealed.Options, ids ...string) webhookcfg.Store {
	t.Helper()
	var keys []*sealed.Key
	for _, id := range ids {
		keys = append(keys, newKey(t, id))
	}
	shared, err := sealed.SharedKeys(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return wrap(t, inner, shared, o)
}

func wrap(t testing.TB, inner webhookcfg.Store, keys sealed.Keys, o *sealed.Options) webhookcfg.Store {
	t.Helper()
	s, err := sealed.New(inner, keys, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func resolve(t testing.TB, s webhookcfg.Store, client, entity string) (string, error) {
	t.Helper()
	hook, err := s.Resolve(t.Context(), client, entity)
	return hook.URL.Reveal(), err
}

// stored returns the text that a store keeps instead of a URL.
func stored(t testing.TB, inner webhookcfg.Store, client, entity string) string {
	t.Helper()
	text, err := resolve(t, inner, client, entity)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestConforms: the wrapper keeps nothing, so each handle, and each opening, has a new one. What
// the inner store does is tested there.
func TestConforms(t *testing.T) {
	var inner webhookcfg.Store
	again := func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return seal(t, inner, nil, "k") }
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			inner = store.NewMemory()
			return again(t, nil)
		},
		Reopen:   again,
		Crash:    again,
		OpenPeer: again,
	})
}

// TestNothingReadable: the file, its backup and what the inner store returns have no part of
// the URL, not even its host.
func TestNothingReadable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "webhooks.jsonl")
	file, err := store.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := seal(t, file, nil, "k")
	url := egress.NewURL(secretURL)
	for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e1"), webhookcfg.Entity("e2")} {
		hooktest.Apply(t, s, hooktest.At(1, webhookcfg.SetChange("c", scope, url)))
	}
	backup := filepath.Join(dir, "backup.jsonl")
	if err := file.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, backup} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte("sealed.1.k.")) {
			t.Errorf("%s has no envelope", name)
		}
		for _, part := range []string{"T0KEN", "example.com", "https"} {
			if bytes.Contains(content, []byte(part)) {
				t.Errorf("%s has %q", name, part)
			}
		}
	}
}

// TestSameURLLooksDifferent: the nonce is random, so equal URLs don't show.
func TestSameURLLooksDifferent(t *testing.T) {
	inner := store.NewMemory()
	s := seal(t, inner, nil, "k")
	hooktest.Apply(t, s, hooktest.Set("c", "e1", 1), hooktest.Set("c", "e2", 1))
	if stored(t, inner, "c", "e1") == stored(t, inner, "c", "e2") {
		t.Error("two envelopes of one URL are equal")
	}
}

// TestGolden: later versions read what this one wrote.
func TestGolden(t *testing.T) {
	const (
		ofBase   = "sealed.1.k.M0JMB4qqoG14hnxoecYZVvepx5qTzS-GEegI5SrMSIrAlNLLLSACTy7rVhWmdNTNf-RMfdmDSUwP-0mppkHSUUbhHvBe2-6sPApp6_k4"
		ofEntity = "sealed.1.k.krsimZdpEmS3e_dHGt075lp6xtUvZnzG6NQN3zmTjkDDOcdAC5RQY2Ur_0DFAe4yTAb63FBY41cr8Igh4lqWqGLW2iuRVjIH2GUoE__b"
	)
	inner := store.NewMemory()
	put(t, inner, webhookcfg.All(), ofBase)
	put(t, inner, webhookcfg.Entity("e1"), ofEntity)
	s := seal(t, inner, nil, "k")
	for _, entity := range []string{"e1", "other"} {
		if got, err := resolve(t, s, "c", entity); got != secretURL || err != nil {
			t.Errorf("%s resolves to %q, %v", entity, got, err)
		}
	}
}

// TestIsEnvelope: a tool can tell what the inner store has.
func TestIsEnvelope(t *testing.T) {
	inner := store.NewMemory()
	hooktest.Apply(t, seal(t, inner, nil, "k"), hooktest.Set("c", "e1", 1))
	later := "sealed.2." + strings.TrimPrefix(stored(t, inner, "c", "e1"), "sealed.1.")
	for text, want := range map[string]bool{stored(t, inner, "c", "e1"): true, later: true, secretURL: false, "https://sealed.1.k.example/": false, "": false} {
		if got := sealed.IsEnvelope(egress.NewURL(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// put stores a text in place of an envelope of client c.
func put(t testing.TB, inner webhookcfg.Store, scope webhookcfg.Scope, text string) {
	t.Helper()
	hooktest.Apply(t, inner, hooktest.At(2, webhookcfg.SetChange("c", scope, egress.NewURL(text))))
}

// TestWrongEnvelopes: each is an error that names client and entity, and shows no URL.
func TestWrongEnvelopes(t *testing.T) {
	inner := store.NewMemory()
	s := seal(t, inner, nil, "k", "old")
	url := egress.NewURL(secretURL)
	hooktest.Apply(t, s,
		webhookcfg.SetChange("c", webhookcfg.Entity("e1"), url),
		webhookcfg.SetChange("c", webhookcfg.Entity("e2"), url),
		webhookcfg.SetChange("c2", webhookcfg.Entity("e1"), url),
		webhookcfg.SetChange("ce", webhookcfg.Entity("1"), url),
		webhookcfg.SetChange("c3", webhookcfg.All(), url),
	)
	own := stored(t, inner, "c", "e1")
	body := strings.TrimPrefix(own, "sealed.1.k.")
	other := store.NewMemory()
	hooktest.Apply(t, seal(t, other, nil, "x"), webhookcfg.SetChange("c", webhookcfg.Entity("e1"), url))
	wrong := map[string]string{
		"plain URL":                 secretURL,
		"of another entity":         stored(t, inner, "c", "e2"),
		"of another client":         stored(t, inner, "c2", "e1"),
		"of names that concatenate": stored(t, inner, "ce", "1"),
		"of a base":                 stored(t, inner, "c3", "e1"),
		"under another key's ID":    "sealed.1.old." + body,
		"under an unknown key":      "sealed.1.unknown." + body,
		"with another secret":       "sealed.1.k." + strings.TrimPrefix(stored(t, other, "c", "e1"), "sealed.1.x."),
		"later version":             "sealed.2.k." + body,
		"without a version":         "sealed.k." + body,
		"without a key":             "sealed.1.." + body,
		"without content":           "sealed.1.k.",
		"without a second dot":      "sealed.1.k",
		"prefix alone":              "sealed.",
		"padded":                    own + "=",
		"with a line break":         own + "\n",
		"in upper case":             strings.ToUpper(own),
	}
	for n := range len(body) {
		wrong[fmt.Sprint("cut after ", n)] = own[:len(own)-len(body)+n]
		flipped := []byte(body)
		flipped[n] = 'A'
		if body[n] == 'A' {
			flipped[n] = 'B'
		}
		wrong[fmt.Sprint("changed at ", n)] = "sealed.1.k." + string(flipped)
	}
	for name, text := range wrong {
		put(t, inner, webhookcfg.Entity("e1"), text)
		hook, err := s.Resolve(t.Context(), "c", "e1")
		if !errors.Is(err, sealed.ErrEnvelope) && !errors.Is(err, sealed.ErrKey) || !cmp.Equal(hook, webhookcfg.Webhook{}) {
			t.Errorf("%s: %v, %v", name, hook, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, `client "c", entity "e1"`) || strings.Contains(text, "T0KEN") {
			t.Errorf("%s: the error is %q", name, text)
		}
		if _, err := s.(webhookcfg.Lister).List(t.Context(), "c", "", 10); err == nil {
			t.Errorf("%s: List returns no error", name)
		}
	}

	// The webhook can still be changed, and then everything works again.
	hooktest.Apply(t, s, hooktest.At(3, webhookcfg.SetChange("c", webhookcfg.Entity("e1"), url)))
	if got, err := resolve(t, s, "c", "e1"); got != secretURL || err != nil {
		t.Errorf("after a set: %q, %v", got, err)
	}
}

// TestAllowPlain: plain URLs are read only if that's allowed, and the next set seals them.
func TestAllowPlain(t *testing.T) {
	inner := store.NewMemory()
	hooktest.Apply(t, inner, hooktest.SetAll("c", 1), hooktest.Set("c", "e1", 2))
	strict, lenient := seal(t, inner, nil, "k"), seal(t, inner, &sealed.Options{AllowPlain: true}, "k")
	for _, entity := range []string{"e1", "other"} {
		if _, err := strict.Resolve(t.Context(), "c", entity); !errors.Is(err, sealed.ErrEnvelope) {
			t.Errorf("%s without AllowPlain: %v", entity, err)
		}
	}
	if got, err := resolve(t, lenient, "c", "e1"); got != hooktest.URL(2).Reveal() || err != nil {
		t.Errorf("with AllowPlain: %q, %v", got, err)
	}
	hooktest.Apply(t, lenient, hooktest.SetAll("c", 3))
	if got, err := resolve(t, strict, "c", "e1"); got != hooktest.URL(3).Reveal() || err != nil {
		t.Errorf("after a set: %q, %v", got, err)
	}
}

// TestRotation: the first key seals, all of them open, and Verify with the new one alone
// tells whether an old one is still needed.
func TestRotation(t *testing.T) {
	inner := store.NewMemory()
	hooktest.Apply(t, seal(t, inner, nil, "old"), hooktest.SetAll("c", 1), hooktest.Set("c", "e1", 2))
	both := seal(t, inner, nil, "new", "old")
	hooktest.Apply(t, both, hooktest.Set("c", "e1", 3))
	if text := stored(t, inner, "c", "e1"); !strings.HasPrefix(text, "sealed.1.new.") {
		t.Errorf("sealed as %.20s", text)
	}
	if got, err := resolve(t, both, "c", "other"); got != hooktest.URL(1).Reveal() || err != nil {
		t.Errorf("with both keys: %q, %v", got, err)
	}

	onlyNew := seal(t, inner, nil, "new")
	if _, err := onlyNew.Resolve(t.Context(), "c", "other"); !errors.Is(err, sealed.ErrKey) {
		t.Errorf("without the old key: %v", err)
	}
	if _, err := admin.Verify(t.Context(), onlyNew, onlyNew, nil); !errors.Is(err, sealed.ErrKey) {
		t.Errorf("Verify without the old key: %v", err)
	}
}

// keysOf gives each client a key of its own, until it's destroyed.
type keysOf map[string]*sealed.Key

var errVault = errors.New("the vault is closed")

func (k keysOf) Keys(_ context.Context, client string) ([]*sealed.Key, error) {
	switch key, known := k[client]; {
	case client == "unavailable":
		return nil, errVault
	case known:
		return []*sealed.Key{key}, nil
	}
	return nil, nil
}

// TestKeys: a client without keys, or whose keys can't be fetched, can do nothing that needs
// them, and nothing is changed. Other clients and all other operations work.
func TestKeys(t *testing.T) {
	inner := store.NewMemory()
	keys := keysOf{"a": newKey(t, "a"), "b": newKey(t, "b"), "nil": nil, "zero": {}}
	s := wrap(t, inner, keys, nil)
	hooktest.Apply(t, s, hooktest.SetAll("a", 1), hooktest.SetAll("b", 2))

	for client, want := range map[string]error{"unknown": sealed.ErrKey, "nil": sealed.ErrKey, "zero": sealed.ErrKey, "unavailable": errVault} {
		if err := s.Apply(t.Context(), hooktest.SetAll(client, 3)); !errors.Is(err, want) {
			t.Errorf("a set of client %s: %v", client, err)
		}
		if text := stored(t, inner, client, "e1"); text != "" {
			t.Errorf("client %s has %q", client, text)
		}
		hooktest.Apply(t, s, hooktest.UnsetAll(client, 4))
	}

	delete(keys, "a")
	if _, err := s.Resolve(t.Context(), "a", "e1"); !errors.Is(err, sealed.ErrKey) {
		t.Errorf("after its key was destroyed: %v", err)
	}
	if got, err := resolve(t, s, "b", "e1"); got != hooktest.URL(2).Reveal() || err != nil {
		t.Errorf("another client: %q, %v", got, err)
	}
	if err := admin.Erase(t.Context(), s, "a"); err != nil {
		t.Errorf("Erase after the key was destroyed: %v", err)
	}
}

func TestInvalidKeys(t *testing.T) {
	secret := make([]byte, 32)
	for _, id := range []string{"", "a.b", "a b", "é", strings.Repeat("a", 33), "a\n"} {
		if _, err := sealed.NewKey(id, secret); err == nil {
			t.Errorf("NewKey takes the ID %q", id)
		}
	}
	for _, n := range []int{0, 16, 31, 33} {
		if _, err := sealed.NewKey("k", make([]byte, n)); err == nil {
			t.Errorf("NewKey takes %d bytes", n)
		}
	}
	key := newKey(t, "k")
	for name, keys := range map[string][]*sealed.Key{"none": nil, "nil": {nil}, "zero": {{}}, "same ID": {key, newKey(t, "k")}, "17": make([]*sealed.Key, 17)} {
		if _, err := sealed.SharedKeys(keys...); err == nil {
			t.Errorf("SharedKeys takes %s", name)
		}
	}
	shared, err := sealed.SharedKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealed.New(nil, shared, nil); err == nil {
		t.Error("New takes no store")
	}
	if _, err := sealed.New(store.NewMemory(), nil, nil); err == nil {
		t.Error("New takes no keys")
	}
}

// TestKeyIsNotShown: a key prints as its ID.
func TestKeyIsNotShown(t *testing.T) {
	key := newKey(t, "k")
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", key)
	for _, text := range []string{fmt.Sprint(key), fmt.Sprintf("%#v", key), fmt.Sprintf("%x", key), key.ID(), key.String()} {
		if text != "k" {
			t.Errorf("shown as %q", text)
		}
	}
	if !strings.Contains(log.String(), "key=k\n") {
		t.Errorf("logged as %q", log.String())
	}
}

// bare is a store without optional interfaces.
type bare struct{ webhookcfg.Store }

type lister struct {
	bare
	webhookcfg.Lister
}

type notifier struct {
	bare
	cache.Notifier
}

type both struct {
	bare
	webhookcfg.Lister
	cache.Notifier
}

type notify struct{}

func (notify) Notify(context.Context) <-chan struct{} { return nil }

// TestInterfaces: those of the inner store survive, and no others appear. The interfaces that
// can say that they're unsupported do.
func TestInterfaces(t *testing.T) {
	memory := store.NewMemory()
	plain := bare{memory}
	for name, test := range map[string]struct {
		inner           webhookcfg.Store
		lists, notifies bool
	}{
		"bare":     {plain, false, false},
		"lister":   {lister{plain, memory}, true, false},
		"notifier": {notifier{plain, notify{}}, false, true},
		"both":     {both{plain, memory, notify{}}, true, true},
	} {
		s := seal(t, test.inner, nil, "k")
		if _, ok := s.(webhookcfg.Lister); ok != test.lists {
			t.Errorf("%s: a Lister: %v", name, ok)
		}
		if _, ok := s.(cache.Notifier); ok != test.notifies {
			t.Errorf("%s: a Notifier: %v", name, ok)
		}
		_, clients := s.(admin.ClientLister).ListClients(t.Context(), "", 1)
		_, changes := s.(cache.Feed).Changes(t.Context(), "")
		_, versions := s.(cache.Versioner).Versions(t.Context(), []string{"c"})
		erased := s.(admin.Eraser).Erase(t.Context(), "c")
		for call, err := range map[string]error{"ListClients": clients, "Changes": changes, "Versions": versions, "Erase": erased} {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
	}
}

// TestInnerFails: its errors come through, and its page isn't modified.
func TestInnerFails(t *testing.T) {
	inner := store.NewMemory()
	s := seal(t, inner, nil, "k")
	hooktest.Apply(t, s, hooktest.Set("c", "e1", 1))
	if _, err := s.Resolve(t.Context(), "", "e1"); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("Resolve without a client: %v", err)
	}
	if _, err := s.(webhookcfg.Lister).List(t.Context(), "c", "", 0); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("List with limit 0: %v", err)
	}

	page, err := inner.List(t.Context(), "c", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	before := page.Overrides[0].Webhook.URL.Reveal()
	shared := seal(t, lister{bare{inner}, fixedPage{page}}, nil, "k")
	if _, err := shared.(webhookcfg.Lister).List(t.Context(), "c", "", 10); err != nil {
		t.Error(err)
	}
	if page.Overrides[0].Webhook.URL.Reveal() != before {
		t.Error("List modified the page of the inner store")
	}
}

// fixedPage keeps the page that it returns.
type fixedPage struct{ page webhookcfg.Page }

func (f fixedPage) List(context.Context, string, string, int) (webhookcfg.Page, error) {
	return f.page, nil
}
