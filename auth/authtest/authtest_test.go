package authtest_test

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// right is the simplest verifier that meets all requirements. Each test breaks it in one
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

// long is a secret that many hashes and columns cut.
var long = strings.Repeat("0123456789-abcdefghij", 15)

func harness() (authtest.Harness, right) {
	r := right{
		secrets: map[string][]string{
			"rotating": {"old-secret-of-a-client", "new-secret-of-a-client"}, "human": {"correct horse battery"},
			"long": {strings.Repeat("l", 100)}, "gone": {"gone-secret-of-a-client"}, "4711": {long}, "jess.doe@web-shop.example": {"jess's secret of 2026"},
		},
		owners:   map[string]string{"human": "rotating"},
		disabled: map[string]bool{"gone": true},
		work:     new(atomic.Int64),
	}
	return authtest.Harness{
		Verifier: r,
		SignsIn: []authtest.Credential{
			{ID: "rotating", Secret: "old-secret-of-a-client", Owner: "rotating"},
			{ID: "rotating", Secret: "new-secret-of-a-client", Owner: "rotating"},
			{ID: "human", Secret: "correct horse battery", Owner: "rotating"},
			{ID: "long", Secret: strings.Repeat("l", 100), Owner: "long"},
			{ID: "4711", Secret: long, Owner: "4711"},
			{ID: "jess.doe@web-shop.example", Secret: "jess's secret of 2026", Owner: "jess.doe@web-shop.example"},
		},
		Refused: []authtest.Credential{
			{ID: "gone", Secret: "gone-secret-of-a-client"},
			{ID: "rotating", Secret: "retired-secret-of-a-client"},
		},
		Work: r.work.Load,
		Unavailable: auth.Func(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, errors.New("the server is down")
		}),
	}, r
}

func TestRightVerifier(t *testing.T) {
	h, _ := harness()
	authtest.Run(t, h)
}

func TestOwnVerifiers(t *testing.T) {
	h, r := harness()
	h.Work = nil
	static, err := auth.NewStatic(
		auth.Credential{ID: "rotating", Secrets: r.hidden("rotating")},
		auth.Credential{ID: "human", Secrets: r.hidden("human"), Owner: "rotating"},
		auth.Credential{ID: "long", Secrets: r.hidden("long")},
		auth.Credential{ID: "4711", Secrets: r.hidden("4711")},
		auth.Credential{ID: "jess.doe@web-shop.example", Secrets: r.hidden("jess.doe@web-shop.example")},
		auth.Credential{ID: "gone", Secrets: r.hidden("gone"), Disabled: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	cached, err := auth.NewCache(static, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlimited := auth.Rate{Burst: 1_000_000, Every: time.Second}
	throttled, err := auth.NewThrottle(static, &auth.ThrottleOptions{
		PerClientAndSource: unlimited, PerSource: unlimited, PerClient: unlimited,
	})
	if err != nil {
		t.Fatal(err)
	}
	fromSource := auth.Func(func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		return throttled.Verify(auth.ContextWithSource(ctx, netip.MustParseAddr("192.0.2.1")), id, secret)
	})
	for name, v := range map[string]webhookcfg.CredentialVerifier{
		"Static": static, "Cache": cached, "File": credentialFile(t, r),
		"Throttle": fromSource, "Func": auth.Func(r.Verify),
	} {
		t.Run(name, func(t *testing.T) {
			h.Verifier = v
			authtest.Run(t, h)
		})
	}
}

// hidden returns the secrets of an id.
func (r right) hidden(id string) (secrets []auth.Secret) {
	for _, text := range r.secrets[id] {
		secrets = append(secrets, auth.NewSecret(text))
	}
	return secrets
}

func credentialFile(t *testing.T, r right) *auth.File {
	t.Helper()
	fields := map[string]string{"human": " owner=rotating", "gone": " disabled"}
	lines := []string{"begin"}
	for id, secrets := range r.secrets {
		for _, secret := range secrets {
			line, err := auth.SHA256Line(id, auth.NewSecret(secret))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line+fields[id])
		}
	}
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(strings.Join(append(lines, "end", ""), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := auth.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestAbsent: without a part of the harness, the case that needs it says so, and the others run.
func TestAbsent(t *testing.T) {
	for absent, without := range map[string]func(*authtest.Harness){
		sameWork:     func(h *authtest.Harness) { h.Work = nil },
		refused:      func(h *authtest.Harness) { h.Refused = nil },
		outage:       func(h *authtest.Harness) { h.Unavailable = nil },
		wholeSecrets: func(h *authtest.Harness) { h.SignsIn = h.SignsIn[:3] },
	} {
		h, _ := harness()
		without(&h)
		for _, c := range authtest.Cases() {
			want := error(nil)
			if c.Name == absent {
				want = authtest.ErrAbsent
			}
			if err := c.Check(t.Context(), h); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", c.Name, err, want)
			}
		}
	}
}

// TestOneShortCredential: one credential is enough, even a short one. The suite then presents
// no empty id or secret, since the handler never passes these to a verifier.
func TestOneShortCredential(t *testing.T) {
	h := authtest.Harness{
		SignsIn: []authtest.Credential{{ID: "a", Secret: "b", Owner: "a"}},
		Verifier: auth.Func(func(_ context.Context, id, secret string) (webhookcfg.Client, error) {
			switch {
			case id == "" || secret == "":
				return webhookcfg.Client{}, errors.New("empty")
			case id != "a" || secret != "b":
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return webhookcfg.Client{ID: id}, nil
		}),
	}
	for _, c := range authtest.Cases() {
		if err := c.Check(t.Context(), h); err != nil && !errors.Is(err, authtest.ErrAbsent) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// TestPanics: a case says that a verifier panicked, not that it signed somebody in.
func TestPanics(t *testing.T) {
	h, _ := harness()
	h.Verifier = auth.Func(func(context.Context, string, string) (webhookcfg.Client, error) { panic("broken") })
	for _, name := range []string{"refuses wrong secrets", "gives no wrong verdict after the context has ended"} {
		if err := caseNamed(t, name).Check(t.Context(), h); err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("%s: %v", name, err)
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
