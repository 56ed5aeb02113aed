package sqlite_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// receiver responds with a status, and counts its requests.
type receiver struct {
	*httptest.Server
	status   atomic.Int32
	received atomic.Int32
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.received.Add(1)
		w.WriteHeader(int(r.status.Load()))
	}))
	t.Cleanup(r.Close)
	return r
}

// replica is one process of a service. It delivers and serves reads.
type replica struct {
	t       *testing.T
	store   *sqlstore.Store
	sender  *deliver.Sender
	handler http.Handler
}

func newReplica(t *testing.T, path string) *replica {
	t.Helper()
	st := open(t, path)
	health, err := deliver.NewHealth(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := deliver.DerivedKeys([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	sender, err := deliver.New(st, keys, &deliver.Options{Policy: egress.Development(), Health: health})
	if err != nil {
		t.Fatal(err)
	}
	handler := hooktest.NewHandler(t, st, hooktest.NewVerifier(t, "acme", "a-long-random-secret"), &webhookcfg.Options{
		Policy: egress.Development(), ProbeMode: webhookcfg.ProbeOff, Reads: true, DeliveryStatus: health.Status,
	})
	return &replica{t, st, sender, handler}
}

// send makes an attempt and closes its connection, because the test's clock would wait for
// it.
func (r *replica) send(entity string) deliver.Reason {
	r.t.Helper()
	defer r.sender.CloseIdleConnections()
	result := r.sender.Send(r.t.Context(), "acme", entity, deliver.Message{ID: "msg_1", Body: []byte("{}")})
	if result.Err != nil && result.Outcome != deliver.Undeliverable {
		r.t.Error(result.Err)
	}
	return result.Reason
}

// read returns the deliveries in the response to a client.
func (r *replica) read(entity string) string {
	r.t.Helper()
	request := httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "/api/v1/configure/configure-webhook/"+entity, nil)
	request.SetBasicAuth("acme", "a-long-random-secret")
	response := httptest.NewRecorder()
	r.handler.ServeHTTP(response, request)
	_, delivery, _ := strings.Cut(response.Body.String(), `"delivery":`)
	if response.Code != http.StatusOK {
		r.t.Error(response.Code, response.Body)
	}
	return delivery
}

// TestHealth: one replica gets a 410. Another replica, which delivered a minute ago, learns
// of it from the database, and so does a third one that starts later. Clients see it on both.
// Once the webhook is set again, they deliver again.
func TestHealth(t *testing.T) {
	for name, scope := range map[string]webhookcfg.Scope{"base": webhookcfg.All(), "override": webhookcfg.Entity("e1")} {
		t.Run(name, func(t *testing.T) {
			path, to := newPath(t), newReceiver(t)
			synctest.Test(t, func(t *testing.T) {
				a, b := newReplica(t, path), newReplica(t, path)
				set := func() {
					t.Helper()
					c := webhookcfg.SetChange("acme", scope, egress.NewURL(to.URL))
					c.Time = time.Now()
					if err := a.store.Apply(t.Context(), c); err != nil {
						t.Fatal(err)
					}
				}
				expect := func(event string, r *replica, reason deliver.Reason, requests int32, read string) {
					t.Helper()
					before := to.received.Load()
					if got := r.send("e1"); got != reason || to.received.Load()-before != requests {
						t.Errorf("%s: %q after %d requests, want %q after %d", event, got, to.received.Load()-before, reason, requests)
					}
					for _, r := range []*replica{a, b} {
						if got := r.read("e1"); !strings.HasPrefix(got, read) {
							t.Errorf("%s: the client reads %s, want %s", event, got, read)
						}
					}
				}
				set()
				to.status.Store(http.StatusNoContent)
				expect("first delivery", b, "", 1, `{"state":"ok"`)
				to.status.Store(http.StatusGone)
				expect("410", a, deliver.ReasonGone, 1, `{"state":"stopped","reason":"gone"`)
				time.Sleep(time.Minute)
				expect("the other replica", b, deliver.ReasonStopped, 0, `{"state":"stopped","reason":"gone"`)
				expect("a new replica", newReplica(t, path), deliver.ReasonStopped, 0, `{"state":"stopped","reason":"gone"`)
				to.status.Store(http.StatusNoContent)
				set()
				expect("set again", b, "", 1, `{"state":"ok"`)
				expect("set again, for the other", a, "", 1, `{"state":"ok"`)
			})
		})
	}
}
