package auth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
)

// TestCredentialHidesSecrets, also in an unexported or embedded field, where fmt calls no
// method.
func TestCredentialHidesSecrets(t *testing.T) {
	type Embedding struct {
		auth.Credential
		Name string
	}
	type unexported struct {
		name   string
		secret auth.Secret
		one    auth.Credential
		all    []auth.Credential
		ptr    *auth.Credential
		any    any
	}
	secret := auth.NewSecret(long("hush"))
	c := auth.Credential{ID: "acme", Secrets: secrets(long("hush"), long("hush2"))}
	values := []any{
		secret, &secret,
		[]auth.Secret{secret},
		struct{ S auth.Secret }{secret},
		fmt.Errorf("no client has %v", secret),
		c, &c,
		[]auth.Credential{c},
		map[string]any{"c": c},
		struct{ C *auth.Credential }{&c},
		Embedding{c, "n"},
		&Embedding{c, "n"},
		unexported{"n", secret, c, []auth.Credential{c}, &c, c},
		&unexported{secret: secret, one: c},
	}
	var out strings.Builder
	for _, value := range values {
		out.WriteString(hooktest.Prints(value))
	}
	for _, form := range []string{"%s", "%x", "%X", "%q", "%d"} {
		if text := strings.Trim(fmt.Sprintf(form, []byte("hush")), "[]"); strings.Contains(out.String(), text) {
			t.Errorf("the output holds the secret as %s", text)
		}
	}
	if printed := fmt.Sprintf("%v|%v|%+v", secret, auth.Secret{}, c); printed != "[secret]||{ID:acme Secrets:[[secret] [secret]] Owner: Disabled:false}" {
		t.Errorf("printed as %s", printed)
	}
}

func TestNewSecret(t *testing.T) {
	for _, text := range []string{"", "a-long-random-secret", "\x00\xff"} {
		if got := auth.NewSecret(text).Reveal(); got != text {
			t.Errorf("NewSecret(%q) reveals %q", text, got)
		}
	}
	if got := auth.NewSecret("").String(); got != "" {
		t.Errorf("the empty text prints as %s, want the zero Secret", got)
	}
}

func TestGenerateSecret(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	seen, first := map[string]bool{}, auth.GenerateSecret().Reveal()
	var varies [32]bool
	for range 1000 {
		s := auth.GenerateSecret().Reveal()
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
