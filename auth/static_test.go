package auth_test

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// mustSignIn and mustRefuse assert the result of one check.
func mustSignIn(t *testing.T, v webhookcfg.CredentialVerifier, id, secret, owner string) {
	t.Helper()
	client, err := v.Verify(t.Context(), id, secret)
	if err != nil || client.ID != owner {
		t.Errorf("%s: got %q, %v, want %q", id, client.ID, err, owner)
	}
}

func mustRefuse(t *testing.T, v webhookcfg.CredentialVerifier, id, secret string) {
	t.Helper()
	client, err := v.Verify(t.Context(), id, secret)
	if !errors.Is(err, webhookcfg.ErrInvalidCredentials) || client.ID != "" {
		t.Errorf("%s: got %q, %v, want a refusal", id, client.ID, err)
	}
}

// long returns a secret of the length that [auth.NewStatic] requires.
func long(secret string) string { return secret + ":0123456789abcdef" }

func TestStatic(t *testing.T) {
	v, err := auth.NewStatic(
		auth.Credential{ID: "spaced", Secrets: auth.Secrets("open sesame £££££")},
		auth.Credential{ID: "rotating", Secrets: auth.Secrets(long("old"), long("new"))},
		auth.Credential{ID: "acme-2025", Secrets: auth.Secrets(long("s")), Owner: "acme"},
		auth.Credential{ID: "acme-2026", Secrets: auth.Secrets(long("s")), Owner: "acme"},
		auth.Credential{ID: "gone", Secrets: auth.Secrets(long("s")), Disabled: true},
		auth.Credential{ID: "reserved", Disabled: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	mustSignIn(t, v, "spaced", "open sesame £££££", "spaced")
	mustSignIn(t, v, "rotating", long("old"), "rotating")
	mustSignIn(t, v, "rotating", long("new"), "rotating")
	mustSignIn(t, v, "acme-2025", long("s"), "acme")
	mustSignIn(t, v, "acme-2026", long("s"), "acme")

	mustRefuse(t, v, "spaced", "open sesame £££££ ")
	mustRefuse(t, v, "Spaced", "open sesame £££££")
	mustRefuse(t, v, "spaced", "open sesame \xa3\xa3\xa3\xa3\xa3") // the same text in ISO 8859-1
	mustRefuse(t, v, "rotating", "")
	mustRefuse(t, v, "acme", long("s"))
	mustRefuse(t, v, "gone", long("s"))
	mustRefuse(t, v, "reserved", long("s"))
	mustRefuse(t, v, "unknown", long("s"))
}

func TestStaticRefuses(t *testing.T) {
	good := auth.Credential{ID: "good", Secrets: auth.Secrets(long("hush-1"))}
	nine := make([]string, 9)
	for i := range nine {
		nine[i] = long(fmt.Sprint("hush-", i))
	}
	tests := []struct {
		name   string
		second auth.Credential
	}{
		{"empty", auth.Credential{}},
		{"no secret", auth.Credential{ID: "c"}},
		{"empty secret", auth.Credential{ID: "c", Secrets: auth.Secrets("")}},
		{"one secret empty", auth.Credential{ID: "c", Secrets: auth.Secrets(long("hush-2"), "")}},
		{"same secret twice", auth.Credential{ID: "c", Secrets: auth.Secrets(long("hush-2"), long("hush-2"))}},
		{"control character", auth.Credential{ID: "c", Secrets: auth.Secrets(long("hush-2\n"))}},
		{"DEL", auth.Credential{ID: "c", Secrets: auth.Secrets(long("hush-2\x7f"))}},
		{"15 characters", auth.Credential{ID: "c", Secrets: auth.Secrets("hush-2345678901")}},
		{"invalid UTF-8", auth.Credential{ID: "c", Secrets: auth.Secrets(long("hush-2\xff"))}},
		{"too many secrets", auth.Credential{ID: "c", Secrets: auth.Secrets(nine...)}},
		{"same id", good},
		{"same id, disabled", auth.Credential{ID: "good", Disabled: true}},
		{"no id", auth.Credential{Secrets: auth.Secrets(long("hush-2"))}},
		{"id with colon", auth.Credential{ID: "a:b", Secrets: auth.Secrets(long("hush-2"))}},
		{"id with space", auth.Credential{ID: "a b", Secrets: auth.Secrets(long("hush-2"))}},
		{"id beyond ASCII", auth.Credential{ID: "ä", Secrets: auth.Secrets(long("hush-2"))}},
		{"id like a comment", auth.Credential{ID: "#a", Secrets: auth.Secrets(long("hush-2"))}},
		{"long id", auth.Credential{ID: strings.Repeat("a", 129), Secrets: auth.Secrets(long("hush-2"))}},
		{"owner with colon", auth.Credential{ID: "c", Owner: "a:b", Secrets: auth.Secrets(long("hush-2"))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := auth.NewStatic(good, tt.second)
			if err == nil || v != nil {
				t.Fatalf("got %v, %v, want an error", v, err)
			}
			if !strings.Contains(err.Error(), "credential 2") || strings.Contains(err.Error(), "hush") {
				t.Errorf("the error is %q", err)
			}
		})
	}
	if _, err := auth.NewStatic(); err == nil {
		t.Error("accepted no credentials")
	}
}

// TestCredentialHidesSecrets: also as an unexported or embedded field, where fmt calls no
// method.
func TestCredentialHidesSecrets(t *testing.T) {
	type Embedding struct {
		auth.Credential
		Name string
	}
	type unexported struct {
		name string
		one  auth.Credential
		all  []auth.Credential
		ptr  *auth.Credential
		any  any
	}
	secret := long("hush")
	c := auth.Credential{ID: "acme", Secrets: auth.Secrets(secret, secret+"2")}
	values := []any{
		c, &c,
		[]auth.Credential{c},
		map[string]any{"c": c},
		struct{ C *auth.Credential }{&c},
		Embedding{c, "n"},
		&Embedding{c, "n"},
		unexported{"n", c, []auth.Credential{c}, &c, c},
		&unexported{one: c},
	}
	var out strings.Builder
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(handler).Info("m", "value", value)
		}
		// An error means that the encoder refuses the value.
		encoded, _ := json.Marshal(value)
		out.Write(encoded)
		_ = xml.NewEncoder(&out).Encode(value)
		_ = gob.NewEncoder(&out).Encode(value)
		dump(&out, reflect.ValueOf(value))
	}
	for _, form := range []string{"%s", "%x", "%X", "%q", "%d"} {
		if text := fmt.Sprintf(form, []byte("hush")); strings.Contains(out.String(), strings.Trim(text, "[]")) {
			t.Errorf("the output holds the secret as %s", text)
		}
	}
	if printed := fmt.Sprintf("%v %s %+v", c, &c, []auth.Credential{c}); printed != "acme acme [acme]" {
		t.Errorf("printed as %s", printed)
	}
}

// dump writes all that reflection reaches, also in unexported fields and behind pointers.
func dump(w io.Writer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dump(w, v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			dump(w, field)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			dump(w, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			dump(w, v.MapIndex(key))
		}
	case reflect.String:
		fmt.Fprintln(w, v.String())
	}
}

func TestFunc(t *testing.T) {
	boom := errors.New("boom")
	v := auth.Func(func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		return webhookcfg.Client{ID: id + secret}, boom
	})
	client, err := v.Verify(t.Context(), "a", "b")
	if client.ID != "ab" || !errors.Is(err, boom) {
		t.Errorf("got %v, %v", client, err)
	}
}

func TestGenerateSecret(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	seen, first := map[string]bool{}, auth.GenerateSecret()
	var varies [32]bool
	for range 1000 {
		s := auth.GenerateSecret()
		// 32 characters of 64 choices each are 192 bits.
		if len(s) != 32 || strings.Trim(s, alphabet) != "" || strings.ContainsAny(s[:1], "-_") || seen[s] {
			t.Fatalf("got %q", s)
		}
		seen[s] = true
		for i := range varies {
			varies[i] = varies[i] || s[i] != first[i]
		}
	}
	if slices.Contains(varies[:], false) {
		t.Errorf("some characters are constant: %v", varies)
	}
}
