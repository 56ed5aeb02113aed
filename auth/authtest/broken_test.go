package authtest_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestBrokenVerifiers: each case detects a verifier that is broken in just that way.
func TestBrokenVerifiers(t *testing.T) {
	signIn := func(id string) (webhookcfg.Client, error) { return webhookcfg.Client{ID: id}, nil }
	_, r := harness()
	tests := []broken{
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
		{"trims blanks of secrets", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, id, strings.TrimSpace(secret))
		}},
		{"passes quotes in secrets to a query", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if strings.Contains(secret, "' OR '") {
				return signIn(id)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"panics on a secret beyond ASCII", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, id, mustASCII(secret))
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
		{"folds the case of ids", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, strings.ToLower(id), secret)
		}},
		{"trims blanks of ids", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, strings.TrimSpace(id), secret)
		}},
		{"folds full-width letters of ids", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, strings.Map(func(c rune) rune {
				if '\uff01' <= c && c <= '\uff5e' {
					return c - '\uff01' + '!'
				}
				return c
			}, id), secret)
		}},
		{"matches ids with %", "refuses unknown clients", matchesIDs(r, "%")},
		{"matches ids with *", "refuses unknown clients", matchesIDs(r, "*")},
		{"panics on an id beyond ASCII", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			return r.Verify(ctx, mustASCII(id), secret)
		}},
		{"asks only unknown clients to retry later", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if r.secrets[id] == nil {
				err = retryLater{err}
			}
			return client, err
		}},
		{"unescapes ids", "refuses unknown clients", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if plain, err := url.PathUnescape(id); err == nil {
				id = plain
			}
			return r.Verify(ctx, id, secret)
		}},
		{"names the secret after itself", "signs in the owner", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err == nil {
				client.SecretName = secret
			}
			return client, err
		}},
		{"names the secret after its hash", "signs in the owner", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err == nil {
				client.SecretName = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(secret)))
			}
			return client, err
		}},
		{"signs in with the hash of a secret", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			for _, stored := range r.secrets[id] {
				if secret == fmt.Sprintf("%x", sha256.Sum256([]byte(stored))) {
					secret = stored
				}
			}
			return r.Verify(ctx, id, secret)
		}},
		{"cuts secrets at 4 KiB", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if len(secret) > 4096 {
				for _, stored := range r.secrets[id] {
					if strings.HasPrefix(secret, stored) {
						secret = stored
					}
				}
			}
			return r.Verify(ctx, id, secret)
		}},
		{"fails on secrets over 4 KiB", "refuses wrong secrets", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if len(secret) > 4096 {
				return webhookcfg.Client{}, errors.New("too long")
			}
			return r.Verify(ctx, id, secret)
		}},
		{"quotes the stored hash", "errors contain no secret", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil && len(r.secrets[id]) > 0 {
				err = fmt.Errorf("%w: want %x", err, sha256.Sum256([]byte(r.secrets[id][0])))
			}
			return client, err
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
		{"signs in the first client with the last one's secret", "keeps clients apart", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if id == "rotating" && slices.Contains(r.secrets["long"], secret) {
				return signIn(id)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"joins id and secret", "keeps clients apart", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			for known, secrets := range r.secrets {
				for _, stored := range secrets {
					if known+stored == id+secret {
						return r.Verify(ctx, known, stored)
					}
				}
			}
			return r.Verify(ctx, id, secret)
		}},
		{"works less if the first letter is wrong", "does the same work for every refusal", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if id == "long" && secret[0] != 'l' {
				r.work.Add(-1)
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
		{"quotes the credentials in base64", "errors contain no secret", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil {
				err = fmt.Errorf("%w: Basic %s", err, base64.StdEncoding.EncodeToString([]byte(id+":"+secret)))
			}
			return client, err
		}},
		{"quotes the stored secret", "errors contain no secret", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			client, err := r.Verify(ctx, id, secret)
			if err != nil && len(r.secrets[id]) > 0 {
				err = fmt.Errorf("%w: want %s", err, r.secrets[id][0])
			}
			return client, err
		}},
		{"quotes the secret after the deadline", "errors contain no secret", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if err := ctx.Err(); err != nil {
				return webhookcfg.Client{}, fmt.Errorf("query(%q, %q): %w", id, secret, err)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"quotes the right secret after the deadline", "errors contain no secret", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if err := ctx.Err(); err != nil && slices.Contains(r.secrets[id], secret) {
				return webhookcfg.Client{}, fmt.Errorf("signing in with %s: %w", secret, err)
			}
			return r.Verify(ctx, id, secret)
		}},
		{"refuses after the deadline", "gives no wrong verdict after the context has ended", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if ctx.Err() != nil {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return r.Verify(ctx, id, secret)
		}},
		{"refuses if the deadline passes midway", "gives no wrong verdict after the context has ended", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if err := ctx.Err(); err != nil {
				return webhookcfg.Client{}, err
			}
			select {
			case <-ctx.Done():
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			default:
				return r.Verify(ctx, id, secret)
			}
		}},
		{"returns half a second after the deadline", "returns soon after the context has ended", func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
			if ctx.Err() != nil {
				time.Sleep(500 * time.Millisecond)
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
	tests = slices.Concat(tests, brokenDirectories(r), brokenGateways(r), brokenCaches(r), brokenProxies(r))
	caught := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := harness()
			h.Verifier, h.Work = auth.Func(tt.verify), r.work.Load
			c := caseNamed(t, tt.caught)
			caught[tt.caught] = true
			var err error
			synctest.Test(t, func(t *testing.T) {
				err = c.Check(t.Context(), h)
				time.Sleep(time.Minute) // until calls that are late have returned
			})
			if err == nil || errors.Is(err, authtest.ErrAbsent) {
				t.Fatalf("not caught: %v", err)
			}
			for _, credential := range h.SignsIn {
				if strings.Contains(err.Error(), credential.Secret) {
					t.Errorf("the case quotes a secret: %v", err)
				}
			}
		})
	}
	for _, c := range authtest.Cases() {
		if !caught[c.Name] && c.Name != outage { // see TestOutages
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

// matchesIDs treats an id that ends with the wildcard as a pattern.
func matchesIDs(r right, wildcard string) func(context.Context, string, string) (webhookcfg.Client, error) {
	return func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		prefix, found := strings.CutSuffix(id, wildcard)
		for known := range r.secrets {
			if client, err := r.Verify(ctx, known, secret); found && err == nil && strings.HasPrefix(known, prefix) {
				return client, nil
			}
		}
		return r.Verify(ctx, id, secret)
	}
}

func mustASCII(text string) string {
	for _, c := range text {
		if c > unicode.MaxASCII {
			panic("not ASCII: " + text)
		}
	}
	return text
}

// retryLater is an error that makes the response a 429.
type retryLater struct{ error }

func (e retryLater) Unwrap() error { return e.error }

func (retryLater) RetryAfter() time.Duration { return time.Second }
