package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// export is for PRODUCTION.md. Your service may need it. This one has examples/admin.
func export(ctx context.Context, webhooks webhookcfg.Store, path string) error {
	file, err := store.OpenFile(path, nil)
	if err != nil {
		return err
	}
	report, err := admin.Copy(ctx, file, webhooks, nil)
	if err == nil && report.Different > 0 {
		err = fmt.Errorf("%d webhooks aren't in the export, for example %v", report.Different, report.Differences[0])
	}
	return errors.Join(err, file.Close())
}

// TestExport: the function above does what PRODUCTION.md says.
func TestExport(t *testing.T) {
	webhooks := idle(t, []string{"-store", newStore(t)}).database.webhooks
	if err := webhooks.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://example.com/in"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "webhooks.jsonl")
	if err := export(t.Context(), webhooks, path); err != nil {
		t.Fatal(err)
	}
	file, err := store.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if hook, err := file.Resolve(t.Context(), "acme", "e1"); err != nil || hook.URL.Reveal() != "https://example.com/in" {
		t.Errorf("exported %q, %v", hook.URL.Reveal(), err)
	}
}

// TestExportRefused: an export that lacks a webhook, because the file refuses its client's name, isn't
// taken for a complete one.
func TestExportRefused(t *testing.T) {
	webhooks := store.NewMemory()
	for _, client := range []string{"acme", "\xff"} {
		if err := webhooks.Apply(t.Context(), webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://example.com/in"))); err != nil {
			t.Fatal(err)
		}
	}
	err := export(t.Context(), webhooks, filepath.Join(t.TempDir(), "webhooks.jsonl"))
	if err == nil || !strings.Contains(err.Error(), "1 webhooks aren't in the export") {
		t.Errorf("got %v", err)
	}
}

// TestProductionPage: the code in PRODUCTION.md is in the file that was named last before it.
func TestProductionPage(t *testing.T) {
	page := readLines(t, "PRODUCTION.md")
	parts := regexp.MustCompile("(?m)\\[[a-z_]+\\.go\\]\\(([a-z_]+\\.go)\\):\n|^```go\n((?s:.*?))```\n").FindAllStringSubmatch(page, -1)
	file, blocks := "", 0
	for _, part := range parts {
		if part[1] != "" {
			file = part[1]
			continue
		}
		blocks++
		if !strings.Contains(readLines(t, file), part[2]) {
			t.Errorf("%s doesn't have\n%s", file, part[2])
		}
	}
	if blocks < 8 || blocks != strings.Count(page, "```go") {
		t.Errorf("%d blocks of code, of %d", blocks, strings.Count(page, "```go"))
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
