package authtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// right is the simplest verifier that satisfies the contract. Each test breaks it in one
// place.
type right struct {
	secrets  map[string][]string
	owners   map[string]string
	disabled map[string]bool
	work     *atomic.Int64
}

func (r right) Verify(_ context.Context, id, secret string) (webhookcfg.Client, error) {
	r.work.Add(10)
	if r.disabled[id] || !slices.Contains(r.secrets[id], secret) {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: cmp.Or(r.owners[id], id)}, nil
}

func harness() (authtest.Harness, right) {
	r := right{
		secrets: map[string][]string{
			"rotating": {"old-secret", "new-secret"}, "human": {"correct horse"},
			"long": {strings.Repeat("l", 100)}, "gone": {"gone-secret"},
		},
		owners:   map[string]string{"human": "rotating"},
		disabled: map[string]bool{"gone": true},
		work:     new(atomic.Int64),
	}
	return authtest.Harness{
		Verifier: r,
		SignsIn: []authtest.Credential{
			{ID: "rotating", Secret: "old-secret", Owner: "rotating"},
			{ID: "rotating", Secret: "new-secret", Owner: "rotating"},
			{ID: "human", Secret: "correct horse", Owner: "rotating"},
			{ID: "long", Secret: strings.Repeat("l", 100), Owner: "long"},
		},
		Refused: []authtest.Credential{
			{ID: "gone", Secret: "gone-secret"},
			{ID: "rotating", Secret: "retired-secret"},
		},
		Work: r.work.Load,
	}, r
}

func TestRightVerifier(t *testing.T) {
	h, _ := harness()
	authtest.Run(t, h)
}

func TestOwnVerifiers(t *testing.T) {
	h, r := harness()
	h.Work = nil
	static, err := auth.Static(
		auth.Credential{ID: "rotating", Secrets: r.secrets["rotating"]},
		auth.Credential{ID: "human", Secrets: r.secrets["human"], Owner: "rotating"},
		auth.Credential{ID: "long", Secrets: r.secrets["long"]},
		auth.Credential{ID: "gone", Secrets: r.secrets["gone"], Disabled: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	cached, err := auth.Cache(static, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]webhookcfg.CredentialVerifier{
		"Static": static, "Cache": cached, "File": credentialFile(t, r),
	} {
		t.Run(name, func(t *testing.T) {
			h.Verifier = v
			authtest.Run(t, h)
		})
	}
}

func credentialFile(t *testing.T, r right) *auth.File {
	t.Helper()
	lines := []string{"human:owner:rotating", "gone:disabled"}
	for id, secrets := range r.secrets {
		for _, secret := range secrets {
			line, err := auth.SHA256Line(id, secret)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
	}
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := auth.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestBrokenVerifiers: each case detects a verifier that is broken in that one respect.
func TestBrokenVerifiers(t *testing.T) {
	type verify = func(ctx context.Context, id, secret string) (webhookcfg.Client, error)
	signIn := func(id string) (webhookcfg.Client, error) { return webhookcfg.Client{ID: id}, nil }
	_, r := harness()
	tests := []struct {
		name   string
		caught string // name of the case
		verify verify
	}{
		{"refuses every client", "signs in the owner", func(ctx context.Context, _, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, "unknown", secret)
		}},
		{"forgets the older secret", "signs in the owner", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, id, strings.Replace(secret, "old", "", 1))
		}},
		{"signs in the id, not its owner", "signs in the owner", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			_, err := r.Verify(ctx, id, secret)
			return webhookcfg.Client{ID: id}, err
		}},
		{"returns no client", "signs in the owner", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			_, err := r.Verify(ctx, id, secret)
			return webhookcfg.Client{}, err
		}},
		{"compares a prefix", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			for _, stored := range r.secrets[id] {
				if strings.HasPrefix(stored, secret) {
					return r.Verify(ctx, id, stored)
				}
			}
			return r.Verify(ctx, id, secret)
		}},
		{"truncates secrets at 72 bytes", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if len(secret) > 72 && secret[:72] == strings.Repeat("l", 72) {
				secret = strings.Repeat("l", 100)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"ignores letter case", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, id, strings.ToLower(secret))
		}},
		{"returns another error for a wrong secret", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil && r.secrets[id] != nil {
				err = errors.New("wrong")
			}
			return client, err
		}},
		{"returns the client that it refuses", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			_, err := r.Verify(ctx, id, secret)
			return webhookcfg.Client{ID: cmp.Or(r.owners[id], id)}, err
		}},
		{"signs in unknown clients", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if r.secrets[id] == nil {
				return signIn(id)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"returns another error for an unknown client", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if r.secrets[id] == nil {
				return webhookcfg.Client{}, errors.New("unknown")
			}
			return r.Verify(ctx, id, secret)
		}},
		{"signs in disabled clients", "refuses disabled clients and retired secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if r.disabled[id] && slices.Contains(r.secrets[id], secret) {
				return signIn(id)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"ignores the id", "keeps clients apart", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			for other := range r.secrets {
				if client, err := r.Verify(ctx, other, secret); err == nil && r.secrets[id] != nil {
					return client, nil
				}
			}
			return r.Verify(ctx, id, secret)
		}},
		{"works less for unknown clients", "does the same work for every refusal", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if r.secrets[id] == nil {
				r.work.Add(-5)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"works less for disabled clients", "does the same work for every refusal", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if r.disabled[id] {
				r.work.Add(-5)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"does not count", "does the same work for every refusal", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			r.work.Add(-10)
			return r.Verify(ctx, id, secret)
		}},
		{"quotes the secret", "errors contain no secret", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil {
				err = fmt.Errorf("%w: %s with %s", err, id, secret)
			}
			return client, err
		}},
		{"quotes the secret after the deadline", "errors contain no secret", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if err := ctx.Err(); err != nil {
				return webhookcfg.Client{}, fmt.Errorf("query(%q, %q): %w", id, secret, err)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"refuses after the deadline", "gives no wrong verdict after the context has ended", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if ctx.Err() != nil {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return r.Verify(ctx, id, secret)
		}},
		{"signs in every client after the deadline", "gives no wrong verdict after the context has ended", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if ctx.Err() != nil {
				return signIn(id)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"refuses concurrent callers", "is safe for concurrent use", refusesConcurrent(r)},
	}
	caught := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := harness()
			h.Verifier, h.Work = auth.Func(tt.verify), r.work.Load
			c := caseNamed(t, tt.caught)
			caught[tt.caught] = true
			err := c.Check(t.Context(), h)
			if err == nil {
				t.Fatal("not caught")
			}
			for _, credential := range h.SignsIn {
				if strings.Contains(err.Error(), credential.Secret) {
					t.Errorf("the case quotes a secret: %v", err)
				}
			}
		})
	}
	for _, c := range authtest.Cases() {
		if !caught[c.Name] {
			t.Errorf("no broken verifier is caught by %q", c.Name)
		}
	}
}

// refusesConcurrent waits for a second caller and then refuses all.
func refusesConcurrent(r right) func(context.Context, string, string) (webhookcfg.Client, error) {
	var meeting atomic.Int64
	met := make(chan struct{})
	return func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		if meeting.Add(1) == 2 {
			close(met)
		}
		select {
		case <-met:
			return r.Verify(ctx, "unknown", secret)
		case <-ctx.Done():
			return webhookcfg.Client{}, ctx.Err()
		}
	}
}

func caseNamed(t *testing.T, name string) authtest.Case {
	t.Helper()
	for _, c := range authtest.Cases() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no case %q", name)
	return authtest.Case{}
}
