package deliver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/hostile"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// clientKeys has the keys of clients by their id.
type clientKeys map[string][]deliver.Key

func (k clientKeys) Keys(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
	return k[to.Client], nil
}

// consent responds to a challenge as a receiver that has a key does.
func consent(key deliver.Key) func(w http.ResponseWriter, r request) {
	return func(w http.ResponseWriter, r request) {
		if !verify(r, key) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, sign(r, challengeOf(r), key))
	}
}

// sign is sign(id, timestamp, payload) of the Standard Webhooks libraries.
func sign(r request, payload string, key deliver.Key) string {
	return deliver.Signatures(r.header.Get("Webhook-Id"), r.header.Get("Webhook-Timestamp"), []byte(payload), []deliver.Key{key})
}

func challengeOf(r request) string {
	var body struct{ Type, Challenge string }
	if json.Unmarshal(r.body, &body) != nil || body.Type != "webhook.challenge" {
		return ""
	}
	return body.Challenge
}

// newChallenged starts a receiver, whose requests the function that is returned receives.
func newChallenged(t *testing.T, respond func(w http.ResponseWriter, r request)) (*httptest.Server, func() []request) {
	t.Helper()
	requests := make(chan request, 10)
	server := hooktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r := request{req.Method, req.RequestURI, req.Header, body}
		requests <- r
		respond(w, r)
	}))
	return server, func() (all []request) {
		for len(requests) > 0 {
			all = append(all, <-requests)
		}
		return all
	}
}

func newChallenge(t *testing.T, keys deliver.Keys) egress.HTTPProbe {
	t.Helper()
	probe, err := deliver.Challenge(keys)
	if err != nil {
		t.Fatal(err)
	}
	return probe
}

// challenge has the probe call a receiver for acme, and returns the requests and its error.
func challenge(t *testing.T, keys deliver.Keys, respond func(w http.ResponseWriter, r request)) ([]request, error) {
	t.Helper()
	server, received := newChallenged(t, respond)
	prober, err := egress.Development().Prober(&egress.ProberOptions{HTTPProbe: newChallenge(t, keys), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	err = prober.Probe(t.Context(), "acme", egress.NewURL(server.URL+secretPath))
	if err != nil {
		checkHidden(t, err, "t0ken", "s3cret")
	}
	return received(), err
}

// TestChallenge: only a receiver with a key of the client passes.
func TestChallenge(t *testing.T) {
	key, old, other := deliver.GenerateKey(), deliver.GenerateKey(), deliver.GenerateKey()
	text := func(status int, body func(r request) string) func(w http.ResponseWriter, r request) {
		return func(w http.ResponseWriter, r request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body(r))
		}
	}
	signed := func(r request) string { return sign(r, challengeOf(r), key) }
	tests := []struct {
		name    string
		respond func(w http.ResponseWriter, r request)
		pass    bool
	}{
		{"present key", consent(key), true},
		{"replaced key", consent(old), true},
		{"created", text(201, signed), true},
		{"line break", text(200, func(r request) string { return signed(r) + "\r\n" }), true},

		{"key of another client", consent(other), false},
		{"another key, unverified", text(200, func(r request) string { return sign(r, challengeOf(r), other) }), false},
		{"nothing", text(200, func(request) string { return "" }), false},
		{"no content", text(204, func(request) string { return "" }), false},
		{"echo of the body", text(200, func(r request) string { return string(r.body) }), false},
		{"echo of the challenge", text(200, challengeOf), false},
		{"echo of the signatures", text(200, func(r request) string { return r.header.Get("Webhook-Signature") }), false},
		{"echo of a signature", text(200, func(r request) string { return sign(r, string(r.body), key) }), false},
		{"echo of everything", text(200, func(r request) string { return fmt.Sprint(r.header, string(r.body)) }), false},
		{"JSON string signed", text(200, func(r request) string { return sign(r, `"`+challengeOf(r)+`"`, key) }), false},
		{"without version", text(200, func(r request) string { return strings.TrimPrefix(signed(r), "v1,") }), false},
		{"signature in JSON", text(200, func(r request) string { return `"` + signed(r) + `"` }), false},
		{"text after it", text(200, func(r request) string { return signed(r) + " x" }), false},
		{"blanks and text after it", text(200, func(r request) string { return signed(r) + strings.Repeat(" ", 4096) + "x" }), false},
		{"endless text", func(w http.ResponseWriter, _ request) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, strings.Repeat("v1,", 1<<10))
			}
		}, false},
		{"refused", text(401, signed), false},
		{"failure", text(500, signed), false},
		{"redirect", func(w http.ResponseWriter, r request) {
			w.Header().Set("Location", "/other")
			text(307, signed)(w, r)
		}, false},
		{"signature of an earlier challenge", func() func(w http.ResponseWriter, r request) {
			var earlier string
			_, _ = challenge(t, keyring{key}, text(200, func(r request) string { earlier = signed(r); return earlier }))
			return text(200, func(request) string { return earlier })
		}(), false},
	}
	for _, tt := range tests {
		requests, err := challenge(t, clientKeys{"acme": {key, old}, "other": {other}}, tt.respond)
		if (err == nil) != tt.pass {
			t.Errorf("%s: %v", tt.name, err)
		}
		if reason, _ := errors.AsType[*egress.UnreachableError](err); err != nil && (reason == nil || reason.Reason != egress.ReasonResponse) {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if len(requests) != 1 {
			t.Errorf("%s: %d requests", tt.name, len(requests))
		}
	}
}

// TestChallengeRequest: each request is one that Send could have made, with a text of its
// own.
func TestChallengeRequest(t *testing.T) {
	key, old := deliver.GenerateKey(), deliver.GenerateKey()
	var challenges, ids []string
	for range 2 {
		requests, _ := challenge(t, keyring{key, old}, func(http.ResponseWriter, request) {})
		r := requests[0]
		if r.method != "POST" || r.target != secretPath || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s, %v", r.method, r.target, r.header)
		}
		if !verify(r, key) || !verify(r, old) {
			t.Errorf("not signed with both keys: %v", r.header)
		}
		challenges, ids = append(challenges, challengeOf(r)), append(ids, r.header.Get("Webhook-Id"))
		if len(challengeOf(r)) != 26 {
			t.Errorf("challenge %q", challengeOf(r))
		}
		if err := (deliver.Message{ID: ids[0]}).Validate(); err != nil {
			t.Error(err)
		}
	}
	if challenges[0] == challenges[1] || ids[0] == ids[1] {
		t.Errorf("the same twice: %q, %q", challenges, ids)
	}
}

// TestChallengeWithoutKeys: nothing is sent unsigned, and that is no fault of the receiver.
func TestChallengeWithoutKeys(t *testing.T) {
	if probe, err := deliver.Challenge(nil); probe != nil || err == nil {
		t.Errorf("no Keys: %v", err)
	}
	errHost := errors.New("database is down")
	for name, keys := range map[string]deliver.Keys{
		"error": keysFunc(func(context.Context, deliver.Recipient) ([]deliver.Key, error) { return nil, errHost }),
		"none":  keyring{},
		"zero":  keyring{{}},
		"five":  make(keyring, 5),
		"panic": keysFunc(func(context.Context, deliver.Recipient) ([]deliver.Key, error) { panic(errPanic) }),
	} {
		requests, err := challenge(t, keys, func(http.ResponseWriter, request) {})
		if !errors.Is(err, egress.ErrUnavailable) || len(requests) > 0 || name == "error" && !errors.Is(err, errHost) {
			t.Errorf("%s: error %v, %d requests", name, err, len(requests))
		}
	}
}

// TestChallengeOfHandler: the handler sets the URL of a receiver with a key of the client,
// and no other.
func TestChallengeOfHandler(t *testing.T) {
	acme, other := deliver.GenerateKey(), deliver.GenerateKey()
	var mu sync.Mutex
	var present keysFunc
	receiver, _ := newChallenged(t, consent(acme))
	guard := egress.Development()
	prober, err := guard.Prober(&egress.ProberOptions{
		HTTPProbe: newChallenge(t, keysFunc(func(ctx context.Context, to deliver.Recipient) ([]deliver.Key, error) {
			mu.Lock()
			defer mu.Unlock()
			return present(ctx, to)
		})),
	})
	if err != nil {
		t.Fatal(err)
	}
	verifier := auth.Func(func(_ context.Context, id, _ string) (webhookcfg.Client, error) {
		return webhookcfg.Client{ID: id}, nil
	})
	configurations := store.NewMemory()
	handler := hooktest.NewHandler(t, configurations, verifier, &webhookcfg.Options{Policy: guard, Prober: prober})
	for _, tt := range []struct {
		entity, client string
		keys           keysFunc
		want           string
	}{
		{"another-key", "other", clientKeys{"other": {other}}.Keys, "400 webhook_unreachable"},
		{"keys-unavailable", "acme", clientKeys{}.Keys, "503 temporarily_unavailable"},
		{"during-a-rotation", "acme", clientKeys{"acme": {other, acme}}.Keys, "200 "},
		{"after-it", "acme", clientKeys{"acme": {other}}.Keys, "400 webhook_unreachable"},
	} {
		mu.Lock()
		present = tt.keys
		mu.Unlock()
		body := fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":%q}`, tt.entity, receiver.URL)
		r := httptest.NewRequest("POST", "/api/v1/configure/configure-webhook", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth(tt.client, "s3cret")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var response struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &response); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(w.Code, " ", response.Error); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.entity, got, tt.want)
		}
		hook, err := configurations.Resolve(t.Context(), tt.client, tt.entity)
		if err != nil || hook.URL.IsZero() != (w.Code != 200) {
			t.Errorf("%s: %v is set, %v", tt.entity, hook.URL, err)
		}
	}
}

// TestHostileChallenge: no hostile receiver passes, and whatever it does, the probe ends
// and leaves nothing open.
func TestHostileChallenge(t *testing.T) {
	hostile.BoundLog(t)
	before := hostile.Goroutines()
	turns := make(chan struct{}, 16)
	var all sync.WaitGroup
	probe := newChallenge(t, keyring{deliver.GenerateKey()})
	for _, receiver := range hostile.Receivers(t) {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			server := receiver.Start(t)
			defer server.Close()
			guard := egress.Development()
			guard.RootCAs = receiver.Roots
			const timeout = 200 * time.Millisecond
			prober, err := guard.Prober(&egress.ProberOptions{
				HTTPProbe: probe,
				Timeout:   timeout,
			})
			if err != nil {
				t.Error(err)
				return
			}
			returned := make(chan error, 1)
			go func() { returned <- prober.Probe(t.Context(), "acme", egress.NewURL(server.URL)) }()
			err, late := hostile.Result(returned, timeout)
			if late != nil {
				t.Errorf("%s: %v", receiver.Name, late)
				return
			}
			if err == nil {
				t.Errorf("%s passed", receiver.Name)
			}
			checkHidden(t, err, "secret")
			if err := server.AwaitClosed(func() {}); err != nil {
				t.Errorf("%s: %v", receiver.Name, err)
			}
		})
	}
	all.Wait()
	if err := before.Await(); err != nil {
		t.Error(err)
	}
}
