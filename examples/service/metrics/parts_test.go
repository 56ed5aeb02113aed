package metrics

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// patient is healthy unless it has an error.
type patient struct{ err error }

func (p *patient) Healthy(context.Context) error { return p.err }

// watched returns the exposition of metrics that watch a file, a copy of it and the patient.
func watched(t *testing.T, p *patient) (m *Metrics, exposition string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := store.OpenFile(filepath.Join(dir, "webhooks.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	copied, err := cache.New(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = copied.Close() })
	registry := prometheus.NewRegistry()
	if m, err = NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]any{"store": file, "copy": copied, "credentials": p, "other": t} {
		if err := m.Watch(name, part); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := m.Watch(name, part); err == nil && part != t {
			t.Errorf("%s is watched twice", name)
		}
	}
	for range 3 {
		if err := file.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(secretURL))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil {
		t.Fatal(err)
	}
	return m, serve(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}

func TestParts(t *testing.T) {
	p := new(patient)
	m, exposition := watched(t, p)
	health := []string{`webhook_healthy{part="credentials"} 1`, `webhook_healthy{part="store"} 1`}
	if diff := cmp.Diff(health, scrape(t, exposition, "webhook_healthy")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.err = errors.New("disk of " + secretURL)
	health[0] = `webhook_healthy{part="credentials"} 0`
	if diff := cmp.Diff(health, scrape(t, exposition, "webhook_healthy")); diff != "" {
		t.Errorf("failing: -want +got:\n%s", diff)
	}
	for _, r := range []deliver.Result{
		{Outcome: deliver.Delivered},
		{Outcome: deliver.Failed, Reason: deliver.ReasonStatus, Err: errors.New(secretURL)},
	} {
		m.OnResult(t.Context(), "acme", "e1", "msg_1", r)
	}
	m.OnChange(t.Context(), "acme", webhookcfg.Entity("e1"), webhookcfg.DeliveryStatus{State: "ok"}, webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone"})
	results := []string{
		`webhook_delivery_changes_total{reason="gone",state="stopped"} 1`,
		`webhook_delivery_results_total{outcome="delivered",reason=""} 1`,
		`webhook_delivery_results_total{outcome="failed",reason="status"} 1`,
	}
	if diff := cmp.Diff(results, scrape(t, exposition, "webhook_delivery")); diff != "" {
		t.Errorf("results: -want +got:\n%s", diff)
	}
	if got := scrape(t, exposition, "webhook_file_changes_total"); len(got) != 1 || got[0] != `webhook_file_changes_total{part="store"} 3` {
		t.Errorf("got %q", got)
	}
	if got := scrape(t, exposition, "webhook_cache_reads_total"); len(got) != 1 || got[0] != `webhook_cache_reads_total{part="copy"} 1` {
		t.Errorf("got %q", got)
	}
}

// TestAlertsAndMetrics: the alert rules and their tests name only metrics that exist.
func TestAlertsAndMetrics(t *testing.T) {
	m, exposition := watched(t, new(patient))
	m.OnResult(t.Context(), "", "", "", deliver.Result{Outcome: deliver.Delivered})
	m.OnChange(t.Context(), "", webhookcfg.All(), webhookcfg.DeliveryStatus{}, webhookcfg.DeliveryStatus{State: "stopped"})
	if err := m.Watch("queue", new(fakeQueue)); err != nil {
		t.Fatal(err)
	}
	do(t, newHandler(t, func(o *webhookcfg.Options) { o.OnEvent = m.OnEvent }))
	exported := strings.Join(scrape(t, exposition, "webhook_"), "\n")
	for _, file := range []string{"alerts.yml", "alerts_test.yml", "RUNBOOK.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\bwebhook_(?:cache|configuration|delivery|file|healthy|queue)[a-z_]*`).FindAllString(string(text), -1)
		if len(names) < 5 {
			t.Errorf("%s: %q", file, names)
		}
		for _, name := range names {
			if !strings.Contains(exported, name+"{") {
				t.Errorf("%s: no metric %s", file, name)
			}
		}
	}
}

// TestRunbook: each alert has a section that says what to do.
func TestRunbook(t *testing.T) {
	rules, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile("RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	var alerts, sections []string
	for _, found := range regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1) {
		alerts = append(alerts, found[1])
	}
	for _, found := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(runbook), -1) {
		sections = append(sections, found[1])
	}
	if diff := cmp.Diff(alerts, sections); diff != "" || len(alerts) < 10 {
		t.Errorf("alerts and sections of the runbook: -want +got:\n%s", diff)
	}
}
