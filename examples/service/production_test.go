package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// The functions up to the first test are for PRODUCTION.md. Your service needs them. This one
// doesn't, because it has no table of clients.

const createSecrets = `CREATE TABLE secrets (client text NOT NULL, name text NOT NULL, hash bytea NOT NULL, PRIMARY KEY (client, name))`

func findSecrets(db *sql.DB) func(context.Context, string) ([]auth.HashedSecret, error) {
	return func(ctx context.Context, id string) (found []auth.HashedSecret, err error) {
		rows, err := db.QueryContext(ctx, `SELECT name, hash FROM secrets WHERE client = $1`, id)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			secret := auth.HashedSecret{Client: webhookcfg.Client{ID: id}}
			if err := rows.Scan(&secret.Client.SecretName, &secret.Hash); err != nil {
				return nil, err
			}
			found = append(found, secret)
		}
		return found, rows.Err()
	}
}

func hash(secret []byte) ([]byte, error) {
	sum := sha256.Sum256(secret)
	return sum[:], nil
}

func compare(hash, secret []byte) error {
	if sum := sha256.Sum256(secret); subtle.ConstantTimeCompare(hash, sum[:]) == 0 {
		return errors.New("wrong secret")
	}
	return nil
}

func newVerifier(db *sql.DB) (*auth.Cache, error) {
	lookup, err := auth.NewLookup(auth.LookupOptions{Find: findSecrets(db), Hash: hash, Compare: compare})
	if err != nil {
		return nil, err
	}
	throttled, err := auth.NewThrottle(lookup, nil)
	if err != nil {
		return nil, err
	}
	return auth.NewCache(throttled, nil)
}

func behindProxies(service http.Handler, logger *slog.Logger) (http.Handler, error) {
	withSource, err := auth.WithSource(logger, netip.MustParsePrefix("127.0.0.0/8")) // your proxies
	if err != nil {
		return nil, err
	}
	return withSource(service), nil
}

func deleteClient(ctx context.Context, db *sql.DB, verifier *auth.Cache, webhooks webhookcfg.Store, client string) error {
	if _, err := db.ExecContext(ctx, `DELETE FROM secrets WHERE client = $1`, client); err != nil {
		return err
	}
	verifier.Drop() // here, and in your other processes
	return admin.Erase(ctx, webhooks, client)
}

func export(ctx context.Context, webhooks webhookcfg.Store, path string) error {
	file, err := store.OpenFile(path, nil)
	if err != nil {
		return err
	}
	_, err = admin.Copy(ctx, file, webhooks, nil)
	return errors.Join(err, file.Close())
}

// TestProduction: the functions above do what PRODUCTION.md says.
func TestProduction(t *testing.T) {
	ctx := t.Context()
	d, err := openDatabase(ctx, "sqlite:"+filepath.Join(t.TempDir(), "service.db"), newLogger(t.Output(), 0))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := d.migrate(ctx); err != nil {
		t.Fatal(err)
	}
	const secret = "a-secret-of-acme"
	sum, _ := hash([]byte(secret))
	if _, err := d.ExecContext(ctx, createSecrets); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ExecContext(ctx, `INSERT INTO secrets VALUES ('acme', '2026', $1)`, sum); err != nil {
		t.Fatal(err)
	}
	verifier, err := newVerifier(d.DB)
	if err != nil {
		t.Fatal(err)
	}
	h, err := webhookcfg.NewHandler(d.webhooks, verifier, &webhookcfg.Options{ProbeMode: webhookcfg.ProbeOff})
	if err != nil {
		t.Fatal(err)
	}
	service, err := behindProxies(h, newLogger(t.Output(), slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service)
	defer server.Close()
	set := func(source, secret string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+webhooks, strings.NewReader(`{"webhook_url":"https://example.com/in"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("acme", secret)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", source)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	status := 0
	for n := 0; status != http.StatusTooManyRequests; n++ {
		if status = set("192.0.2.1", fmt.Sprint("guess ", n)); n > 100 {
			t.Fatal("guesses are not limited")
		}
	}
	if status := set("192.0.2.2", secret); status != http.StatusOK {
		t.Errorf("from elsewhere: %d", status)
	}
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	if err := export(ctx, d.webhooks, path); err != nil {
		t.Fatal(err)
	}
	file, err := store.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inEffect := func(st webhookcfg.Store) string {
		t.Helper()
		hook, err := st.Resolve(ctx, "acme", "e1")
		if err != nil {
			t.Fatal(err)
		}
		return hook.URL.Reveal()
	}
	if got := inEffect(file); got != "https://example.com/in" {
		t.Errorf("exported %q", got)
	}
	if err := deleteClient(ctx, d.DB, verifier, d.webhooks, "acme"); err != nil {
		t.Fatal(err)
	}
	if status := set("192.0.2.2", secret); status != http.StatusUnauthorized {
		t.Errorf("a deleted client: %d", status)
	}
	if got := inEffect(d.webhooks); got != "" {
		t.Errorf("a deleted client has %q", got)
	}
}

// TestProductionPage: the code in PRODUCTION.md is in the file that it names.
func TestProductionPage(t *testing.T) {
	page := readLines(t, "PRODUCTION.md")
	blocks := regexp.MustCompile("(?m)^\\[([a-z_]+\\.go)\\]\\(([a-z_]+\\.go)\\):\n\n```go\n((?s:.*?))```\n").FindAllStringSubmatch(page, -1)
	if len(blocks) < 8 || len(blocks) != strings.Count(page, "```go") {
		t.Fatalf("%d blocks of code name their file, of %d", len(blocks), strings.Count(page, "```go"))
	}
	for _, block := range blocks {
		if block[1] != block[2] || !strings.Contains(readLines(t, block[2]), block[3]) {
			t.Errorf("%s doesn't have\n%s", block[2], block[3])
		}
	}
}

// readLines returns the text of a file without indentation.
func readLines(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(&lines, strings.TrimSpace(line))
	}
	return lines.String()
}
