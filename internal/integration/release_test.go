package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRelease releases a clone of the commit that's checked out. The command itself builds
// programs with the release, so here we look at what it leaves in the clone.
func TestRelease(t *testing.T) {
	module, placeholder := "github.com/owner/webhookcfg", true
	if line, _, _ := strings.Cut(git(t, "../..", "show", "HEAD:go.mod"), "\n"); !strings.HasPrefix(line, "module example.") {
		module, placeholder = strings.TrimPrefix(line, "module "), false
	}
	command := filepath.Join(t.TempDir(), "release")
	program(t, "../..", "go", "build", "-o", command, "./internal/release")
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, "../..", "clone", "--quiet", "--no-tags", ".", clone)
	git(t, clone, "config", "user.name", "release")
	git(t, clone, "config", "user.email", "release@example.org")
	start := git(t, clone, "rev-parse", "HEAD")

	for _, tt := range []struct {
		name, want string
		args       []string
		first      bool // it's about the first release
	}{
		{"no version", "want one like v0.1.0", nil, false},
		{"version of another module path", "want one like v0.1.0", []string{"-version", "v2.0.0"}, false},
		{"no path", "choose one with -module", []string{"-version", "v0.1.0"}, true},
		{"nowhere to report", "-report is missing", []string{"-version", "v0.1.0", "-module", module}, true},
	} {
		if tt.first && !placeholder {
			continue
		}
		cmd := exec.Command(command, append(tt.args, "-clone", clone)...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v, %s; want an error with %q", tt.name, err, out, tt.want)
		}
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(clone, "note"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("not committed")
	release := []string{"-clone", clone, "-version", "v0.1.0", "-module", module, "-report", "security@owner.example"}
	if out, err := exec.Command(command, release...).CombinedOutput(); err == nil || !strings.Contains(string(out), "aren't committed") {
		t.Errorf("with a change that isn't committed: %v, %s", err, out)
	}
	if err := os.Remove(filepath.Join(clone, "note")); err != nil {
		t.Fatal(err)
	}
	if head, tags := git(t, clone, "rev-parse", "HEAD"), git(t, clone, "tag"); head != start || tags != "" {
		t.Fatalf("after releases that failed, HEAD is %s, want %s, and the tags are %q, want none", head, start, tags)
	}

	t.Log(program(t, clone, command, release...))

	tags := strings.Fields(git(t, clone, "tag"))
	want := []string{"examples/admin/v0.1.0", "examples/mounts/v0.1.0", "examples/service/v0.1.0", "store/etcdstore/v0.1.0", "v0.1.0"}
	if !slices.Equal(tags, want) {
		t.Errorf("tags %q, want %q", tags, want)
	}
	for _, tag := range tags {
		if mod := git(t, clone, "show", tag+":"+strings.TrimSuffix(tag, "v0.1.0")+"go.mod"); tag != "v0.1.0" &&
			(strings.Contains(mod, "replace") || !strings.Contains(mod, module+" v0.1.0")) {
			t.Errorf("%s doesn't require the release alone:\n%s", tag, mod)
		}
	}
	if left, err := exec.Command("git", "-C", clone, "grep", "-l", "example.com/go-"+"webhookcfg").Output(); err == nil {
		t.Errorf("files with the old path:\n%s", left)
	}
	if git(t, clone, "rev-parse", "v0.1.0") != git(t, clone, "rev-parse", "HEAD") {
		t.Error("the branch doesn't end with the release")
	}
	if mod := git(t, clone, "show", "HEAD:store/etcdstore/go.mod"); !strings.Contains(mod, "replace "+module+" =>") {
		t.Errorf("on the branch, etcdstore doesn't use the module beside it:\n%s", mod)
	}
	if out, err := exec.Command(command, release...).CombinedOutput(); err == nil || !strings.Contains(string(out), "v0.1.0") {
		t.Errorf("the same release again: %v, %s", err, out)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return program(t, dir, "git", args...)
}

func program(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
