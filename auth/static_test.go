package auth_test

import (
	"context"
	"errors"
	"fmt"
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

func secrets(texts ...string) (secrets []auth.Secret) {
	for _, text := range texts {
		secrets = append(secrets, auth.NewSecret(text))
	}
	return secrets
}

func TestStatic(t *testing.T) {
	v, err := auth.NewStatic(
		auth.Credential{ID: "spaced", Secrets: secrets("open sesame £££££")},
		auth.Credential{ID: "rotating", Secrets: secrets(long("old"), long("new"))},
		auth.Credential{ID: "acme-2025", Secrets: secrets(long("s")), Owner: "acme"},
		auth.Credential{ID: "acme-2026", Secrets: secrets(long("s")), Owner: "acme"},
		auth.Credential{ID: "gone", Secrets: secrets(long("s")), Disabled: true},
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
	good := auth.Credential{ID: "good", Secrets: secrets(long("hush-1"))}
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
		{"empty secret", auth.Credential{ID: "c", Secrets: secrets("")}},
		{"one secret empty", auth.Credential{ID: "c", Secrets: secrets(long("hush-2"), "")}},
		{"same secret twice", auth.Credential{ID: "c", Secrets: secrets(long("hush-2"), long("hush-2"))}},
		{"control character", auth.Credential{ID: "c", Secrets: secrets(long("hush-2\n"))}},
		{"DEL", auth.Credential{ID: "c", Secrets: secrets(long("hush-2\x7f"))}},
		{"15 characters", auth.Credential{ID: "c", Secrets: secrets("hush-2345678901")}},
		{"invalid UTF-8", auth.Credential{ID: "c", Secrets: secrets(long("hush-2\xff"))}},
		{"too many secrets", auth.Credential{ID: "c", Secrets: secrets(nine...)}},
		{"same id", good},
		{"same id, disabled", auth.Credential{ID: "good", Disabled: true}},
		{"no id", auth.Credential{Secrets: secrets(long("hush-2"))}},
		{"id with colon", auth.Credential{ID: "a:b", Secrets: secrets(long("hush-2"))}},
		{"id with space", auth.Credential{ID: "a b", Secrets: secrets(long("hush-2"))}},
		{"id beyond ASCII", auth.Credential{ID: "ä", Secrets: secrets(long("hush-2"))}},
		{"id like a comment", auth.Credential{ID: "#a", Secrets: secrets(long("hush-2"))}},
		{"long id", auth.Credential{ID: strings.Repeat("a", 129), Secrets: secrets(long("hush-2"))}},
		{"owner with colon", auth.Credential{ID: "c", Owner: "a:b", Secrets: secrets(long("hush-2"))}},
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

func TestFunc(t *testing.T) {
	boom := errors.New("boom")
	v := auth.Func(func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		return webhookcfg.Client{ID: id + secret}, boom
	})
	client, err := v.Verify(t.Context(), "a", "b")
	if client.ID != "ab" || !errors.Is(err, boom) {
		t.Errorf("Verify returned %v, %v, want those of the function", client, err)
	}
}
