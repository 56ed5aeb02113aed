package portal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// failing is a store whose changes can fail, before or after they were made.
type failing struct {
	*store.Memory
	before, after bool
}

func (s *failing) Apply(ctx context.Context, c webhookcfg.Change) error {
	if s.before {
		return errBroken
	}
	err := s.Memory.Apply(ctx, c)
	if s.after {
		return errBroken
	}
	return err
}

// entrance is a way to change webhooks, with a store of its own.
type entrance struct {
	store *failing
	serve http.Handler
}

const apiPath = "/api/v1/configure/configure-webhook"

func apiRequest(t *testing.T, client, operation string, entity *string, hook string) *http.Request {
	t.Helper()
	var r *http.Request
	if operation == "set" {
		fields := map[string]string{"webhook_url": hook}
		if entity != nil {
			fields["endpoint_id"] = *entity
		}
		body, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		r = httptest.NewRequest("POST", apiPath, strings.NewReader(strings.NewReplacer(`\ufffd`, "\xff", "\ufffd", "\xff").Replace(string(body)))) // as it was typed
		r.Header.Set("Content-Type", "application/json")
	} else {
		path := apiPath
		if entity != nil {
			path += "/" + url.PathEscape(*entity)
		}
		r = httptest.NewRequest("DELETE", path, nil)
	}
	r.SetBasicAuth(client, secret)
	return r
}

func pageRequest(_ *testing.T, client, operation string, entity *string, hook string) *http.Request {
	form := url.Values{"client": {"client-of-" + client}}
	page := operation
	if operation == "set" {
		form.Set("url", hook)
	}
	if entity != nil {
		form.Set("id", *entity)
	} else {
		form.Set("confirm", "all")
		page = map[string]string{"set": "all", "unset": "unset-all"}[operation]
	}
	r := httptest.NewRequest("POST", "/?page="+page, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: "session", Value: client})
	return r
}

// TestSameAsAPI: for the same client, operation and input, the page and the API change the
// same, or neither changes anything. They refuse for the same reason.
func TestSameAsAPI(t *testing.T) {
	entities := []string{"e1", "e2", "E1", "a:b@c~d.e_f-g", "unknown", "e 1", "é", ".", "..", "a/b", "a\\b", "%65", "a%2fb", "e\n1", "\xff", "*", "all", strings.Repeat("x", 128), strings.Repeat("x", 129)}
	urls := []string{
		hookURL, otherURL, address, "HTTPS://hooks.example.com/", "https://unreachable.example.com/", "https://throttled.example.com/", "http://hooks.example.com/", "https://10.0.0.1/",
		"https://8.8.8.8/x", "https://u:p@hooks.example.com/", "https://hooks.example.com/#f", "https://hooks.example.com/a b", "https://hooks.example.com\\x", "javascript:alert(1)", "nonsense", "", "//hooks.example.com/",
		"https://hooks.example.com:0/", "https://localhost/", "https://é.example.com/", "https://[::1]/", "https://hooks.example.com/" + strings.Repeat("x", 2021), "https://hooks.example.com/" + strings.Repeat("x", 2023),
	}
	for name, options := range map[string]webhookcfg.Options{
		"plain":          {ProbeMode: webhookcfg.ProbeOff},
		"all is refused": {ProbeMode: webhookcfg.ProbeOff, AllScope: webhookcfg.AllScopeRefused},
		"catalogue": {ProbeMode: webhookcfg.ProbeOff, EntityExists: func(_ context.Context, client, entity string) (bool, error) {
			if entity == "E1" {
				return false, errBroken
			}
			return entity != "unknown" && !(client == "client-of-bert" && entity == "e2"), nil
		}},
		"probe": {Prober: probes{}},
		"warn":  {Prober: probes{}, ProbeMode: webhookcfg.ProbeWarn},
		"refusals": {ProbeMode: webhookcfg.ProbeOff, Refusals: []webhookcfg.Refusal{full}, CheckChange: func(_ context.Context, c webhookcfg.Change) error {
			switch {
			case c.Scope == webhookcfg.Entity("E1"):
				return errBroken
			case c.Scope == webhookcfg.Entity("e2") && !c.URL.IsZero(), c.Scope.IsAll() && c.URL.IsZero():
				return full
			}
			return nil
		}},
		"own syntax": {ProbeMode: webhookcfg.ProbeOff, ValidEntityID: func(id string) bool { return len(id) < 100 }},
	} {
		t.Run(name, func(t *testing.T) {
			options.Now = func() time.Time { return time.Unix(1_800_000_000, 0) }
			api, page := newEntrance(t, options, false), newEntrance(t, options, true)
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			changed := 0
			steps := 200
			if *isFull {
				steps = 600
			}
			for range steps {
				client, operation := []string{"anna", "bert"}[random.IntN(2)], []string{"set", "unset"}[random.IntN(2)]
				entity, hook := &entities[random.IntN(len(entities))], urls[random.IntN(len(urls))]
				if random.IntN(2) == 0 {
					entity = &entities[random.IntN(3)]
				}
				if random.IntN(2) == 0 {
					hook = urls[random.IntN(3)]
				}
				if random.IntN(8) == 0 {
					entity = nil
				}
				fault := random.IntN(10)
				before := contents(t, page.store.Memory)
				var codes [2]int
				for i, e := range []*entrance{api, page} {
					e.store.before, e.store.after = fault == 0, fault == 1
					w := httptest.NewRecorder()
					request := apiRequest
					if i == 1 {
						request = pageRequest
					}
					e.serve.ServeHTTP(w, request(t, client, operation, entity, hook))
					codes[i] = w.Code
				}
				what := fmt.Sprintf("%s %s %s %.60q", client, operation, describe(entity), hook)
				want, got := contents(t, api.store.Memory), contents(t, page.store.Memory)
				if got != want {
					t.Fatalf("%s: the API (%d) left\n%s, the page (%d)\n%s", what, codes[0], want, codes[1], got)
				}
				if codes[1] != map[int]int{200: 303}[codes[0]] && codes[1] != codes[0] && !isRouted(codes[0], entity) {
					t.Errorf("%s: the API responds %d, the page %d", what, codes[0], codes[1])
				}
				if got != before {
					changed++
				}
			}
			if changed < steps/12 {
				t.Errorf("only %d changes", changed)
			}
		})
	}
}

// isRouted reports whether the API can't even route the path with the identifier. The page
// refuses it like any other that is malformed.
func isRouted(status int, entity *string) bool {
	return status == http.StatusNotFound && entity != nil && strings.Trim(*entity, "./") != *entity
}

func describe(entity *string) string {
	if entity == nil {
		return "all"
	}
	return fmt.Sprintf("%.20q", *entity)
}

// probes is a prober that reaches some hosts.
type probes struct{}

func (probes) Probe(_ context.Context, _ string, u egress.URL) error {
	switch {
	case strings.Contains(u.Reveal(), "unreachable"):
		return errors.New("refused")
	case strings.Contains(u.Reveal(), "throttled"):
		return waitError(time.Second)
	}
	return nil
}

func newEntrance(t *testing.T, options webhookcfg.Options, isPage bool) *entrance {
	t.Helper()
	f := newFixture(t).hosted()
	e := &entrance{store: &failing{Memory: store.NewMemory()}}
	f.store, f.verifier, f.handler = e.store, pair{}, options
	if !isPage {
		e.serve = hooktest.NewHandler(t, f.store, f.verifier, &f.handler)
		return e
	}
	f.portal.Client = func(r *http.Request) (string, string, error) {
		c, err := r.Cookie("session")
		return "client-of-" + c.Value, "ann", err
	}
	e.serve = f.new(t)
	return e
}
