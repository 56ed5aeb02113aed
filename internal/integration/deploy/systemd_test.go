package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// analyze runs systemd-analyze on a unit, and returns its output.
func analyze(t *testing.T, unit string, args ...string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "webhook-service.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "systemd-analyze", append(args, path)...).CombinedOutput()
	return string(output), err
}

// TestUnit: systemd accepts the unit, and rates it as well protected. The program knows the
// unit's flags.
func TestUnit(t *testing.T) {
	const installed = "/usr/local/bin/webhook-service"
	unit := strings.ReplaceAll(read(t, "webhook-service.service"), "ExecStart="+installed, "ExecStart="+program(t))
	verify := []string{"verify", "--man=no"}
	if output, err := analyze(t, unit, verify...); err != nil || output != "" {
		t.Errorf("%v: %s", err, output)
	}
	secure := []string{"security", "--offline=true", "--no-pager", "--threshold=20"}
	if output, err := analyze(t, unit, secure...); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	for broken, args := range map[string][]string{
		strings.Replace(unit, "UMask=", "Umask=", 1):               verify,
		strings.ReplaceAll(unit, program(t), installed+"-missing"): verify,
		strings.NewReplacer("Protect", "#", "Restrict", "#", "DynamicUser", "#", "NoNew", "#", "SystemCall", "#", "Private", "#", "Capability", "#").Replace(unit): secure,
	} {
		if output, err := analyze(t, broken, args...); err == nil && (args[0] == "security" || output == "") {
			t.Errorf("%q accepts\n%s", args, broken)
		}
	}
	command := regexp.MustCompile(`(?s)ExecStart=\S+ (.*?[^\\])\n`).FindStringSubmatch(unit)
	checkArguments(t, strings.Fields(strings.ReplaceAll(command[1], "\\\n", ""))...)
}
