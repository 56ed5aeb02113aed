package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

func TestStatic(t *testing.T) {
	v, err := auth.Static(
		// The examples of RFC 7617 §2 and §2.1, decoded from base64.
		auth.Credential{ID: "Aladdin", Secrets: []string{"open sesame"}},
		auth.Credential{ID: "test", Secrets: []string{"123£"}},

		auth.Credential{ID: "rotating", Secrets: []string{"old", "new"}},
		auth.Credential{ID: "acme-2025", Secrets: []string{"s"}, Owner: "acme"},
		auth.Credential{ID: "acme-2026", Secrets: []string{"s"}, Owner: "acme"},
		auth.Credential{ID: "gone", Secrets: []string{"s"}, Disabled: true},
		auth.Credential{ID: "reserved", Disabled: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	mustSignIn(t, v, "Aladdin", "open sesame", "Aladdin")
	mustSignIn(t, v, "test", "123\xc2\xa3", "test")
	mustSignIn(t, v, "rotating", "old", "rotating")
	mustSignIn(t, v, "rotating", "new", "rotating")
	mustSignIn(t, v, "acme-2025", "s", "acme")
	mustSignIn(t, v, "acme-2026", "s", "acme")

	mustRefuse(t, v, "Aladdin", "open sesame ")
	mustRefuse(t, v, "aladdin", "open sesame")
	mustRefuse(t, v, "test", "123\xa3") // the same text in ISO 8859-1
	mustRefuse(t, v, "rotating", "")
	mustRefuse(t, v, "acme", "s")
	mustRefuse(t, v, "gone", "s")
	mustRefuse(t, v, "reserved", "s")
	mustRefuse(t, v, "unknown", "s")
}

func TestStaticRefuses(t *testing.T) {
	good := auth.Credential{ID: "good", Secrets: []string{"hush-1"}}
	tests := []struct {
		name   string
		second auth.Credential
	}{
		{"empty", auth.Credential{}},
		{"no secret", auth.Credential{ID: "c"}},
		{"empty secret", auth.Credential{ID: "c", Secrets: []string{""}}},
		{"one secret empty", auth.Credential{ID: "c", Secrets: []string{"hush-2", ""}}},
		{"same secret twice", auth.Credential{ID: "c", Secrets: []string{"hush-2", "hush-2"}}},
		{"control character", auth.Credential{ID: "c", Secrets: []string{"hush-2\n"}}},
		{"invalid UTF-8", auth.Credential{ID: "c", Secrets: []string{"hush-2\xff"}}},
		{"too many secrets", auth.Credential{ID: "c", Secrets: strings.Split("123456789", "")}},
		{"same id", good},
		{"same id, disabled", auth.Credential{ID: "good", Disabled: true}},
		{"no id", auth.Credential{Secrets: []string{"hush-2"}}},
		{"id with colon", auth.Credential{ID: "a:b", Secrets: []string{"hush-2"}}},
		{"id with space", auth.Credential{ID: "a b", Secrets: []string{"hush-2"}}},
		{"id beyond ASCII", auth.Credential{ID: "ä", Secrets: []string{"hush-2"}}},
		{"id like a comment", auth.Credential{ID: "#a", Secrets: []string{"hush-2"}}},
		{"long id", auth.Credential{ID: strings.Repeat("a", 129), Secrets: []string{"hush-2"}}},
		{"owner with colon", auth.Credential{ID: "c", Owner: "a:b", Secrets: []string{"hush-2"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := auth.Static(good, tt.second)
			if err == nil || v != nil {
				t.Fatalf("got %v, %v, want an error", v, err)
			}
			if !strings.Contains(err.Error(), "credential 2") || strings.Contains(err.Error(), "hush") {
				t.Errorf("the error is %q", err)
			}
		})
	}
	if _, err := auth.Static(); err == nil {
		t.Error("accepted no credentials")
	}
}

func TestCredentialHidesSecrets(t *testing.T) {
	c := auth.Credential{ID: "acme", Secrets: []string{"hush"}}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "c", c, "all", []auth.Credential{c})
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "c", []auth.Credential{c})
	printed := fmt.Sprintf("%v %+v %#v %s %q %x %v", c, c, c, &c, c, c, struct{ C []auth.Credential }{[]auth.Credential{c}})
	for _, text := range []string{logged.String(), printed} {
		if strings.Contains(text, "hush") || strings.Contains(text, "68757368") || !strings.Contains(text, "acme") {
			t.Errorf("got %s", text)
		}
	}
	nested, err := json.Marshal([]auth.Credential{c})
	if err != nil || strings.Contains(string(nested), "hush") {
		t.Errorf("got %s, %v", nested, err)
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

func TestNewSecret(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"
	seen := map[string]bool{}
	for range 1000 {
		s := auth.NewSecret()
		// 22 characters of at least 64 choices each are 132 bits.
		if len(s) < 22 || strings.Trim(s, alphabet) != "" || strings.ContainsAny(s[:1], "-._") || seen[s] {
			t.Fatalf("got %q", s)
		}
		seen[s] = true
	}
}
