package contract_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// delivery is a request as a receiver got it.
type delivery struct {
	header http.Header
	body   string
}

// library is a reference library of Standard Webhooks. Its functions are safe for concurrent
// use.
type library struct {
	verify func(key deliver.Key, d delivery) bool
	sign   func(key deliver.Key, id, timestamp, payload string) string
}

// goLibrary returns the library in Go.
func goLibrary(t *testing.T) library {
	webhook := func(key deliver.Key) *standardwebhooks.Webhook {
		w, err := standardwebhooks.NewWebhook(key.Reveal())
		if err != nil {
			t.Error(err)
		}
		return w
	}
	return library{
		verify: func(key deliver.Key, d delivery) bool { return webhook(key).Verify([]byte(d.body), d.header) == nil },
		sign: func(key deliver.Key, id, timestamp, payload string) string {
			seconds, err := strconv.ParseInt(timestamp, 10, 64)
			if err != nil {
				t.Error(err)
			}
			signature, err := webhook(key).Sign(id, time.Unix(seconds, 0), []byte(payload))
			if err != nil {
				t.Error(err)
			}
			return signature
		},
	}
}

// javaScriptLibrary returns the library from npm.
func javaScriptLibrary(t *testing.T) library {
	return startLibrary(t, command(t, packages(t), "node", "library.js"))
}

// pythonLibrary returns the library in Python. The Go module contains its source.
func pythonLibrary(t *testing.T) library {
	requireTool(t, "python3", "--version")
	cmd := command(t, "libraries", "python3", "library.py")
	cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(librarySources(t), "python"), "PYTHONDONTWRITEBYTECODE=1")
	return startLibrary(t, cmd)
}

// javaLibrary returns the library in Java. The Go module contains its source.
func javaLibrary(t *testing.T) library {
	requireTool(t, "javac", "--version")
	classes := t.TempDir()
	args := []string{"-d", classes, filepath.Join("libraries", "Library.java")}
	for _, pattern := range []string{"java/com/standardwebhooks/*.java", "java/com/standardwebhooks/exceptions/*.java"} {
		sources, err := filepath.Glob(filepath.Join(librarySources(t), "java", "src", "main", filepath.FromSlash(pattern)))
		if err != nil || len(sources) == 0 {
			t.Fatalf("%s: %v, %v", pattern, sources, err)
		}
		args = append(args, sources...)
	}
	run(t, command(t, ".", "javac", args...))
	return startLibrary(t, command(t, ".", "java", "-cp", classes, "Library"))
}

// librarySources returns the directory with the libraries in all languages.
func librarySources(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(run(t, goCommand(t, "list", "-m", "-f", "{{.Dir}}", "github.com/standard-webhooks/standard-webhooks/libraries")))
}

// startLibrary starts a program that responds to each line of input with one of output.
func startLibrary(t *testing.T, cmd *exec.Cmd) library {
	t.Helper()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // fails because we killed it
	})
	var mu sync.Mutex
	lines := bufio.NewReader(output)
	ask := func(fields ...string) string {
		mu.Lock()
		defer mu.Unlock()
		last := len(fields) - 1
		fields[last] = base64.StdEncoding.EncodeToString([]byte(fields[last]))
		if _, err := io.WriteString(input, strings.Join(fields, "\t")+"\n"); err != nil {
			t.Error(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(line)
	}
	return library{
		verify: func(key deliver.Key, d delivery) bool {
			h := d.header
			response := ask("verify", key.Reveal(), h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"), d.body)
			if response != "valid" && response != "invalid" {
				t.Errorf("response %q", response)
			}
			return response == "valid"
		},
		sign: func(key deliver.Key, id, timestamp, payload string) string {
			return ask("sign", key.Reveal(), id, timestamp, "", payload)
		},
	}
}

var libraries = []struct {
	name  string
	start func(t *testing.T) library
}{
	{"Go", goLibrary},
	{"JavaScript", javaScriptLibrary},
	{"Python", pythonLibrary},
	{"Java", javaLibrary},
}

// keyring has the keys of every client.
type keyring []deliver.Key

func (k keyring) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) { return k, nil }

// deliverTo sends a body, signed with the keys, and returns it as a receiver got it.
func deliverTo(t *testing.T, keys keyring, body string) delivery {
	t.Helper()
	received := make(chan delivery, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- delivery{r.Header, string(body)}
	}))
	defer receiver.Close()
	configurations := store.NewMemory()
	if err := configurations.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
		t.Fatal(err)
	}
	sender, err := deliver.New(configurations, keys, &deliver.Options{Policy: egress.Development()})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.CloseIdleConnections()
	if r := sender.Send(t.Context(), "acme", "e1", deliver.Message{ID: "msg_1-A", Body: []byte(body)}); r.Outcome != deliver.Delivered {
		t.Fatal(r.Outcome, r.Err)
	}
	return <-received
}

// TestSignatures: with each of the keys that sign a delivery, the reference libraries verify
// it. So a receiver can change its key at any time during a rotation. They refuse it with any
// other key, or if it was changed.
func TestSignatures(t *testing.T) {
	before, after := deliver.GenerateKey(), deliver.GenerateKey()
	bodies := []string{
		`{"type":"module.updated","version":7}`,
		`{"name":"Grüße, 世界 🎉","escaped":"\u00e9\"\\"}`,
		"{\n\t\"text\": \"" + strings.Repeat("0123456789 ", 10_000) + "\"\r\n}\n",
	}
	phases := []struct {
		name         string
		keys         keyring
		byOld, byNew bool
	}{
		{"before a rotation", keyring{before}, true, false},
		{"during it", keyring{after, before}, true, true},
		{"after it", keyring{after}, false, true},
	}
	for _, tt := range libraries {
		t.Run(tt.name, func(t *testing.T) {
			lib := tt.start(t)
			for _, phase := range phases {
				for i, body := range bodies {
					d := deliverTo(t, phase.keys, body)
					if d.body != body {
						t.Fatalf("body %d: %q", i, d.body)
					}
					if byOld, byNew := lib.verify(before, d), lib.verify(after, d); byOld != phase.byOld || byNew != phase.byNew {
						t.Errorf("%s, body %d: verified with the old key %v, with the new one %v", phase.name, i, byOld, byNew)
					}
					for name, changed := range map[string]delivery{
						"body":      {d.header, strings.Replace(body, "e", "3", 1)},
						"id":        {withField(d.header, "Webhook-Id", "msg_2"), body},
						"timestamp": {withField(d.header, "Webhook-Timestamp", fmt.Sprint(time.Now().Unix()+60)), body},
					} {
						if lib.verify(before, changed) || lib.verify(after, changed) {
							t.Errorf("%s, body %d: verified although the %s was changed", phase.name, i, name)
						}
					}
				}
			}
		})
	}
}

// withField returns a copy of a header with another value of a field.
func withField(header http.Header, field, value string) http.Header {
	header = header.Clone()
	header.Set(field, value)
	return header
}

// TestChallengeResponses: a receiver agrees by returning the result of sign in a reference
// library. A receiver with another key doesn't agree.
func TestChallengeResponses(t *testing.T) {
	key, other := deliver.GenerateKey(), deliver.GenerateKey()
	for _, tt := range libraries {
		t.Run(tt.name, func(t *testing.T) {
			lib := tt.start(t)
			for agrees, has := range map[bool]deliver.Key{true: key, false: other} {
				receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					var event struct{ Type, Challenge string }
					if err := json.Unmarshal(body, &event); err != nil || event.Type != "webhook.challenge" {
						t.Errorf("body %s, %v", body, err)
					}
					if verified := lib.verify(has, delivery{r.Header, string(body)}); verified != agrees {
						t.Errorf("verified %v", verified)
					}
					fmt.Fprintln(w, lib.sign(has, r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), event.Challenge))
				}))
				defer receiver.Close()
				challenge, err := deliver.Challenge(keyring{key})
				if err != nil {
					t.Fatal(err)
				}
				prober, err := egress.Development().Prober(&egress.ProberOptions{HTTPProbe: challenge, Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				if err := prober.Probe(t.Context(), "acme", egress.NewURL(receiver.URL)); (err == nil) != agrees {
					t.Errorf("right key %v: %v", agrees, err)
				}
			}
		})
	}
}
