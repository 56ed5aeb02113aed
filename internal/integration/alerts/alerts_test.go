// Package alerts_test runs promtool, the checker of Prometheus, on the alert rules.
package alerts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// rules is the directory of the rules and their tests.
const rules = "../../../examples/service/metrics"

func promtool(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	path, err := engine.Program("usr/bin/promtool", "prometheus")
	if err != nil {
		t.Fatal(err)
	}
	tool := exec.CommandContext(t.Context(), path, args...)
	tool.Dir = dir
	output, err := tool.CombinedOutput()
	return string(output), err
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rules, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		if output, err := promtool(t, rules, args...); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, output)
		}
	}
}

// TestEachRuleIsTested changes each rule in turn. The tests of the rules must fail without
// it, and if its threshold or its duration is different.
func TestEachRuleIsTested(t *testing.T) {
	text, tests := read(t, "alerts.yml"), read(t, "alerts_test.yml")
	all := strings.Split(text, "      - alert: ")
	if len(all) != 12 {
		t.Fatalf("%d rules", len(all)-1)
	}
	fails := func(what string, i int, rule string) {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // each run of promtool takes a second
			changed := append(append(append([]string{}, all[:i]...), rule), all[i+1:]...)
			dir := t.TempDir()
			for name, text := range map[string]string{"alerts.yml": strings.Join(changed, "      - alert: "), "alerts_test.yml": tests} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if output, err := promtool(t, dir, "test", "rules", "alerts_test.yml"); err == nil || !strings.Contains(output, "FAILED") || strings.Contains(output, "parse error") {
				t.Errorf("the tests notice nothing: %v\n%s", err, output)
			}
		})
	}
	for i, rule := range all[1:] {
		name, _, _ := strings.Cut(rule, "\n")
		fails(name+" under another name", i+1, strings.Replace(rule, name, "Other", 1))
		if strings.Contains(rule, " > ") {
			fails(name+" always", i+1, strings.Replace(rule, " > ", " > -1 + 0 * ", 1))
			fails(name+" never", i+1, strings.Replace(rule, " > ", " > 1e12 + ", 1))
		}
		if before, after, ok := strings.Cut(rule, "\n        for: "); ok {
			_, after, _ = strings.Cut(after, "\n")
			fails(name+" at once", i+1, before+"\n"+after)
		}
	}
}
