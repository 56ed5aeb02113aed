package auth_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
)

// The output of: printf %s hush | sha256sum
const hushSum = "dc8331bcb2283e89d275a1c2fe66f7bf5ac3163ec1967f149dd7e27906365f0c"

func mustOpen(t testing.TB, path string, options *auth.FileOptions) *auth.File {
	t.Helper()
	f, err := auth.OpenFile(path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestFile(t *testing.T) {
	f := mustOpen(t, writeFile(t,
		"# who may sign in",
		"",
		"hush:sha256:"+hushSum,
		"shout:sha256:"+strings.ToUpper(hushSum),
		" \t ",
		mustLine(auth.SHA256Line("rotating", "old")),
		"rotating:owner:acme",
		mustLine(auth.SHA256Line("rotating", "new"))+"\r",
		mustLine(auth.SHA256Line("gone", "s")),
		"gone:disabled",
		"reserved:disabled",
		mustLine(auth.SHA256Line("test", "123£")),
	), nil)
	mustSignIn(t, f, "hush", "hush", "hush")
	mustSignIn(t, f, "shout", "hush", "shout")
	mustSignIn(t, f, "rotating", "old", "acme")
	mustSignIn(t, f, "rotating", "new", "acme")
	mustSignIn(t, f, "test", "123£", "test")
	mustRefuse(t, f, "hush", hushSum)
	mustRefuse(t, f, "hush", "new")
	mustRefuse(t, f, "acme", "new")
	mustRefuse(t, f, "gone", "s")
	mustRefuse(t, f, "reserved", "s")
	mustRefuse(t, f, "#", "s")
}

// TestFilePBKDF2 signs in once with hashes of the real cost.
func TestFilePBKDF2(t *testing.T) {
	line := mustLine(auth.PBKDF2Line("human", "correct horse"))
	if other := mustLine(auth.PBKDF2Line("human", "correct horse")); other == line {
		t.Error("two lines for one secret have one salt")
	}
	if !strings.HasPrefix(line, "human:pbkdf2-sha256:600000:") {
		t.Errorf("got %s", line)
	}
	f := mustOpen(t, writeFile(t, line), nil)
	mustSignIn(t, f, "human", "correct horse", "human")
	mustRefuse(t, f, "human", "correct horse ")
}

// TestDerive compares with the PBKDF2-HMAC-SHA-256 vectors of RFC 7914 §11.
func TestDerive(t *testing.T) {
	for _, tt := range []struct {
		secret, salt string
		rounds       int
		want         string
	}{
		{"passwd", "salt", 1, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"},
		{"Password", "NaCl", 80000, "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"},
	} {
		got := auth.Derive(tt.secret, tt.salt, tt.rounds)
		if hex.EncodeToString(got[:]) != tt.want {
			t.Errorf("%s: got %x", tt.secret, got)
		}
	}
}

func TestFileRefuses(t *testing.T) {
	const good = "good:sha256:" + hushSum
	salt, long := strings.Repeat("ab", 16), strings.Repeat("ab", 65)
	nine := make([]string, 9)
	for i := range nine {
		nine[i] = mustLine(auth.SHA256Line("c", fmt.Sprint(i)))
	}
	tests := []struct {
		name  string
		lines []string
		line  int
	}{
		{"empty", nil, 1},
		{"only comments", []string{"# no clients", "", "#"}, 3},
		{"no colon", []string{good, "hush"}, 2},
		{"no hash", []string{good, "c:sha256:"}, 2},
		{"kind alone", []string{good, "c:sha256"}, 2},
		{"nothing", []string{good, "c:"}, 2},
		{"a secret", []string{good, "c:hush"}, 2},
		{"other kind", []string{good, "c:md5:" + hushSum}, 2},
		{"kind in capitals", []string{good, "c:SHA256:" + hushSum}, 2},
		{"short hash", []string{good, "c:sha256:" + hushSum[1:]}, 2},
		{"long hash", []string{good, "c:sha256:" + hushSum + "00"}, 2},
		{"no hexadecimal digit", []string{good, "c:sha256:g" + hushSum[1:]}, 2},
		{"sha256sum with its dash", []string{good, "c:sha256:" + hushSum + "  -"}, 2},
		{"space before", []string{good, " c:sha256:" + hushSum}, 2},
		{"space at the end", []string{good, "c:sha256:" + hushSum + " "}, 2},
		{"byte order mark", []string{"\ufeff" + good}, 1},
		{"no id", []string{good, ":sha256:" + hushSum}, 2},
		{"id beyond ASCII", []string{good, "ä:sha256:" + hushSum}, 2},
		{"long id", []string{good, strings.Repeat("c", 129) + ":disabled"}, 2},
		{"long line", []string{good, "c:owner:" + strings.Repeat("c", 100_000)}, 2},
		{"disabled with a value", []string{good, "c:disabled:"}, 2},
		{"disabled with a reason", []string{good, "c:disabled:hush"}, 2},
		{"owner without name", []string{good, "good:owner"}, 2},
		{"owner with empty name", []string{good, "good:owner:"}, 2},
		{"owner with colon", []string{good, "good:owner:a:b"}, 2},
		{"owner alone", []string{good, "# c", "c:owner:acme", "d:owner:acme"}, 3},
		{"same hash twice", []string{good, "", good}, 3},
		{"same hash in capitals", []string{good, "good:sha256:" + strings.ToUpper(hushSum)}, 2},
		{"two owners", []string{good, "good:owner:a", "good:owner:b"}, 3},
		{"disabled twice", []string{good, "good:disabled", "good:disabled"}, 3},
		{"nine secrets", nine, 9},

		{"few rounds", []string{"c:pbkdf2-sha256:599999:" + salt + ":" + hushSum}, 1},
		{"many rounds", []string{"c:pbkdf2-sha256:10000001:" + salt + ":" + hushSum}, 1},
		{"huge rounds", []string{"c:pbkdf2-sha256:99999999999999999999:" + salt + ":" + hushSum}, 1},
		{"signed rounds", []string{"c:pbkdf2-sha256:+600000:" + salt + ":" + hushSum}, 1},
		{"rounds with zeros", []string{"c:pbkdf2-sha256:0600000:" + salt + ":" + hushSum}, 1},
		{"no rounds", []string{"c:pbkdf2-sha256::" + salt + ":" + hushSum}, 1},
		{"no salt", []string{"c:pbkdf2-sha256:600000::" + hushSum}, 1},
		{"short salt", []string{"c:pbkdf2-sha256:600000:" + salt[2:] + ":" + hushSum}, 1},
		{"odd salt", []string{"c:pbkdf2-sha256:600000:" + salt + "a:" + hushSum}, 1},
		{"long salt", []string{"c:pbkdf2-sha256:600000:" + long + ":" + hushSum}, 1},
		{"short key", []string{"c:pbkdf2-sha256:600000:" + salt + ":" + hushSum[2:]}, 1},
		{"one field more", []string{"c:pbkdf2-sha256:600000:" + salt + ":" + hushSum + ":"}, 1},
		{"one field less", []string{"c:pbkdf2-sha256:600000:" + hushSum}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := writeFile(t, tt.lines...)
			f, err := auth.OpenFile(path, nil)
			if err == nil || f != nil {
				t.Fatalf("got %v, %v, want an error", f, err)
			}
			text := err.Error()
			if !strings.HasPrefix(text, fmt.Sprintf("auth: %s:%d: ", path, tt.line)) {
				t.Errorf("the error %q does not name line %d", text, tt.line)
			}
			reason := strings.TrimPrefix(text, "auth: "+path)
			if strings.Contains(reason, "hush") || strings.Contains(strings.ToLower(reason), hushSum[:8]) || strings.Contains(reason, salt[:8]) {
				t.Errorf("the error %q quotes the line", text)
			}
		})
	}
}

func TestFileRefusesLinesFor(t *testing.T) {
	for _, tt := range [][2]string{{"", "s"}, {"a:b", "s"}, {"#", "s"}, {"c", ""}, {"c", "a\tb"}, {"c", "\xff"}} {
		if line, err := auth.SHA256Line(tt[0], tt[1]); err == nil || line != "" {
			t.Errorf("%q: got %q, %v", tt, line, err)
		}
	}
}

func TestFilePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions of Windows are not judged")
	}
	for _, tt := range []struct {
		mode           os.FileMode
		strict, shared bool // accepted without and with AllowReadable
	}{
		{0o600, true, true},
		{0o400, true, true},
		{0o700, true, true},
		{0o640, false, true},
		{0o604, false, true},
		{0o444, false, true},
		{0o644, false, true},
		{0o620, false, false},
		{0o602, false, false},
		{0o666, false, false},
		{0o660, false, false},
		{0o610, false, true},
	} {
		path := writeFile(t, mustLine(auth.SHA256Line("c", "s")))
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		for _, allow := range []bool{false, true} {
			_, err := auth.OpenFile(path, &auth.FileOptions{AllowReadable: allow})
			want := tt.strict || allow && tt.shared
			if (err == nil) != want {
				t.Errorf("%04o, AllowReadable %v: got %v", tt.mode, allow, err)
			}
			if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%04o", tt.mode)) {
				t.Errorf("%04o: the error %q does not name the mode", tt.mode, err)
			}
		}
	}
}

func TestFileKinds(t *testing.T) {
	path := writeFile(t, mustLine(auth.SHA256Line("c", "s")))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err == nil { // Windows may not allow it
		f := mustOpen(t, link, nil)
		mustSignIn(t, f, "c", "s", "c")
	}
	for _, irregular := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing"), os.DevNull} {
		if f, err := auth.OpenFile(irregular, nil); err == nil || f != nil {
			t.Errorf("%s: got %v, %v, want an error", irregular, f, err)
		}
	}
}

func TestFileOptions(t *testing.T) {
	path := writeFile(t, mustLine(auth.SHA256Line("c", "s")))
	for _, options := range []auth.FileOptions{{Poll: -1}, {SlowHashes: -1}} {
		if f, err := auth.OpenFile(path, &options); err == nil || f != nil {
			t.Errorf("got %v, %v, want an error", f, err)
		}
	}
}

// FuzzFile: the parser does not panic; entries it accepts survive encoding; an error has
// the number of an existing line and does not quote it.
func FuzzFile(f *testing.F) {
	salt := strings.Repeat("ab", 16)
	for _, seed := range []string{
		"c:sha256:" + hushSum,
		"c:pbkdf2-sha256:600000:" + salt + ":" + hushSum + "\n",
		"# c\r\n\r\nc:disabled\r\nc:owner:d\r\n",
		"c:sha256:" + hushSum + "\nc:sha256:" + strings.ToUpper(hushSum),
		"", "\n", ":", "c:owner:", "c:disabled:", "\ufeff", "c:owner:d\n#\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, line, err := auth.Reprint(text)
		if err != nil {
			if last := strings.Count(text, "\n") + 1; line < 1 || line > last {
				t.Fatalf("refused line %d of %d", line, last)
			}
			bad := strings.Split(text+"\n", "\n")[line-1]
			if len(bad) > 20 && strings.Contains(err.Error(), bad) {
				t.Fatalf("the error %q quotes the line", err)
			}
			return
		}
		again, _, err := auth.Reprint(strings.Join(lines, "\n"))
		slices.Sort(lines)
		slices.Sort(again)
		if err != nil || len(lines) == 0 || !slices.Equal(lines, again) {
			t.Fatalf("%q is encoded as %q, decoded as %q, %v", text, lines, again, err)
		}
		for _, printed := range lines {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(printed)) {
				t.Fatalf("%q has the invented entry %q", text, printed)
			}
		}
	})
}

func sha256Line(id, secret string) string { return mustLine(auth.SHA256Line(id, secret)) }

// reports collects the records and the hook calls of a File.
type reports struct {
	logged  strings.Builder
	reloads []error
}

func (r *reports) options(poll time.Duration) *auth.FileOptions {
	return &auth.FileOptions{
		Poll:     poll,
		Logger:   slog.New(slog.NewTextHandler(&r.logged, nil)),
		OnReload: func(err error) { r.reloads = append(r.reloads, err) },
	}
}

func (r *reports) want(t *testing.T, reloads, failures int) {
	t.Helper()
	failed := 0
	for _, err := range r.reloads {
		if err != nil {
			failed++
		}
	}
	if len(r.reloads) != reloads || failed != failures {
		t.Errorf("reports %v, want %d of which %d failed", r.reloads, reloads, failures)
	}
	if logged := strings.Count(r.logged.String(), "\n"); logged != reloads {
		t.Errorf("%d log records, want %d:\n%s", logged, reloads, &r.logged)
	}
}

const poll = 10 * time.Second

// tick lets a File poll once.
func tick() {
	time.Sleep(poll)
	synctest.Wait()
}

func TestReloadOnDemand(t *testing.T) {
	var r reports
	path := writeFile(t, sha256Line("c", "old"))
	f := mustOpen(t, path, r.options(0))
	rewrite(t, path, sha256Line("c", "new"))
	mustSignIn(t, f, "c", "old", "c")

	before := f.Revision()
	if err := f.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSignIn(t, f, "c", "new", "c")
	mustRefuse(t, f, "c", "old")
	if f.Revision() == before {
		t.Error("the revision did not change")
	}
	r.want(t, 1, 0)

	before = f.Revision()
	if err := f.Reload(t.Context()); err != nil || f.Revision() != before {
		t.Errorf("got %v, revision %d after %d, though nothing changed", err, f.Revision(), before)
	}
	r.want(t, 1, 0)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Reload(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for an ended context", err)
	}
}

func TestReloadFailureKeepsTheOld(t *testing.T) {
	good := sha256Line("c", "old")
	for name, spoil := range map[string]func(path string) error{
		"malformed": func(path string) error { return os.WriteFile(path, []byte(good+"\nhush\n"), 0o600) },
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"missing":   os.Remove,
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			var r reports
			path := writeFile(t, good)
			f := mustOpen(t, path, r.options(0))
			before := f.Revision()
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := f.Reload(t.Context()); err == nil || strings.Contains(err.Error(), "hush") {
					t.Errorf("got %v", err)
				}
			}
			r.want(t, 1, 1)
			mustSignIn(t, f, "c", "old", "c")
			if f.Revision() != before {
				t.Error("the revision changed without the contents")
			}

			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			rewrite(t, path, good)
			if err := f.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			r.want(t, 2, 1)
		})
	}
}

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reports
		path := writeFile(t, sha256Line("c", "old"))
		f := mustOpen(t, path, r.options(poll))
		tick()
		r.want(t, 0, 0)

		rewrite(t, path, sha256Line("c", "new"))
		mustSignIn(t, f, "c", "old", "c")
		tick()
		mustSignIn(t, f, "c", "new", "c")
		mustRefuse(t, f, "c", "old")
		r.want(t, 1, 0)

		rewrite(t, path, "hush")
		tick()
		tick()
		tick()
		r.want(t, 2, 1)
		rewrite(t, path, "# another fault", "hush")
		tick()
		r.want(t, 3, 2)
		mustSignIn(t, f, "c", "new", "c")

		rewrite(t, path, sha256Line("c", "new"))
		tick()
		tick()
		r.want(t, 4, 2)
		if strings.Contains(r.logged.String(), "hush") {
			t.Errorf("the log quotes the file:\n%s", &r.logged)
		}

		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
		rewrite(t, path, sha256Line("c", "newest"))
		tick()
		mustSignIn(t, f, "c", "new", "c")
		r.want(t, 4, 2)
	})
}

// TestCloseWaits: Close waits for the poll that is under way.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, sha256Line("c", "old"))
		f := mustOpen(t, path, &auth.FileOptions{
			Poll:     poll,
			OnReload: func(error) { time.Sleep(time.Hour) },
		})
		rewrite(t, path, sha256Line("c", "new"))
		tick()
		start := time.Now()
		if err := f.Close(); err != nil || time.Since(start) != time.Hour {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// TestReloadUnderLoad rotates a secret repeatedly, as an operator does: add the new one,
// switch the client, remove the old one. No request fails, and the removed secret is
// refused after the reload.
func TestReloadUnderLoad(t *testing.T) {
	const rotations, clients = 50, 4
	secrets := make([]string, rotations+1)
	for i := range secrets {
		secrets[i] = auth.NewSecret()
	}
	path := writeFile(t, sha256Line("c", secrets[0]))
	f := mustOpen(t, path, nil)
	v, err := auth.Cache(f, nil)
	if err != nil {
		t.Fatal(err)
	}

	var current sync.Map // client → secret
	use := func(secret string) {
		for i := range clients {
			current.Store(i, secret)
		}
	}
	use(secrets[0])
	ctx, stop := context.WithCancel(t.Context())
	var inUse sync.RWMutex // held to read while a client uses its secret
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			for ctx.Err() == nil {
				inUse.RLock()
				secret, _ := current.Load(i)
				if _, err := v.Verify(t.Context(), "c", secret.(string)); err != nil {
					t.Errorf("a good secret failed: %v", err)
				}
				inUse.RUnlock()
			}
		})
	}
	load := func(lines ...string) {
		rewrite(t, path, lines...)
		if err := f.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for i, next := range secrets[1:] {
		old := secrets[i]
		load(sha256Line("c", old), sha256Line("c", next))
		inUse.Lock() // no request with the old one is under way
		use(next)
		inUse.Unlock()
		load(sha256Line("c", next))
		mustRefuse(t, v, "c", old)
		mustRefuse(t, f, "c", old)
	}
	stop()
	group.Wait()
}
