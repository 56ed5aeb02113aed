package redact_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/redact"
)

// rowError is a driver's error with the secret in a field.
type rowError struct{ Detail string }

func (e rowError) Error() string { return e.Detail }

func TestErrorMatchesItsCauseAndShowsNothingOfIt(t *testing.T) {
	cause := fmt.Errorf("insert: %w: %w", rowError{"T0KEN"}, fs.ErrExist)
	err := redact.Error("insert: row exists", cause)
	var row rowError
	if !errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrClosed) || !errors.As(err, &row) || row.Detail != "T0KEN" {
		t.Errorf("%v does not match its cause", err)
	}
	type record struct {
		Err    error
		hidden error
	}
	var out strings.Builder
	for _, value := range []any{err, []error{err}, record{err, err}, &record{err, err}, fmt.Errorf("store: %w", err)} {
		out.WriteString(hooktest.Prints(value))
	}
	for _, part := range []string{"T0KEN", "54304b454e", "54304B454E"} {
		if strings.Contains(out.String(), part) {
			t.Errorf("the cause is shown:\n%s", &out)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		if got := fmt.Sprintf(verb, err); got != "insert: row exists" {
			t.Errorf("%s gives %s", verb, got)
		}
	}
}

func TestErrorWithoutCause(t *testing.T) {
	err := redact.Error("failed", nil)
	if err.Error() != "failed" || errors.Is(err, fs.ErrExist) || errors.As(err, new(rowError)) {
		t.Errorf("got %v", err)
	}
}

// spellings are ways in which drivers and servers print their arguments.
func spellings(text string) []string {
	inJSON, _ := json.Marshal(text)
	return []string{
		text, strconv.Quote(text), url.QueryEscape(text), url.PathEscape(text), string(inJSON),
		strings.ReplaceAll(strconv.Quote(text), "/", `\/`), html.EscapeString(text),
		"at " + text + ": " + text, (&url.Error{Op: "Get", URL: text, Err: fs.ErrExist}).Error(),
	}
}

func TestSecretsInText(t *testing.T) {
	for _, secret := range []string{"T0KEN", `T0KEN"quoted\`, "T0KEN & more", "a/b?T0KEN=%2F", "T0KEN\n", "T0KEN\u200b", "T0K", "ü<>", "üü"} {
		short := len(secret) < 4
		for _, text := range spellings(secret) {
			got := redact.Text(text, []string{"other", secret}, "", "")
			leaked := strings.Contains(got, "T0K") || strings.Contains(got, "ü") || strings.Contains(got, "%C3%BC")
			if leaked != short || strings.Contains(got, "[secret]") == short {
				t.Errorf("%s of %q becomes %s", text, secret, got)
			}
		}
	}
	if got := redact.Text("no such row", []string{""}, "", ""); got != "no such row" {
		t.Errorf("no secret gives %q", got)
	}
}

func TestURLInText(t *testing.T) {
	const shown, tail = "https://hooks.example.com:8443", "/services/T0KEN<>?k=QU3RY&x=%2F"
	for _, secret := range []string{shown + tail, tail, tail[1:], "/services/T0KEN<>", "services/T0KEN<>", "k=QU3RY&x=%2F"} {
		for _, text := range spellings(secret) {
			got := redact.Text(text, nil, shown+tail, shown)
			if strings.Contains(got, "T0KEN") || strings.Contains(got, "QU3RY") {
				t.Errorf("%s becomes %s", text, got)
			}
			if !strings.Contains(got, shown) && !strings.Contains(got, "[path]") {
				t.Errorf("%s becomes %s, which shows nothing", text, got)
			}
		}
	}
	for _, test := range []struct{ text, whole, shown, want string }{
		{"dial tcp: refused", "https://h.example/t0ken", "https://h.example", "dial tcp: refused"},
		{"no a in it: https://h.example/a", "https://h.example/a", "https://h.example", "no a in it: https://h.example"},
		{"no row /abc", "https://h.example/abc", "https://h.example", "no row [path]"},
		{"no row T0KEN, /T0KEN or T0KEN/x", "https://h.example/T0KEN/", "https://h.example", "no row [path], /[path] or [path]/x"},
		{"no row /ab", "https://h.example/ab", "https://h.example", "no row /ab"},
		{"Post https://u:p@h/t0ken", "https://u:p@h/t0ken", "https://h", "Post https://h"},
		{"no /in/T0KEN=a+b", "https://h/in/T0KEN%3Da%2Bb?x", "https://h", "no [path]"},
		{"no in/T0KEN=a+b", "https://h/in/T0KEN%3Da%2Bb", "https://h", "no [path]"},
		{"b=2&key=K3Yplain", "https://h/?key=K3Yplain&b=2", "https://h", "b=2&key=[path]"},
		{"is a=K3Y+plain%2B, not true", "https://h/?b=true&a=K3Y%20plain%2b", "https://h", "is a=[path], not true"},
		{"no /%zz", "https://h/%zz?%zz&a=K3Yplain", "https://h", "no [path]"},
		{"Post https://h/t0ken: refused", "https://h/t0ken", "https://h", "Post https://h: refused"},
		{"dial tcp: refused", "", "", "dial tcp: refused"},
	} {
		if got := redact.Text(test.text, nil, test.whole, test.shown); got != test.want {
			t.Errorf("%s becomes %s, want %s", test.text, got, test.want)
		}
	}
}

// TestURLs: of every URL in a text, only scheme, host and port are left.
func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"Post \"https://db.internal:8443/in/t0ken?key=s3cret\": refused": `Post "https://db.internal:8443/[path]": refused`,
		"HTTPS://db.internal?key=s3cret#top":                             "HTTPS://db.internal/[path]",
		"https://user:s3cret@db.internal/in":                             "https://db.internal/[path]",
		"https://user:s3cret@db.internal: refused":                       "https://db.internal: refused",
		"https://user:s3@cret@db.internal":                               "https://db.internal",
		"http://a/t0ken then https://user:s3cret@b and https://c:1":      "http://a/[path] then https://b and https://c:1",
		"mail ann@db.internal, ftp://db/in":                              "mail ann@db.internal, ftp://db/in",
	} {
		if got := redact.URLs(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestChosenTextHidesNothing: no part of a URL in the text is left because a secret, or the URL that
// a client sets, has the rest of it.
func TestChosenTextHidesNothing(t *testing.T) {
	const text = "can't replace https://user:pa55@hooks.example.com/in/t0ken?key=s3cret: refused"
	for _, chosen := range []string{
		"https", "https://", "https://hooks.example.com", "hooks.example.com", "replace https", "replace https:/", "user", "in/t",
	} {
		for _, whole := range []string{"/" + chosen, "/in?to=" + chosen, "/in?to=" + url.QueryEscape(chosen)} {
			whole = "https://relay.example.com" + whole
			if got := redact.Text(text, nil, whole, "https://relay.example.com"); containsAny(got, "pa55", "t0ken", "s3cret") {
				t.Errorf("with the URL %s: %s", whole, got)
			}
		}
		if got := redact.Text(text, []string{chosen}, "", ""); containsAny(got, "pa55", "t0ken", "s3cret") {
			t.Errorf("with the secret %s: %s", chosen, got)
		}
	}
	for _, whole := range []string{"https://hooks.example.com/", "https://hooks.example.com/in/", "https://hooks.example.com"} {
		if got := redact.Text("at https://hooks.example.com/in/t0ken, again", nil, whole, "https://hooks.example.com"); containsAny(got, "t0ken") {
			t.Errorf("with the URL %s: %s", whole, got)
		}
	}
	if got := redact.Text("password https://h.example/in", []string{"word https://h.example/in"}, "", ""); got != "pass[secret]" {
		t.Errorf("a secret that ends in a URL: %s", got)
	}
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// TestTextOfSeveral: a secret replaces nothing in what replaced another, and the longest
// one at a place wins.
func TestTextOfSeveral(t *testing.T) {
	const whole, shown = "https://h.example/t0ken", "https://h.example"
	for _, test := range []struct{ text, secret, want string }{
		{"pass word pass", "pass", "[secret] word [secret]"},
		{"secret and secret", "secret", "[secret] and [secret]"},
		{"path and /t0ken", "path", "[secret] and [path]"},
		{"GET " + whole, "http", "GET " + shown},
		{"GET " + whole, "https://h.ex", "GET " + shown},
		{"GET " + whole + " by t0ken", "example", "GET " + shown + " by [path]"},
	} {
		if got := redact.Text(test.text, []string{test.secret}, whole, shown); got != test.want {
			t.Errorf("%s without %s becomes %s, want %s", test.text, test.secret, got, test.want)
		}
	}
}

// FuzzText: no choice of a secret or a path makes a text more than twice as long.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"e", "ee", "eeee", "[secret]", "secr", "\"\"\"\"", "%25%25", "conn"} {
		f.Add(strings.Repeat(seed, 100), seed, "/"+seed)
	}
	f.Fuzz(func(t *testing.T, text, secret, path string) {
		got := redact.Text(text, []string{secret, secret}, "https://h"+path, "https://h")
		if len(got) > 2*len(text) {
			t.Errorf("%d bytes become %d", len(text), len(got))
		}
	})
}

func TestQuotes(t *testing.T) {
	const secret = "/hooks/T0KEN-abcdefghijkl?sig=0123456789"
	for _, text := range []string{
		"row contains (acme, https://h.example" + secret + ")",
		"row contains " + strconv.Quote(secret),
		`row contains \x` + hex.EncodeToString([]byte(secret)),
		`row contains \x` + strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"row contains " + secret[:len(secret)-12] + "…",
		"row contains …" + secret[len(secret)-14:],
		"row contains " + strings.ToUpper(secret),
		"row contains " + secret[20:28],
	} {
		if !redact.Quotes(text, secret) {
			t.Errorf("not found in %s", text)
		}
	}
	for text, secret := range map[string]string{
		"":                            secret,
		"/hooks":                      secret,
		"duplicate key":               secret,
		"no row /a in table":          "/a",
		"any text":                    "",
		"0123456 1234567 of a number": secret,
	} {
		if redact.Quotes(text, secret) {
			t.Errorf("%q found in %q", secret, text)
		}
	}
	for _, text := range []string{"row /t0k", "ROW /T0K", "row 2f74306b", "/t0k"} {
		if !redact.Quotes(text, "/t0k") {
			t.Errorf("short secret not found in %s", text)
		}
	}
}

// embedding is an error type with a fixed text inside, and a text that varies.
type embedding struct {
	fixedText
	secret string
}

type fixedText = redact.Fixed

func (e *embedding) Error() string { return e.secret }

func TestFixedIn(t *testing.T) {
	const text = redact.Fixed("no address")
	for _, err := range []error{text, fmt.Errorf("T0KEN: %w", text), &embedding{text, "T0KEN"}, errors.Join(fs.ErrExist, &embedding{text, "T0KEN"})} {
		if got, found := redact.FixedIn(err); got != text || !found {
			t.Errorf("%T: got %q, %v", err, got, found)
		}
	}
	if got, found := redact.FixedIn(errors.New("T0KEN")); found {
		t.Errorf("got %q of another error", got)
	}
}

// TestManyMatches: a stranger can choose both the text and the secrets, so that each secret matches
// everywhere. The text's length bounds the memory all the same.
func TestManyMatches(t *testing.T) {
	text := strings.Repeat("x", 8<<10)
	var longer []string // than the one before
	for size := 16; size < 128; size++ {
		longer = append(longer, text[:size])
	}
	for name, test := range map[string]struct {
		secrets []string
		whole   string
	}{
		"equal secrets":     {secrets: slices.Repeat([]string{text[:16]}, 450)},
		"different secrets": {secrets: longer},
		"values of a query": {whole: "https://h.example/?" + strings.Repeat("&=xxxxxxxx", 200)},
	} {
		var got string
		used := allocated(func() { got = redact.Text(text, test.secrets, test.whole, "https://h.example") })
		if used > 1<<20 {
			t.Errorf("%s: %d bytes", name, used)
		}
		if strings.Contains(got, "x") {
			t.Errorf("%s: shows %s", name, got)
		}
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	f() // without what only the first call allocates
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLongTextIsWithheld: no part of a text that is too long to search is shown, since a secret could
// be cut there. Known shows texts of any length.
func TestLongTextIsWithheld(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
	}{
		{"as long as possible", strings.Repeat("-", 8<<10-6) + "T0KEN-", strings.Repeat("-", 8<<10-6) + "[secret]-"},
		{"too long", strings.Repeat("-", 8<<10-5) + "T0KEN-", "withheld: it has 8193 bytes, too many to look for secrets"},
	} {
		if got := redact.Text(test.text, []string{"T0KEN"}, "", ""); got != test.want {
			t.Errorf("%s: %d bytes become %s", test.name, len(test.text), got)
		}
		if got, want := redact.Known(test.text, []string{"T0KEN"}, "", ""), strings.ReplaceAll(test.text, "T0KEN", "[secret]"); got != want {
			t.Errorf("%s: Known returns %s", test.name, got)
		}
	}
}

// TestLongSecrets: a caller's secret, such as a field of a request, can be far longer than the text
// of an error. Looking for it costs nothing then.
func TestLongSecrets(t *testing.T) {
	secret := strings.Repeat("\x80\"", 1<<19)
	used := allocated(func() { redact.Text("the session can't be decoded", []string{secret}, "", "") })
	if used > 64<<10 {
		t.Errorf("%d bytes", used)
	}
}
