package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBring: the clone gets the commits and all tags, or stays as it was.
func TestBring(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	git := func(dir string, args ...string) string {
		t.Helper()
		identity := []string{"-c", "user.name=release", "-c", "user.email=release@example.org"}
		out, err := output(dir, "git", append(identity, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	write := func(names ...string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(names...), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, obstruct := range map[string]func(clone string){
		"nothing":            func(string) {},
		"a git that works":   func(clone string) { write(clone, ".git", "index.lock") },
		"a commit meanwhile": func(clone string) { git(clone, "commit", "--quiet", "--allow-empty", "-m", "meanwhile") },
		"a tag meanwhile":    func(clone string) { git(clone, "tag", "nested/v0.1.0") },
	} {
		clone, dir := t.TempDir(), t.TempDir()
		git(clone, "init", "--quiet")
		git(clone, "commit", "--quiet", "--allow-empty", "-m", "start")
		git(dir, "clone", "--quiet", clone, ".")
		write(dir, "release")
		git(dir, "add", "release")
		git(dir, "commit", "--quiet", "-m", "release")
		git(dir, "tag", "v0.1.0")
		branch := git(dir, "rev-parse", "HEAD")
		git(dir, "checkout", "--quiet", "--detach")
		git(dir, "commit", "--quiet", "--allow-empty", "-m", "nested")
		git(dir, "tag", "nested/v0.1.0")

		obstruct(clone)
		head, tags := git(clone, "rev-parse", "HEAD"), git(clone, "tag")
		wantErr := name != "nothing"
		if !wantErr {
			head, tags = branch, "nested/v0.1.0\nv0.1.0"
		}
		if err := bring(dir, clone, branch, []string{"v0.1.0", "nested/v0.1.0"}); (err != nil) != wantErr {
			t.Errorf("%s: %v", name, err)
		}
		if gotHead, gotTags := git(clone, "rev-parse", "HEAD"), git(clone, "tag"); gotHead != head || gotTags != tags {
			t.Errorf("%s: the clone has HEAD %s and the tags %q, want %s and %q", name, gotHead, gotTags, head, tags)
		}
		if _, err := os.Stat(filepath.Join(clone, "release")); (err == nil) == wantErr {
			t.Errorf("%s: the file of the release: %v", name, err)
		}
	}
}
