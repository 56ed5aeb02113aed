package contract_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

var sampleLanguages = []string{"go", "java", "javascript", "php", "python"}

var samplePattern = regexp.MustCompile(`(?s)<code class="sample">(.*?)</code>`)

// sample returns a sample of the page, with the key.
func sample(t *testing.T, key deliver.Key, language string) string {
	t.Helper()
	st := store.NewMemory()
	hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/")))
	pages, err := portal.New(hooktest.NewHandler(t, st, hooktest.NewVerifier(t, "acme", "a-long-random-secret"), nil), &portal.Options{
		Client:     func(*http.Request) (string, string, error) { return "acme", "ann", nil },
		SignInURL:  "/login",
		SigningKey: deliver.SigningKey(keyring{key}),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest("GET", "/?page=sample&show=1&lang="+language, nil))
	found := samplePattern.FindStringSubmatch(w.Body.String())
	if found == nil {
		t.Fatalf("%d: no sample in %s", w.Code, w.Body)
	}
	text := html.UnescapeString(found[1])
	if !strings.Contains(text, key.Reveal()) {
		t.Fatalf("no key in %s", text)
	}
	return text
}

// startSample starts a program that verifies with a sample, and ignores the keys that it gets.
func startSample(t *testing.T, text, language string) library {
	t.Helper()
	dir := t.TempDir()
	add := func(name, from string) {
		text, err := os.ReadFile(filepath.Join("samples", from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	switch language {
	case "go":
		write(t, filepath.Join(dir, "sample.go"), []byte(strings.Replace(text, "package receiver", "package main", 1)))
		write(t, filepath.Join(dir, "go.mod"), []byte("module sample\n\ngo 1.24\n"))
		add("main.go", "main_go.txt")
		build := goCommand(t, "build", "-o", "sample", ".")
		build.Dir = dir
		run(t, build)
		return startLibrary(t, command(t, dir, filepath.Join(dir, "sample")))
	case "python":
		requireTool(t, "python3", "--version")
		write(t, filepath.Join(dir, "sample.py"), []byte(text))
		add("main.py", "main.py")
		return startLibrary(t, command(t, dir, "python3", "main.py"))
	case "javascript":
		requireTool(t, "node", "--version")
		write(t, filepath.Join(dir, "sample.mjs"), []byte(text))
		add("main.mjs", "main.mjs")
		return startLibrary(t, command(t, dir, "node", "main.mjs"))
	case "java":
		requireTool(t, "javac", "--version")
		write(t, filepath.Join(dir, "Notification.java"), []byte(text))
		add("Main.java", "Main.java")
		run(t, command(t, dir, "javac", "Main.java", "Notification.java"))
		return startLibrary(t, command(t, dir, "java", "-cp", dir, "Main"))
	default:
		requireTool(t, "php", "--version")
		write(t, filepath.Join(dir, "sample.php"), []byte(text))
		add("main.php", "main.php")
		return startLibrary(t, command(t, dir, "php", "main.php"))
	}
}

// TestSamples: the samples of the page accept what the sender signs, also during a rotation, and
// nothing that is changed, missing, old, or signed with another key.
func TestSamples(t *testing.T) {
	key, other := deliver.GenerateKey(), deliver.GenerateKey()
	const body = `{"name":"Grüße, 世界 🎉","escaped":"\u00e9\"\\"}`
	for _, language := range sampleLanguages {
		t.Run(language, func(t *testing.T) {
			verify := startSample(t, sample(t, key, language), language).verify
			d := deliverTo(t, keyring{key}, body)
			for name, genuine := range map[string]delivery{"delivery": d, "rotation": deliverTo(t, keyring{other, key}, body)} {
				if !verify(key, genuine) {
					t.Errorf("%s is refused", name)
				}
			}
			old := time.Now().Add(-time.Hour)
			forged := map[string]delivery{
				"other key":         deliverTo(t, keyring{other}, body),
				"body":              {d.header, body + " "},
				"id":                {withField(d.header, "Webhook-Id", "msg_2"), body},
				"timestamp":         {withField(d.header, "Webhook-Timestamp", fmt.Sprint(time.Now().Unix()+60)), body},
				"no id":             {withField(d.header, "Webhook-Id", ""), body},
				"no timestamp":      {withField(d.header, "Webhook-Timestamp", ""), body},
				"odd timestamp":     {withField(d.header, "Webhook-Timestamp", "1e9"), body},
				"long timestamp":    {withField(d.header, "Webhook-Timestamp", strings.Repeat("9", 5000)), body},
				"no signature":      {withField(d.header, "Webhook-Signature", ""), body},
				"shorter signature": {withField(d.header, "Webhook-Signature", d.header.Get("Webhook-Signature")[:20]), body},
				"old": {withField(withField(d.header, "Webhook-Timestamp", fmt.Sprint(old.Unix())), "Webhook-Signature",
					goLibrary(t).sign(key, d.header.Get("Webhook-Id"), fmt.Sprint(old.Unix()), body)), body},
			}
			for name, f := range forged {
				if verify(key, f) {
					t.Errorf("%s: accepted", name)
				}
			}
		})
	}
}

// TestSamplesWithoutKey: a sample whose key isn't put in, empty or shorter than every real one
// accepts nothing, not even what is signed with that key, as one that decodes it leniently would.
func TestSamplesWithoutKey(t *testing.T) {
	const body = `{"type":"module.updated"}`
	encoded := func(secret []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(secret) }
	short := bytes.Repeat([]byte("k"), 23)
	secrets := map[string][]byte{
		"empty":                             {},
		"short":                             short,
		"placeholder, with _ as in URLs":    {0x60, 0xe5, 0x11, 0xfc, 0xa1, 0x18},
		"placeholder, without _":            {0x60, 0xe5, 0x11, 0x28, 0x46},
		"placeholder, as it is":             []byte("YOUR_KEY"),
		"placeholder, as it is, and prefix": []byte("whsec_YOUR_KEY"),
	}
	for _, language := range sampleLanguages {
		t.Run(language, func(t *testing.T) {
			key := deliver.GenerateKey()
			text := sample(t, key, language)
			start := func(constant string) func(secret []byte) bool {
				verify := startSample(t, strings.Replace(text, key.Reveal(), constant, 1), language).verify
				return func(secret []byte) bool { return verify(key, signedWith(secret, body)) }
			}
			for _, constant := range []string{"whsec_YOUR_KEY", "", "whsec_", encoded(short)} {
				accepts := start(constant)
				for name, secret := range secrets {
					if accepts(secret) {
						t.Errorf("the key %q: accepted a signature with the key %s", constant, name)
					}
				}
			}
			// The shortest ones, with each length of the padding.
			for size := range 3 {
				secret := bytes.Repeat([]byte("k"), len(short)+1+size)
				if !start(encoded(secret))(secret) {
					t.Errorf("refused a key of %d bytes", len(secret))
				}
			}
		})
	}
}

// signedWith returns a delivery that is signed with any bytes, unlike that of a sender, which only
// has real keys.
func signedWith(secret []byte, body string) delivery {
	timestamp := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "msg_1.%s.%s", timestamp, body)
	return delivery{http.Header{
		"Webhook-Id":        {"msg_1"},
		"Webhook-Timestamp": {timestamp},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}, body}
}
