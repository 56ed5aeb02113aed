package service_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// change is a version of a module.
type change struct {
	module  string
	version int64
}

// message is what the receivers know about one ID.
type message struct {
	body     string
	change   change
	requests int
	accepted int
}

// ledger has the changes that the program acknowledged, and the messages that the receivers
// got.
type ledger struct {
	t        testing.TB
	verifier *standardwebhooks.Webhook

	mu           sync.Mutex
	acknowledged map[change]bool
	messages     map[string]*message
	ids          map[change]string
	arrived      chan struct{} // closed and replaced whenever a message is accepted or held
	held         int           // requests that a holding receiver hasn't responded to
	ended        int           // how many of the held ones the sender gave up
	underway     int           // requests
	times        []time.Time   // when messages were accepted
}

func newLedger(t testing.TB, key string) *ledger {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	return &ledger{
		t: t, verifier: verifier,
		acknowledged: make(map[change]bool), messages: make(map[string]*message), ids: make(map[change]string), arrived: make(chan struct{}),
	}
}

func (l *ledger) acknowledge(module string, version int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[change{module, version}] = true
}

// await waits until ready returns true. It holds the lock when it calls ready.
func (l *ledger) await(ready func() bool) {
	l.t.Helper()
	for {
		l.mu.Lock()
		arrived, done := l.arrived, ready()
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(l.t.Context().Err())
		case <-arrived:
		}
	}
}

// update calls f with the lock, and then wakes everything that awaits.
func (l *ledger) update(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.arrived)
	l.arrived = make(chan struct{})
}

// totals returns how many changes were acknowledged, how many of these no receiver accepted,
// and how often a message was accepted again.
func (l *ledger) totals() (acknowledged, lost, duplicates int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	accepted := make(map[change]bool)
	for _, m := range l.messages {
		if m.accepted > 0 {
			accepted[m.change] = true
			duplicates += m.accepted - 1
		}
	}
	for c := range l.acknowledged {
		if !accepted[c] {
			lost++
		}
	}
	return len(l.acknowledged), lost, duplicates
}

// abandoned returns how many requests the sender gave up.
func (l *ledger) abandoned() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// receive verifies a request. It returns its ID, and how many requests with that ID there
// have been.
func (l *ledger) receive(r *http.Request) (id string, nth int) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", 0 // the program was killed
	}
	if err := l.verifier.Verify(body, r.Header); err != nil {
		l.t.Errorf("%v: %s", err, body)
	}
	var text struct {
		Data struct {
			ID      string
			Version int64
		}
	}
	if err := json.Unmarshal(body, &text); err != nil {
		l.t.Errorf("%v: %s", err, body)
	}
	id = r.Header.Get("webhook-id")
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.messages[id]
	if m == nil {
		m = &message{body: string(body), change: change{text.Data.ID, text.Data.Version}}
		l.messages[id] = m
		if other, ok := l.ids[m.change]; ok {
			l.t.Errorf("change %v has the IDs %s and %s", m.change, other, id)
		}
		l.ids[m.change] = id
	}
	if m.body != string(body) {
		l.t.Errorf("message %s has the bodies %s and %s", id, m.body, body)
	}
	m.requests++
	return id, m.requests
}

func (l *ledger) accept(w http.ResponseWriter, id string) {
	l.update(func() {
		l.messages[id].accepted++
		l.times = append(l.times, time.Now())
	})
	w.WriteHeader(http.StatusNoContent)
}

// behaviour responds to the n-th request of a message, or returns true to accept it.
type behaviour func(w http.ResponseWriter, r *http.Request, nth int) (accept bool)

// serve starts a receiver.
func (l *ledger) serve(kind behaviour) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.countUnderway(1)
		defer l.countUnderway(-1)
		id, nth := l.receive(r)
		if nth > 0 && kind(w, r, nth) {
			l.accept(w, id)
		}
	}))
	l.t.Cleanup(server.Close)
	return server.URL + "/in?token=t0ken"
}

func (l *ledger) countUnderway(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway += n
}

// forgetAccepted makes uncertain count only what is accepted from a time on.
func (l *ledger) forgetAccepted(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = slices.DeleteFunc(l.times, until.After)
}

// uncertain returns how many messages the program may not have written down: those that were
// accepted lately, and those under way.
func (l *ledger) uncertain() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.times) + l.underway
}

func accepting(http.ResponseWriter, *http.Request, int) bool { return true }

// failingTwice responds to the first two requests of a message with 500.
func failingTwice(w http.ResponseWriter, _ *http.Request, nth int) bool {
	if nth <= 2 {
		w.WriteHeader(http.StatusInternalServerError)
	}
	return nth > 2
}

// throttling responds to the first request of a message with 429.
func throttling(w http.ResponseWriter, _ *http.Request, nth int) bool {
	if nth == 1 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	return nth > 1
}

// resetting resets the connection of the first request of a message.
func resetting(w http.ResponseWriter, _ *http.Request, nth int) bool {
	if nth > 1 {
		return true
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		err = errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close())
	}
	if err != nil {
		panic(err)
	}
	return false
}

// slow responds after a long time for a receiver.
func slow(_ http.ResponseWriter, r *http.Request, _ int) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-time.After(200 * time.Millisecond):
		return true
	}
}

// holding responds once release is closed.
func (l *ledger) holding(release <-chan struct{}) behaviour {
	return func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		select {
		case <-release:
			return true
		default:
		}
		l.update(func() { l.held++ })
		select {
		case <-release:
			l.update(func() { l.held-- })
			return true
		case <-r.Context().Done():
			l.update(func() { l.held--; l.ended++ })
			return false
		}
	}
}
