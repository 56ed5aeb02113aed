package auth_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

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
		sha256Line("rotating", "old")+" owner=acme",
		sha256Line("rotating", "new")+" owner=acme\r",
		sha256Line("gone", "s")+" disabled",
		"reserved:disabled",
		sha256Line("test", "123£"),
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

func TestPBKDF2Line(t *testing.T) {
	var work auth.Work
	line := mustLine(auth.CountedPBKDF2Line(&work, "human", "correct horse"))
	if other := mustLine(auth.CountedPBKDF2Line(&work, "human", "correct horse")); other == line {
		t.Error("two lines for one secret have one salt")
	}
	if !strings.HasPrefix(line, "human:pbkdf2-sha256:600000:") || work.Rounds.Load() != 2*600_000 {
		t.Errorf("got %s after %d rounds", line, work.Rounds.Load())
	}
	f, err := auth.OpenCountedFile(&work, writeFile(t, line), nil)
	if err != nil {
		t.Fatal(err)
	}
	mustSignIn(t, f, "human", "correct horse", "human")
	mustRefuse(t, f, "human", "correct horse ")
}

// TestFilePBKDF2 signs in with a hash of the real cost, made by hashlib.pbkdf2_hmac of
// Python.
func TestFilePBKDF2(t *testing.T) {
	f := mustOpen(t, writeFile(t, "human:pbkdf2-sha256:600000:30313233343536373839616263646566:91828083f760ed60bb550e24f3e89aa29bbcb27c4219d034c4c4f03c2e6db9d9"), nil)
	mustSignIn(t, f, "human", "correct horse", "human")
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

// TestFileFields: each line says everything about its secret, with fields in any order.
func TestFileFields(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		path := writeFile(t)
		if err := os.WriteFile(path, []byte(strings.Join([]string{
			"# comment", "", "begin", " \t ",
			sha256Line("plain", "s"),
			sha256Line("acme", "old") + " owner=customer-12 name=2026 until=2999-01-01T00:00:00Z",
			sha256Line("acme", "new") + " \tname=2027\t owner=customer-12 ",
			sha256Line("gone", "s") + " disabled owner=customer-13",
			"# another",
			"reserved:disabled",
			"retired:disabled owner=customer-14",
			"end", "",
		}, end)), 0o600); err != nil {
			t.Fatal(err)
		}
		f := mustOpen(t, path, nil)
		mustSignIn(t, f, "plain", "s", "plain")
		mustSignIn(t, f, "acme", "old", "customer-12")
		mustSignIn(t, f, "acme", "new", "customer-12")
		mustRefuse(t, f, "gone", "s")
		for _, id := range []string{"reserved", "retired", "customer-12", "begin", "end"} {
			mustRefuse(t, f, id, "s")
		}
		for secret, name := range map[string]string{"old": "2026", "new": "2027"} {
			if client, err := f.Verify(t.Context(), "acme", secret); err != nil || client.SecretName != name {
				t.Errorf("%s: got %+v, %v", secret, client, err)
			}
		}
		if client, err := f.Verify(t.Context(), "plain", "s"); err != nil || client.SecretName != "" {
			t.Errorf("got %+v, %v", client, err)
		}
	}
}

// TestMostRounds: a check can take as many rounds as the error says, but no more.
func TestMostRounds(t *testing.T) {
	for _, lines := range [][]string{
		{auth.CheapPBKDF2Line("c", "s", 10_000_000)},
		{auth.CheapPBKDF2Line("c", "s", 9_400_000), auth.CheapPBKDF2Line("c", "s2", 600_000)},
	} {
		f, err := auth.OpenCountedFile(new(auth.Work), writeFile(t, lines...), nil)
		if err != nil {
			t.Fatal(err)
		}
		mustSignIn(t, f, "c", "s", "c")
	}
}

// TestCutFile: a file is refused wherever it was cut off.
func TestCutFile(t *testing.T) {
	secrets := []string{
		sha256Line("acme", "s") + " owner=customer-12", sha256Line("gone", "s") + " disabled",
		auth.CheapPBKDF2Line("human", "h", 600_000) + " until=2999-01-01T00:00:00Z", "reserved:disabled",
	}
	for name, text := range map[string]string{
		"plain":         strings.Join(slices.Concat([]string{"begin"}, secrets, []string{"end", ""}), "\n"),
		"commented":     strings.Join(slices.Concat([]string{"# clients", "", "begin", "# all"}, secrets, []string{"# done", "end", ""}), "\n"),
		"CRLF":          strings.Join(slices.Concat([]string{"begin"}, secrets, []string{"end", ""}), "\r\n"),
		"without field": strings.Join([]string{"begin", sha256Line("end", "s"), sha256Line("begin", "s"), "end", ""}, "\n"),
	} {
		path := writeFile(t)
		open := func(text string) error {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := auth.OpenFile(path, nil)
			return err
		}
		if err := open(text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range len(text) {
			if open(text[:i]) == nil {
				t.Errorf("%s: the first %d of %d bytes are accepted", name, i, len(text))
			}
		}
	}
}

// TestOneLinerOfTheDocumentation runs the command of the package documentation.
func TestOneLinerOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "//\tumask ")
	command, _, _ := strings.Cut(rest, "\n//\n")
	command = "umask " + strings.ReplaceAll(command, "\n//\t", "\n")
	for _, program := range []string{"sh", "sha256sum", "cut"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	run := exec.CommandContext(t.Context(), "sh", "-euc", command)
	run.Dir = dir
	run.Env = append(os.Environ(), "SECRET=open-sesame-open-sesame")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	f := mustOpen(t, filepath.Join(dir, "credentials"), nil)
	mustSignIn(t, f, "acme", "open-sesame-open-sesame", "acme")
}

func TestFileRefuses(t *testing.T) {
	const good = "good:sha256:" + hushSum
	salt, long := strings.Repeat("ab", 16), strings.Repeat("ab", 65)
	nine := make([]string, 9)
	nineSlow := make([]string, 9)
	for i := range nine {
		nine[i] = sha256Line("c", fmt.Sprint(i))
		nineSlow[i] = auth.CheapPBKDF2Line("c", fmt.Sprint(i), 600_000)
	}
	var pairs []string // of several clients, so that the first of them is named by no chance
	for id := range strings.SplitSeq("defghijk", "") {
		pairs = append(pairs, auth.CheapPBKDF2Line(id, "1", 600_000), auth.CheapPBKDF2Line(id, "2", 600_000))
	}
	body := func(lines ...string) []string { return slices.Concat([]string{"begin"}, lines, []string{"end"}) }
	tests := []struct {
		name  string
		lines []string
		line  int
	}{
		{"empty", nil, 1},
		{"only comments", []string{"# no clients", "", "#"}, 3},
		{"no colon", body(good, "hush"), 3},
		{"no hash", body(good, "c:sha256:"), 3},
		{"kind alone", body(good, "c:sha256"), 3},
		{"nothing", body(good, "c:"), 3},
		{"a secret", body(good, "c:hush"), 3},
		{"other kind", body(good, "c:md5:"+hushSum), 3},
		{"kind in capitals", body(good, "c:SHA256:"+hushSum), 3},
		{"short hash", body(good, "c:sha256:"+hushSum[1:]), 3},
		{"long hash", body(good, "c:sha256:"+hushSum+"00"), 3},
		{"no hexadecimal digit", body(good, "c:sha256:g"+hushSum[1:]), 3},
		{"sha256sum with its dash", body(good, "c:sha256:"+hushSum+"  -"), 3},
		{"hash of nothing", body(good, fmt.Sprintf("c:sha256:%x", sha256.Sum256(nil))), 3},
		{"space before", body(good, " c:sha256:"+hushSum), 3},
		{"byte order mark", body("\ufeff" + good), 2},
		{"no id", body(good, ":sha256:"+hushSum), 3},
		{"id beyond ASCII", body(good, "ä:sha256:"+hushSum), 3},
		{"long id", body(good, strings.Repeat("c", 129)+":disabled"), 3},
		{"long line", body(good, "c:sha256:"+hushSum+" owner="+strings.Repeat("c", 100_000)), 3},
		{"disabled with a value", body(good, "c:disabled:"), 3},
		{"disabled with a reason", body(good, "c:disabled:hush"), 3},
		{"same hash twice", body(good, "", good), 4},
		{"same hash in capitals", body(good, "good:sha256:"+strings.ToUpper(hushSum)), 3},
		{"disabled twice", body("c:disabled", "c:disabled"), 3},
		{"nine secrets", body(nine...), 10},
		{"nine slow secrets", body(nineSlow...), 10},
		{"property on a line of its own", []string{good, "good:owner:a"}, 1},
		{"fields without begin", []string{good, "c:sha256:" + hushSum + " name=a"}, 1},
		{"end without begin", []string{good, "end"}, 1},
		{"begin after a line", []string{good, "begin", "end"}, 1},

		{"begin twice", []string{"begin", "begin", good, "end"}, 2},
		{"begin with more", []string{"begin ", good, "end"}, 1},
		{"begin in capitals", []string{"BEGIN", good, "END"}, 1},
		{"byte order mark before begin", []string{"\ufeffbegin", good, "end"}, 1},
		{"no end", []string{"begin", good}, 2},
		{"no end but a comment", []string{"begin", good, "# end"}, 3},
		{"line after end", []string{"begin", good, "end", "c:disabled"}, 4},
		{"comment after end", []string{"begin", good, "end", "#"}, 4},
		{"end twice", []string{"begin", good, "end", "end"}, 4},
		{"no clients", []string{"begin", "# none", "end"}, 3},
		{"owner on a line of its own", []string{"begin", good, "good:owner:a", "end"}, 3},
		{"owner of another on a line of its own", []string{"begin", good, "c:owner:c", "end"}, 3},
		{"unknown field", []string{"begin", good + " note=hush", "end"}, 2},
		{"field in capitals", []string{"begin", good + " Owner=a", "end"}, 2},
		{"word", []string{"begin", good + " hush", "end"}, 2},
		{"dash", []string{"begin", good + "  -", "end"}, 2},
		{"comment on a line", []string{"begin", good + " # hush", "end"}, 2},
		{"non-breaking space", []string{"begin", good + " owner=a\u00a0name=b", "end"}, 2},
		{"owner twice", []string{"begin", good + " owner=a owner=a", "end"}, 2},
		{"field disabled twice", []string{"begin", good + " disabled disabled", "end"}, 2},
		{"field owner without value", []string{"begin", good + " owner", "end"}, 2},
		{"field owner, empty", []string{"begin", good + " owner=", "end"}, 2},
		{"field owner with colon", []string{"begin", good + " owner=a:b", "end"}, 2},
		{"long owner", []string{"begin", good + " owner=" + strings.Repeat("a", 129), "end"}, 2},
		{"empty name", []string{"begin", good + " name=", "end"}, 2},
		{"name beyond ASCII", []string{"begin", good + " name=ä", "end"}, 2},
		{"disabled with =", []string{"begin", good + " disabled=", "end"}, 2},
		{"not disabled", []string{"begin", good + " disabled=false", "end"}, 2},
		{"until a day", []string{"begin", good + " until=2027-01-01", "end"}, 2},
		{"until without zone", []string{"begin", good + " until=2027-01-01T00:00:00", "end"}, 2},
		{"until the zero time", []string{"begin", good + " until=0001-01-01T00:00:00Z", "end"}, 2},
		{"until nothing", []string{"begin", good + " until=", "end"}, 2},
		{"until of no secret", []string{"begin", "c:disabled until=2027-01-01T00:00:00Z", "end"}, 2},
		{"name of no secret", []string{"begin", "c:disabled name=a", "end"}, 2},
		{"owners differ", []string{"begin", sha256Line("c", "1") + " owner=a", sha256Line("c", "2") + " owner=b", "end"}, 3},
		{"owners differ by default", []string{"begin", sha256Line("c", "1") + " owner=a", sha256Line("c", "2"), "end"}, 3},
		{"one secret disabled", []string{"begin", sha256Line("c", "1"), sha256Line("c", "2") + " disabled", "end"}, 3},
		{"one secret enabled", []string{"begin", sha256Line("c", "1") + " disabled", sha256Line("c", "2"), "end"}, 3},
		{"disabled beside enabled", []string{"begin", sha256Line("c", "1"), "c:disabled", "end"}, 3},
		{"disabled beside a secret", []string{"begin", sha256Line("c", "1") + " disabled", "c:disabled", "end"}, 3},
		{"secret beside disabled", []string{"begin", "c:disabled", sha256Line("c", "1") + " disabled", "end"}, 3},
		{"two names alike", []string{"begin", sha256Line("c", "1") + " name=a", sha256Line("c", "2") + " name=a", "end"}, 3},
		{"same hash twice, one of them with a name", []string{"begin", good, good + " name=a", "end"}, 3},

		{"many rounds in one", body(auth.CheapPBKDF2Line("c", "1", 9_400_001), auth.CheapPBKDF2Line("c", "2", 600_000)), 2},
		{"many rounds in two", body(append([]string{good, auth.CheapPBKDF2Line("c", "1", 9_400_001)}, pairs...)...), 4},

		{"few rounds", body("c:pbkdf2-sha256:599999:" + salt + ":" + hushSum), 2},
		{"many rounds", body("c:pbkdf2-sha256:10000001:" + salt + ":" + hushSum), 2},
		{"huge rounds", body("c:pbkdf2-sha256:99999999999999999999:" + salt + ":" + hushSum), 2},
		{"signed rounds", body("c:pbkdf2-sha256:+600000:" + salt + ":" + hushSum), 2},
		{"rounds with zeros", body("c:pbkdf2-sha256:0600000:" + salt + ":" + hushSum), 2},
		{"no rounds", body("c:pbkdf2-sha256::" + salt + ":" + hushSum), 2},
		{"no salt", body("c:pbkdf2-sha256:600000::" + hushSum), 2},
		{"short salt", body("c:pbkdf2-sha256:600000:" + salt[2:] + ":" + hushSum), 2},
		{"odd salt", body("c:pbkdf2-sha256:600000:" + salt + "a:" + hushSum), 2},
		{"long salt", body("c:pbkdf2-sha256:600000:" + long + ":" + hushSum), 2},
		{"short key", body("c:pbkdf2-sha256:600000:" + salt + ":" + hushSum[2:]), 2},
		{"one field more", body("c:pbkdf2-sha256:600000:" + salt + ":" + hushSum + ":"), 2},
		{"one field less", body("c:pbkdf2-sha256:600000:" + hushSum), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "credentials")
			if err := os.WriteFile(path, []byte(strings.Join(append(tt.lines, ""), "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
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

// TestFileInvisible: what nobody sees in a file is named, with what to do, and not what it makes of
// the line.
func TestFileInvisible(t *testing.T) {
	good := sha256Line("good", "s")
	utf16 := func(text string) string {
		var all strings.Builder
		for _, c := range []byte(text) {
			all.WriteByte(c)
			all.WriteByte(0)
		}
		return all.String()
	}
	file := "begin\n" + good + "\nend\n"
	for text, want := range map[string]string{
		"\ufeff" + file:                                      ":1: line starts with a byte order mark (U+FEFF), which nobody sees: save",
		"\ufeff# clients\n" + file:                           ":1: line starts with a byte order mark (U+FEFF), which nobody sees: save",
		"\xff\xfe" + utf16(file):                             ":1: file is in UTF-16, or no text: save",
		"\xfe\xff\x00" + utf16(file):                         ":1: file is in UTF-16, or no text: save",
		utf16(file):                                          ":1: file is in UTF-16, or no text: save",
		utf16("# clients\n" + file):                          ":2: file is in UTF-16, or no text: save",
		strings.ReplaceAll(file, "\n", "\r"):                 ":1: line has a carriage return (U+000D): save",
		"# clients\r" + strings.ReplaceAll(file, "\n", "\r"): ":1: line has a carriage return (U+000D): save",

		" " + file:                                       ":1: line starts with a blank, or has one after begin or end: remove",
		"begin\n\t" + good + "\nend\n":                   ":2: line starts with a blank, or has one after begin or end: remove",
		"begin \n" + good + "\nend\n":                    ":1: line starts with a blank, or has one after begin or end: remove",
		"begin\n" + good + "\nend\t\n":                   ":3: line starts with a blank, or has one after begin or end: remove",
		"begin\ngo\u200bod" + good + "\nend\n":           ":2: line has the invisible character U+200B: remove",
		"begin\n" + good + "\u00a0name=a\nend\n":         ":2: line has the invisible character U+00A0: remove",
		"begin\n" + good + "\n" + good + "\n\u2060end\n": ":4: line has the invisible character U+2060: remove",
	} {
		path := filepath.Join(t.TempDir(), "credentials")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := auth.OpenFile(path, nil); err == nil || !strings.HasPrefix(err.Error(), "auth: "+path+want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte("# caf\xe9\x00 \u200b\r\r\n"+strings.ReplaceAll(file, "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	mustSignIn(t, mustOpen(t, path, nil), "good", "s", "good") // a comment can contain anything
}

// TestFileWithoutBegin: in the first format, files had neither begin nor end. The error says
// how to convert such a file.
func TestFileWithoutBegin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials")
	text := "# clients\n" + sha256Line("acme", "s") + "\nacme:owner:customer-12\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := auth.OpenFile(path, nil)
	want := "auth: " + path + ":2: first line is not begin: put the lines begin and end around all others, and write owner=<id> and disabled after the hashes, not on lines of their own"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSHA256Line(t *testing.T) {
	for _, secret := range []string{auth.GenerateSecret().Reveal(), "0123456789abcdef", "££££££££££££££££"} {
		if line, err := auth.SHA256Line("c", auth.NewSecret(secret)); err != nil || line != sha256Line("c", secret) {
			t.Errorf("%q: got %q, %v", secret, line, err)
		}
	}
}

func TestLinesRefuse(t *testing.T) {
	if line, err := auth.SHA256Line("c", auth.NewSecret("0123456789abcde")); err == nil || line != "" {
		t.Errorf("SHA256Line of 15 characters: got %q, %v", line, err)
	}
	for _, tt := range []struct {
		id, secret string
		chosen     bool // by a person: PBKDF2Line accepts it
	}{
		{"", long("s"), false},
		{"a:b", long("s"), false},
		{"#", long("s"), false},
		{"c", long("a\tb"), false},
		{"c", long("a\x7fb"), false},
		{"c", long("\xff"), false},
		{"c", "", false},
		{"c", "£££££££", false},
		{"c", "££££££££", true},
	} {
		if line, err := auth.SHA256Line(tt.id, auth.NewSecret(tt.secret)); err == nil || line != "" {
			t.Errorf("SHA256Line of %q and %q: got %q, %v", tt.id, tt.secret, line, err)
		}
		line, err := auth.CountedPBKDF2Line(new(auth.Work), tt.id, tt.secret)
		if (err == nil) != tt.chosen || (line != "") != tt.chosen {
			t.Errorf("PBKDF2Line of %q and %q: got %q, %v", tt.id, tt.secret, line, err)
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
		path := writeFile(t, sha256Line("c", "s"))
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
	path := writeFile(t, sha256Line("c", "s"))
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
	path := writeFile(t, sha256Line("c", "s"))
	for _, options := range []auth.FileOptions{{Poll: -1}, {SlowHashes: -1}} {
		if f, err := auth.OpenFile(path, &options); err == nil || f != nil {
			t.Errorf("got %v, %v, want an error", f, err)
		}
	}
}

// FuzzFile: the parser doesn't panic. Anything that it accepts survives encoding. An error
// has the number of an existing line, and doesn't quote it.
func FuzzFile(f *testing.F) {
	salt := strings.Repeat("ab", 16)
	for _, seed := range []string{
		"c:sha256:" + hushSum,
		"begin\nc:pbkdf2-sha256:600000:" + salt + ":" + hushSum + "\nend\n",
		"# c\r\n\r\nbegin\r\nc:disabled\r\nend\r\n",
		"begin\nc:sha256:" + hushSum + "\nc:sha256:" + strings.ToUpper(hushSum) + "\nend\n",
		"begin\nc:sha256:" + hushSum + " owner=o\tname=n until=2027-01-02T03:04:05.6+01:00  disabled\n# c\nd:disabled owner=e\nend\n",
		"", "\n", ":", "begin\nc:owner:d\nend\n", "c:disabled:", "\ufeff", "c:disabled\n#\n", "begin\n", "end\n", "begin\nend\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		printed, line, err := auth.Reprint(text)
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
		if again, _, err := auth.Reprint(printed); err != nil || again != printed {
			t.Fatalf("%q is encoded as %q, decoded as %q, %v", text, printed, again, err)
		}
		for line := range strings.Lines(printed) {
			first := strings.Fields(line)[0]
			if strings.Contains(first, ":") && !strings.Contains(strings.ToLower(text), strings.ToLower(first)) {
				t.Fatalf("%q has the invented entry %q", text, first)
			}
		}
		cut := printed[:len(text)%len(printed)]
		if _, _, err := auth.Reprint(cut); err == nil {
			t.Fatalf("accepted the cut file %q", cut)
		}
	})
}

// sha256Line returns a line for a secret of any length.
func sha256Line(id, secret string) string {
	return fmt.Sprintf("%s:sha256:%x", id, sha256.Sum256([]byte(secret)))
}
