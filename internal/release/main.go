// Release makes a release of this repository from a clone of it:
//
//	go run ./internal/release -module github.com/owner/webhookcfg -version v0.1.0 -report security@owner.example
//
// It works on a copy of the clone, and brings the commits and tags into the clone only after
// programs that consume the release through git were built. Then it prints the command that
// publishes them. If anything fails, the clone stays as it is.
//
// The first release gives the module its path, which stays. Later ones need -version only.
// The tag of the module in the top directory is on the branch. Go ignores the replace lines of
// dependencies, so each nested module gets a commit next to the branch, in which it requires
// the release instead, and its tag is there. So the branch keeps the replace lines, and you can
// go on changing several modules at once.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	var r release
	clone := flag.String("clone", ".", "top `directory` of the clone")
	flag.StringVar(&r.module, "module", "", "path of the module, if it gets a new one")
	flag.StringVar(&r.version, "version", "", "version, such as v0.1.0")
	flag.StringVar(&r.report, "report", "", "`address` for reports of vulnerabilities, if the module gets a new path")
	flag.Parse()
	if err := r.make(*clone); err != nil {
		log.Fatalf("nothing was released: %v", err)
	}
}

// A release is made in a copy of the clone.
type release struct {
	module  string // path of the module in the top directory
	version string
	report  string

	dir     string   // of the copy
	nested  []string // directories of the other modules that are released, in order of their requirements
	scratch string   // directory for everything else
}

var validVersion = regexp.MustCompile(`^v[01]\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func (r *release) make(clone string) error {
	if !validVersion.MatchString(r.version) {
		return fmt.Errorf("-version is %q, want one like v0.1.0", r.version)
	}
	clone, err := filepath.Abs(clone)
	if err != nil {
		return err
	}
	status, err := output(clone, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("the clone has changes that aren't committed:\n%s", status)
	}
	if r.scratch, err = os.MkdirTemp("", "release"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	r.dir = filepath.Join(r.scratch, "copy")
	if err := run(r.scratch, "git", "clone", "--quiet", clone, r.dir); err != nil {
		return err
	}
	for _, key := range []string{"user.name", "user.email"} {
		if value, err := output(clone, "git", "config", key); err == nil {
			if err := run(r.dir, "git", "config", key, value); err != nil {
				return err
			}
		}
	}

	branch, err := r.prepare()
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "-count=1", "./internal/repotest"}} {
		if _, err := outputWith([]string{"GOWORK=off"}, r.dir, "go", args...); err != nil {
			return err
		}
	}
	tags, err := r.tagModules()
	if err != nil {
		return err
	}
	if err := r.consume(); err != nil {
		return fmt.Errorf("a consumer can't use it: %w", err)
	}

	if err := bring(r.dir, clone, branch, tags); err != nil {
		return err
	}
	fmt.Printf("%s %s is released in this clone. To publish it:\n\n\tgit push --atomic origin HEAD %s\n", r.module, r.version, strings.Join(tags, " "))
	return nil
}

// bring brings the branch and the tags of the copy into the clone. The merge fails if the clone
// has changed meanwhile, so it comes before the tags. If these fail after all, the branch goes
// back.
func bring(dir, clone, branch string, tags []string) error {
	start, err := output(clone, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	fetch := []string{"fetch", "--quiet", "--no-tags", "--atomic", dir}
	if err := run(clone, "git", append(fetch, "refs/tags/"+tags[0])...); err != nil { // is the branch
		return err
	}
	if err := run(clone, "git", "merge", "--quiet", "--ff-only", branch); err != nil {
		return err
	}
	for _, tag := range tags {
		fetch = append(fetch, "refs/tags/"+tag+":refs/tags/"+tag)
	}
	if err := run(clone, "git", fetch...); err != nil {
		return errors.Join(err, run(clone, "git", "reset", "--quiet", "--keep", start))
	}
	return nil
}

// prepare makes the commits of the branch, and returns the last one.
func (r *release) prepare() (commit string, err error) {
	old, err := modFile(r.dir)
	if err != nil {
		return "", err
	}
	if r.module == "" {
		r.module = old.Module.Path
	}
	if strings.HasPrefix(r.module, "example.") {
		return "", fmt.Errorf("the module's path is still %s: choose one with -module", r.module)
	}
	if r.module != old.Module.Path {
		if r.report == "" {
			return "", errors.New("-report is missing: where can people report a vulnerability?")
		}
		if err := r.rename(old.Module.Path); err != nil {
			return "", err
		}
		if err := r.welcome(); err != nil {
			return "", err
		}
		if err := run(r.dir, "git", "commit", "--quiet", "-a", "-m", "go.mod: name the module "+r.module); err != nil {
			return "", err
		}
	}
	if r.nested, err = r.findNested(); err != nil {
		return "", err
	}
	heading := "## [Unreleased]\n"
	released := heading + "\n## [" + strings.TrimPrefix(r.version, "v") + "] - " + time.Now().UTC().Format(time.DateOnly) + "\n"
	if err := r.edit("CHANGELOG.md", heading, released); err != nil {
		return "", err
	}
	if err := run(r.dir, "git", "commit", "--quiet", "-a", "-m", "CHANGELOG: release "+r.version); err != nil {
		return "", err
	}
	return output(r.dir, "git", "rev-parse", "HEAD")
}

// rename replaces the module's old path in every file.
func (r *release) rename(old string) error {
	files, err := output(r.dir, "git", "ls-files", "-z")
	if err != nil {
		return err
	}
	oldPath := regexp.MustCompile(regexp.QuoteMeta(old) + `\b`)
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		file := filepath.Join(r.dir, filepath.FromSlash(name))
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		after := oldPath.ReplaceAllLiteral(before, []byte(r.module))
		if bytes.Equal(before, after) {
			continue
		}
		if path.Ext(name) == ".go" { // the order of imports may be another one now
			if after, err = format.Source(after); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := os.WriteFile(file, after, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// welcome replaces what the documents say as long as the module has no public home.
func (r *release) welcome() error {
	for _, e := range []struct{ file, old, replacement string }{
		{"README.md", " There's no release of this module yet, so clone the\nrepository and try it there.", " Clone the repository to\ntry it."},
		{
			"README.md", "To use it in your own service, clone the repository next to it, add the line\n`replace " + r.module +
				" => ../go-webhookcfg` to your `go.mod`, and run `go mod tidy`.",
			"To use it in your own service, import it, and run `go get " + r.module + "` and\n`go mod tidy`.",
		},
		{"CHANGELOG.md", " Nothing is released yet.", ""},
		{
			".github/SECURITY.md", "Please report it privately, to the people who gave you this copy of the module. Don't open a public\n" +
				"issue. The module has no public home yet, so there's no address to write to either. Tell us the commit,\n",
			"Please report it privately, to " + r.report + ". Don't open a public issue. Tell us the version,\n",
		},
		{"internal/repotest/doc.go", "its API, its links and its\n// limits, and how a host consumes it.", "its API, its links and its\n// limits."},
		{"Makefile", "./internal/oplog ./internal/repotest ./store ", "./internal/oplog ./store "}, // see below
		{".github/SECURITY.md", "Until the first release, we only support the newest commit.", "We support the newest release."},
	} {
		if err := r.edit(e.file, e.old, e.replacement); err != nil {
			return err
		}
	}
	doc := filepath.Join(r.dir, "doc.go")
	text, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	before, section, found := strings.Cut(string(text), "//\n// # Use it before it has a public home\n")
	_, after, more := strings.Cut(section, "package ")
	if !found || !more || strings.Contains(section, "// # ") {
		return errors.New("doc.go doesn't end with the section about the use without a public home")
	}
	if err := os.WriteFile(doc, []byte(before+"package "+after), 0o666); err != nil {
		return err
	}
	// It tests what that section says.
	return os.Remove(filepath.Join(r.dir, "internal", "repotest", "consume_test.go"))
}

// edit replaces a text that occurs once in a file.
func (r *release) edit(name, old, replacement string) error {
	file := filepath.Join(r.dir, filepath.FromSlash(name))
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), old); n != 1 {
		return fmt.Errorf("%s has this text %d times, want once:\n%s", name, n, old)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), old, replacement, 1)), 0o666)
}

// findNested finds the modules below the top directory, those that others require first.
// Those in a directory internal are never released.
func (r *release) findNested() (sorted []string, err error) {
	requires := make(map[string][]string)
	err = fs.WalkDir(os.DirFS(r.dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path.Base(name) == "internal" || name == ".git"):
			return fs.SkipDir
		case path.Base(name) != "go.mod" || name == "go.mod":
			return nil
		}
		mod, err := modFile(filepath.Join(r.dir, filepath.FromSlash(path.Dir(name))))
		if err != nil {
			return err
		}
		requires[path.Dir(name)] = r.own(mod)
		return nil
	})
	if err != nil {
		return nil, err
	}
	ready := func(dir string) bool {
		return !slices.ContainsFunc(requires[dir], func(required string) bool { return required != "." && !slices.Contains(sorted, required) })
	}
	for len(sorted) < len(requires) {
		var next []string
		for dir := range requires {
			if !slices.Contains(sorted, dir) && ready(dir) {
				next = append(next, dir)
			}
		}
		if len(next) == 0 {
			return nil, errors.New("the modules require each other")
		}
		slices.Sort(next)
		sorted = append(sorted, next...)
	}
	return sorted, nil
}

// own returns the directories of the modules of this repository that mod requires.
func (r *release) own(mod goMod) (dirs []string) {
	for _, required := range mod.Require {
		if required.Path == r.module {
			dirs = append(dirs, ".")
		} else if dir, ok := strings.CutPrefix(required.Path, r.module+"/"); ok {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// tagModules tags the module in the top directory, and then makes a commit with a tag for each
// of the others.
func (r *release) tagModules() (tags []string, err error) {
	tag := func(dir string) error {
		name := path.Join(dir, r.version)
		tags = append(tags, name)
		return run(r.dir, "git", "tag", name)
	}
	if err := tag(""); err != nil {
		return nil, err
	}
	if err := run(r.dir, "git", "checkout", "--quiet", "--detach"); err != nil {
		return nil, err
	}
	for _, dir := range r.nested {
		in := filepath.Join(r.dir, filepath.FromSlash(dir))
		mod, err := modFile(in)
		if err != nil {
			return nil, err
		}
		for _, required := range r.own(mod) {
			required = path.Join(r.module, required)
			if _, err := r.goCommand(in, "mod", "edit", "-dropreplace="+required, "-require="+required+"@"+r.version); err != nil {
				return nil, err
			}
		}
		// This adds the hashes of the release to go.sum.
		if _, err := r.goCommand(in, "mod", "tidy"); err != nil {
			return nil, err
		}
		if err := run(r.dir, "git", "commit", "--quiet", "-a", "-m", dir+": require "+r.version); err != nil {
			return nil, err
		}
		if err := tag(dir); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// consume builds programs that require each module, and installs the programs of the release,
// as people do who have nothing but git.
func (r *release) consume() error {
	quickstart, err := os.ReadFile(filepath.Join(r.dir, "examples", "quickstart", "main.go"))
	if err != nil {
		return err
	}
	if err := r.build(r.module, string(quickstart)); err != nil {
		return err
	}
	for _, dir := range append([]string{""}, r.nested...) {
		module := path.Join(r.module, dir)
		packages, err := r.goCommand(filepath.Join(r.dir, filepath.FromSlash(dir)), "list", "-f", "{{.Name}} {{.ImportPath}}", "./...")
		if err != nil {
			return err
		}
		library := false
		for line := range strings.Lines(packages) {
			name, pkg, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case strings.Contains(pkg, "/internal/"):
			case name == "main":
				if _, err := r.goCommand(r.scratch, "install", pkg+"@"+r.version); err != nil {
					return err
				}
			case !library && dir != "":
				library = true
				if err := r.build(module, fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", pkg)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// build builds a program that requires a module of the release.
func (r *release) build(module, program string) error {
	dir, err := os.MkdirTemp(r.scratch, "consumer")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o666); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.org/service"},
		{"get", module + "@" + r.version},
		{"mod", "tidy"},
		{"build", "-o", "service", "."},
	} {
		if _, err := r.goCommand(dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// goCommand runs the go command in a directory, with a cache of modules of its own, in which
// git gets the modules of the release from the copy instead of from their home.
func (r *release) goCommand(dir string, args ...string) (string, error) {
	cache, err := output(r.dir, "go", "env", "GOMODCACHE")
	if err != nil {
		return "", err
	}
	proxy, err := output(r.dir, "go", "env", "GOPROXY")
	if err != nil {
		return "", err
	}
	return outputWith([]string{
		"GOFLAGS=-modcacherw -trimpath",
		"GOMODCACHE=" + filepath.Join(r.scratch, "modules"),
		"GOBIN=" + filepath.Join(r.scratch, "bin"),
		"GOPROXY=file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")) + "," + proxy,
		"GONOPROXY=" + r.module,
		"GOSUMDB=off",
		"GOWORK=off",
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://" + filepath.ToSlash(r.dir) + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://" + r.module,
	}, dir, "go", args...)
}

// goMod is a part of what go mod edit -json prints.
type goMod struct {
	Module  struct{ Path string }
	Require []struct{ Path string }
}

func modFile(dir string) (mod goMod, err error) {
	text, err := output(dir, "go", "mod", "edit", "-json")
	if err != nil {
		return mod, err
	}
	return mod, json.Unmarshal([]byte(text), &mod)
}

func run(dir, name string, args ...string) error {
	_, err := output(dir, name, args...)
	return err
}

func output(dir, name string, args ...string) (string, error) {
	return outputWith(nil, dir, name, args...)
}

// outputWith returns what a command prints to standard output, without the last newline. If it
// fails, everything that it prints is in the error.
func outputWith(env []string, dir, name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, &stdout, &stderr)
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}
