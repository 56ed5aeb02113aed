package deliver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// vectorKey is the key of the test vector of the Standard Webhooks reference libraries.
const vectorKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestSignatures(t *testing.T) {
	const (
		id, timestamp = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330"
		body, want    = `{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	)
	key := mustParse(t, vectorKey)
	if got := deliver.Signatures(id, timestamp, []byte(body), []deliver.Key{key}); got != want {
		t.Errorf("one key: got %q, want %q", got, want)
	}
	other := deliver.GenerateKey()
	alone := deliver.Signatures(id, timestamp, []byte(body), []deliver.Key{other})
	if got := deliver.Signatures(id, timestamp, []byte(body), []deliver.Key{other, key}); got != alone+" "+want {
		t.Errorf("two keys: got %q, want %q", got, alone+" "+want)
	}
}

func TestParseKey(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for _, text := range []string{
		vectorKey,
		"whsec_" + encode(make([]byte, 24)),
		"whsec_" + encode(make([]byte, 25)),
		"whsec_" + encode(make([]byte, 64)),
		deliver.GenerateKey().Reveal(),
	} {
		if got := mustParse(t, text).Reveal(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	for _, text := range []string{
		"",
		"whsec_",
		strings.TrimPrefix(vectorKey, "whsec_"),
		"whsk_" + encode(make([]byte, 32)),
		"whsec_" + encode(make([]byte, 23)),
		"whsec_" + encode(make([]byte, 65)),
		vectorKey + "\n",
		" " + vectorKey,
		"whsec_" + base64.RawStdEncoding.EncodeToString(make([]byte, 25)),
		"whsec_" + base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 24)),
		strings.Replace("whsec_"+encode(make([]byte, 25)), "AA==", "AB==", 1), // a bit that is not used
	} {
		key, err := deliver.ParseKey(text)
		if err == nil {
			t.Errorf("%q is accepted", text)
		} else if secret := strings.TrimPrefix(text, "whsec_"); secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the secret: %v", err)
		}
		if key.Reveal() != "" {
			t.Errorf("%q: a key and an error", text)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(vectorKey)
	f.Add("whsec_AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := deliver.ParseKey(text)
		if want := map[bool]string{true: text}[err == nil]; key.Reveal() != want {
			t.Errorf("ParseKey(%q) reveals %q, error %v", text, key.Reveal(), err)
		}
	})
}

func TestGenerateKey(t *testing.T) {
	seen := make(map[string]bool)
	for range 100 {
		text := deliver.GenerateKey().Reveal()
		if seen[text] || len(text) != len("whsec_")+44 {
			t.Errorf("key %q", text)
		}
		seen[text] = true
	}
}

// TestKeyIsHidden: no print of a key, or of what contains one, shows its secret.
func TestKeyIsHidden(t *testing.T) {
	key := mustParse(t, vectorKey)
	master := []byte("a master of thirty-two bytes, at least")
	derived, err := deliver.DerivedKeys(master)
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		key     deliver.Key
		Keys    []deliver.Key
		Pointer *deliver.Key
		derived deliver.Keys
		Map     map[string]deliver.Key
	}
	all := holder{key, []deliver.Key{key}, &key, derived, map[string]deliver.Key{"acme": key}}
	for _, value := range []any{key, &key, []deliver.Key{key}, all, &all, derived} {
		checkHidden(t, value, vectorKey, string(master))
	}
	if got := fmt.Sprint(key, deliver.Key{}); got != "[secret] " {
		t.Errorf("printed as %q", got)
	}
}

// checkHidden reports every print of a value that contains a secret: a text, the key with
// that text, or the bytes of either.
func checkHidden(t *testing.T, value any, secrets ...string) {
	t.Helper()
	prints := hooktest.Prints(value)
	for _, secret := range secrets {
		encoded := strings.TrimPrefix(secret, "whsec_")
		raw := []byte(secret)
		if encoded != secret {
			raw, _ = base64.StdEncoding.DecodeString(encoded)
		}
		decimal := strings.Trim(fmt.Sprint(raw), "[]")
		for _, part := range []string{encoded, string(raw), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), decimal, strings.Trim(fmt.Sprintf("%#v", raw), "[]byte{}")} {
			if strings.Contains(prints, part) {
				t.Errorf("%T is printed as %s", value, prints)
			}
		}
	}
}

// TestDerived: the keys of both derivations, which must never change, since clients have them.
// The wanted ones were computed with an implementation of RFC 5869 in Python.
func TestDerived(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	to := func(client, entity, url string) deliver.Recipient {
		return deliver.Recipient{Client: client, Entity: entity, Webhook: webhookcfg.Webhook{URL: egress.NewURL(url)}}
	}
	const ofAcme, ofVendor = "whsec_2osmWVNcykErBstABR/U/9zT9bnkPlZwReR7fllAhZc=", "whsec_Krx/OghNeXZBGD93hx/4QZ3RiWyTOvTi3DhQYrfj2is="
	recipient := to("acme", "", "https://example.com/a")
	for name, tt := range map[string]struct {
		derive          func(masters ...[]byte) (deliver.Keys, error)
		want            string
		same, different []deliver.Recipient
	}{
		"per client": {
			deliver.DerivedKeys, ofAcme,
			[]deliver.Recipient{{Client: "acme"}, to("acme", "e1", "https://example.org")},
			[]deliver.Recipient{to("globex", "", "https://example.com/a"), {Client: "acme2"}, {}},
		},
		"per client and origin": {
			deliver.DerivedOriginKeys, ofVendor,
			[]deliver.Recipient{to("acme", "e1", "https://example.com/b?c"), to("acme", "", "HTTPS://Example.COM:443")},
			[]deliver.Recipient{
				to("globex", "", "https://example.com/a"), to("acme", "", "http://example.com/a"), to("acme", "", "https://example.com:8443/a"),
				to("acme", "", "https://www.example.com/a"), to("acme", "", "http://[2001:db8::1]:8080"), to("", "", "https://example.com/a"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			keysOf := func(to deliver.Recipient, masters ...[]byte) (texts []string) {
				t.Helper()
				derived, err := tt.derive(masters...)
				if err != nil {
					t.Fatal(err)
				}
				keys, err := derived.Keys(t.Context(), to)
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range keys {
					texts = append(texts, key.Reveal())
				}
				return texts
			}
			if got := keysOf(recipient, first); len(got) != 1 || got[0] != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			for _, to := range tt.same {
				if got := keysOf(to, first); len(got) != 1 || got[0] != tt.want {
					t.Errorf("%+v: got %q, want %q", to, got, tt.want)
				}
			}
			seen := map[string]bool{ofAcme: true, ofVendor: true}
			for _, to := range tt.different {
				if got := keysOf(to, first); len(got) != 1 || seen[got[0]] {
					t.Errorf("%+v: got %q", to, got)
				} else {
					seen[got[0]] = true
				}
			}
			if got := keysOf(recipient, second, first); len(got) != 2 || got[0] == got[1] || got[1] != tt.want {
				t.Errorf("a new master does not keep the key of the old one: %q", got)
			}
			for _, masters := range [][][]byte{nil, {nil}, {first[:31]}, {first, second[:31]}, {first, first, first, first, first}} {
				if _, err := tt.derive(masters...); err == nil {
					t.Errorf("%d masters, the last one too short or too many, are accepted", len(masters))
				}
			}
		})
	}
	origins, err := deliver.DerivedOriginKeys(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"", "ftp://example.com", "https://user@example.com"} {
		if keys, err := origins.Keys(t.Context(), to("acme", "", url)); len(keys) != 0 || err != nil {
			t.Errorf("%q: %d keys, %v", url, len(keys), err)
		}
	}
}

// TestRecipient: Keys gets to know whose webhook is called, for notifications, tests and
// challenges. The entity names an override, and is "" for the base.
func TestRecipient(t *testing.T) {
	r := newReceiver(t, false, status(http.StatusNoContent))
	st := configured(t, r.URL+"/base")
	hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("own"), egress.NewURL(r.URL+"/own")))
	var got []string
	record := keysFunc(func(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
		got = append(got, fmt.Sprintf("%s %q %s %v", to.Client, to.Entity, strings.TrimPrefix(to.Webhook.URL.Reveal(), r.URL), to.Webhook.Source))
		return []deliver.Key{mustParse(t, vectorKey)}, nil
	})
	s := newSender(t, st, record, nil)
	s.Send(t.Context(), "acme", "e1", message)
	s.Send(t.Context(), "acme", "own", message)
	s.Test(t.Context(), "acme", "", message)
	attempt, _ := s.Begin(t.Context(), "acme", "e2", message)
	attempt.Send(t.Context())
	prober, err := policy().Prober(&egress.ProberOptions{HTTPProbe: newChallenge(t, record)})
	if err != nil {
		t.Fatal(err)
	}
	_ = prober.Probe(t.Context(), "acme", egress.NewURL(r.URL+"/new"))
	want := []string{`acme "" /base base`, `acme "own" /own override`, `acme "" /base base`, `acme "" /base base`, `acme "" /new none`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestVendors: a vendor that gets notifications of a client can't forge some to another vendor
// of the same client, nor agree to a challenge for it.
func TestVendors(t *testing.T) {
	first, second := newReceiver(t, false, status(http.StatusNoContent)), newReceiver(t, false, status(http.StatusNoContent))
	st := configured(t, first.URL+"/base")
	hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("own"), egress.NewURL(second.URL+"/own")))
	derived, err := deliver.DerivedOriginKeys(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	keyOf := func(url string) deliver.Key {
		t.Helper()
		keys, err := derived.Keys(t.Context(), deliver.Recipient{Client: "acme", Webhook: webhookcfg.Webhook{URL: egress.NewURL(url)}})
		if err != nil || len(keys) != 1 {
			t.Fatal(keys, err)
		}
		return keys[0]
	}
	s := newSender(t, st, derived, nil)
	check(t, "the base", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	check(t, "the override", s.Send(t.Context(), "acme", "own", message), deliver.Delivered, "")
	got := map[*receiver]request{first: first.received()[0], second: second.received()[0]}
	for _, verifier := range []*receiver{first, second} {
		for sentTo, request := range got {
			if isOwn := sentTo == verifier; verify(request, keyOf(verifier.URL)) != isOwn {
				t.Errorf("the message to %s, verified by %s: %v", sentTo.URL, verifier.URL, !isOwn)
			}
		}
	}
	for _, of := range []*receiver{first, second} {
		vendor, _ := newChallenged(t, consent(keyOf(of.URL)))
		prober, err := policy().Prober(&egress.ProberOptions{HTTPProbe: newChallenge(t, derived)})
		if err != nil {
			t.Fatal(err)
		}
		if prober.Probe(t.Context(), "acme", egress.NewURL(vendor.URL)) == nil {
			t.Error("a vendor agreed with the key of another")
		}
	}
	var own deliver.Key
	vendor, _ := newChallenged(t, func(w http.ResponseWriter, r request) { consent(own)(w, r) })
	own = keyOf(vendor.URL)
	prober, err := policy().Prober(&egress.ProberOptions{HTTPProbe: newChallenge(t, derived)})
	if err != nil {
		t.Fatal(err)
	}
	if err := prober.Probe(t.Context(), "acme", egress.NewURL(vendor.URL+"/in")); err != nil {
		t.Errorf("a vendor with its own key: %v", err)
	}
}

func mustParse(t *testing.T, text string) deliver.Key {
	t.Helper()
	key, err := deliver.ParseKey(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return key
}

// TestSigningKey: the page shows the first key of the webhook that the person looks at. Before
// there's a webhook, that can be none.
func TestSigningKey(t *testing.T) {
	first, second := deliver.GenerateKey(), deliver.GenerateKey()
	base := webhookcfg.Webhook{URL: egress.NewURL("https://example.com"), Source: webhookcfg.SourceBase}
	own := webhookcfg.Webhook{URL: egress.NewURL("https://example.org"), Source: webhookcfg.SourceOverride}
	byWebhook := keysFunc(func(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
		return map[string][]deliver.Key{"": {first, second}, "own": {second, first}}[to.Entity], nil
	})
	for _, tt := range []struct {
		keys   deliver.Keys
		entity string
		hook   webhookcfg.Webhook
		want   string
		fails  bool
	}{
		{byWebhook, "", base, first.Reveal(), false},
		{byWebhook, "e1", base, first.Reveal(), false},
		{byWebhook, "own", own, second.Reveal(), false},
		{byWebhook, "e1", own, "", true},
		{keyring{first}, "e1", webhookcfg.Webhook{}, first.Reveal(), false},
		{keyring{}, "e1", webhookcfg.Webhook{}, "", false},
		{keyring{}, "e1", base, "", true},
		{keyring{deliver.Key{}}, "e1", base, "", true},
		{keysFunc(func(context.Context, deliver.Recipient) ([]deliver.Key, error) { return nil, errPanic }), "", webhookcfg.Webhook{}, "", true},
	} {
		if got, err := deliver.SigningKey(tt.keys)(t.Context(), "acme", tt.entity, tt.hook); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%T %q %v: got %q, %v", tt.keys, tt.entity, tt.hook, got, err)
		}
	}
}
