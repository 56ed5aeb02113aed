// Package outage runs the handler on a store that fails, and checks its responses and its
// log.
//
//	s := outage.New(t, st)
//	s.Survives(outage.Outage{Start: stop, End: start, Cause: "connection refused"})
package outage

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

const (
	secret = "a-long-random-secret"
	path   = "/api/v1/configure/configure-webhook"
	token  = "t0ken-in-the-path" // in every URL
)

// Service is the handler on loopback, for the client "acme". Each of its methods makes its
// requests one after the other.
type Service struct {
	t       testing.TB
	store   webhookcfg.Store
	patient string // the URL of a handler that waits long for the store
	hasty   string // the URL of a handler that hardly waits, for a store that hangs
	records records
}

// New starts a handler on the store.
func New(t testing.TB, st webhookcfg.Store) *Service {
	t.Helper()
	s := &Service{t: t, store: st, records: make(records, 1)}
	s.patient = s.serve(st, time.Minute)
	s.hasty = s.serve(st, 300*time.Millisecond)
	return s
}

func (s *Service) serve(st webhookcfg.Store, limit time.Duration) (url string) {
	s.t.Helper()
	handler := hooktest.NewHandler(s.t, st, hooktest.NewVerifier(s.t, "acme", secret), &webhookcfg.Options{
		Reads:     true,
		ProbeMode: webhookcfg.ProbeOff,
		Timeout:   limit,
		Logger:    slog.New(slog.NewTextHandler(s.records, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return hooktest.Serve(s.t, handler).URL + path
}

// records holds the log record of a request until somebody reads it.
type records chan string

// Write implements [io.Writer].
func (all records) Write(record []byte) (int, error) {
	all <- string(record)
	return len(record), nil
}

// request is a client's request. host is the host of the webhook URL, or "" if there is no
// body.
type request struct{ method, entity, host string }

func (r request) body() string {
	switch {
	case r.host == "":
		return ""
	case r.entity == "":
		return fmt.Sprintf(`{"webhook_url":"https://%s.example.com/%s?key=%[2]s"}`, r.host, token)
	}
	return fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":"https://%s.example.com/%s?key=%[3]s"}`, r.entity, r.host, token)
}

// do makes a request and returns its response, the body and the log record.
func (s *Service) do(url string, r request) (response *http.Response, text, record string) {
	s.t.Helper()
	if r.entity != "" && r.host == "" {
		url += "/" + r.entity
	}
	sent, err := http.NewRequestWithContext(s.t.Context(), r.method, url, strings.NewReader(r.body()))
	if err != nil {
		s.t.Fatal(err)
	}
	sent.SetBasicAuth("acme", secret)
	if r.host != "" {
		sent.Header.Set("Content-Type", "application/json")
	}
	response, err = http.DefaultClient.Do(sent)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(body), <-s.records
}

// Set sets the URL of an entity to one at the host. If entity is "", it sets the base.
func (s *Service) Set(entity, host string) {
	s.t.Helper()
	s.expect(request{http.MethodPost, entity, host})
}

// Unset unsets the URL of an entity. If entity is "", it unsets all.
func (s *Service) Unset(entity string) {
	s.t.Helper()
	s.expect(request{http.MethodDelete, entity, ""})
}

// Read returns the client's configuration as a client reads it.
func (s *Service) Read() string {
	s.t.Helper()
	return s.expect(request{http.MethodGet, "", ""})
}

func (s *Service) expect(r request) string {
	s.t.Helper()
	response, text, record := s.do(s.patient, r)
	if response.StatusCode != http.StatusOK {
		s.t.Errorf("%+v: %s %s, want 200; %s", r, response.Status, text, record)
	}
	return text
}

// changes has a request of each kind that changes something.
var changes = []request{
	{http.MethodPost, "", "new"},
	{http.MethodPost, "e1", "new"},
	{http.MethodDelete, "e1", ""},
	{http.MethodDelete, "", ""},
}

var reads = []request{{http.MethodGet, "e1", ""}, {http.MethodGet, "", ""}}

// Outage describes how the store fails between Start and End.
type Outage struct {
	Start, End func()
	Cause      string // part of each request's log record
	Hangs      bool   // the store fails only when its context ends; you don't need a Cause
	Serves     bool   // reads still succeed
	Healthy    bool   // the store works for other clients
}

// Refuses expects that requests of every kind fail with 503.
func (s *Service) Refuses(o Outage) {
	s.t.Helper()
	all := changes
	if !o.Serves {
		all = slices.Concat(reads, changes)
	}
	for _, r := range all {
		s.expectUnavailable(r, o)
	}
	s.awaitHealth(o.Healthy)
}

// awaitHealth expects that the store reports its health, if it can. That can take a second.
func (s *Service) awaitHealth(healthy bool) {
	s.t.Helper()
	st, ok := s.store.(interface {
		Healthy(ctx context.Context) error
	})
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		err := st.Healthy(ctx)
		if (err == nil) == healthy {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Errorf("a minute later, the store is healthy: %v, want %v", !healthy, healthy)
}

// expectUnavailable expects a request to fail. You find the cause only in the log, and the
// URL's secret nowhere.
func (s *Service) expectUnavailable(r request, o Outage) {
	s.t.Helper()
	url, causes := s.patient, []string{o.Cause}
	if o.Hangs {
		// The deadline of a socket can pass a moment before the context that set it ends.
		url, causes = s.hasty, []string{context.DeadlineExceeded.Error(), os.ErrDeadlineExceeded.Error()}
	}
	response, text, record := s.do(url, r)
	wait := response.Header.Get("Retry-After")
	if response.StatusCode != http.StatusServiceUnavailable || wait == "" || !strings.HasPrefix(text, `{"error":"temporarily_unavailable",`) {
		s.t.Errorf("%+v: %s %s, Retry-After %q, want 503", r, response.Status, text, wait)
	}
	inRecord := func(cause string) bool { return strings.Contains(record, cause) }
	if !strings.Contains(record, "level=ERROR") || !strings.Contains(record, " error=") || !slices.ContainsFunc(causes, inRecord) {
		s.t.Errorf("%+v: the log has none of the causes %q: %s", r, causes, record)
	}
	inText := func(cause string) bool { return cause != "" && strings.Contains(text, cause) }
	if slices.ContainsFunc(causes, inText) || strings.Contains(text+record, token) {
		s.t.Errorf("%+v: %s or %s reveals too much", r, text, record)
	}
}

// Survives runs an outage. Nothing must change during it, and afterwards the service must
// work again by itself.
func (s *Service) Survives(o Outage) {
	s.t.Helper()
	s.Set("", "base")
	s.Set("e1", "own")
	s.Unset("e2")
	before := s.Read()
	if !strings.Contains(before, "base.example.com") || !strings.Contains(before, "own.example.com") || !strings.Contains(before, "null") {
		s.t.Fatalf("the configuration is %s", before)
	}
	o.Start()
	s.Refuses(o)
	if o.Serves {
		if during := s.Read(); during != before {
			s.t.Errorf("during the outage, the configuration %s became %s", before, during)
		}
	}
	o.End()
	if after := s.Read(); after != before {
		s.t.Errorf("after the outage, the configuration %s became %s", before, after)
	}
	s.Works()
}

// Works expects that requests of every kind succeed.
func (s *Service) Works() {
	s.t.Helper()
	for _, r := range slices.Concat(changes, reads) {
		s.expect(r)
	}
	s.awaitHealth(true)
	if after := s.Read(); strings.Contains(after, "example.com") || strings.Contains(after, "e2") {
		s.t.Errorf("unset of all left %s", after)
	}
}
