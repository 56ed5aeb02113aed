package deliver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg/deliver"
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

func TestDerived(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	keysOf := func(client string, masters ...[]byte) (texts []string) {
		t.Helper()
		derived, err := deliver.DerivedKeys(masters...)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := derived.Keys(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			texts = append(texts, key.Reveal())
		}
		return texts
	}
	// Computed with an implementation of RFC 5869 in Python. The keys must never
	// change: clients have them.
	if got, want := keysOf("acme", first), "whsec_2osmWVNcykErBstABR/U/9zT9bnkPlZwReR7fllAhZc="; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := keysOf("acme", second, first); len(got) != 2 || got[0] == got[1] || got[1] != keysOf("acme", first)[0] {
		t.Errorf("a new master does not keep the key of the old one: %q", got)
	}
	if keysOf("acme", first)[0] == keysOf("globex", first)[0] {
		t.Error("two clients have the same key")
	}
	for _, masters := range [][][]byte{nil, {nil}, {first[:31]}, {first, second[:31]}, {first, first, first, first, first}} {
		if _, err := deliver.DerivedKeys(masters...); err == nil {
			t.Errorf("%d masters, the last one too short or too many, are accepted", len(masters))
		}
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
