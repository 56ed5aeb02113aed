// Package outage runs the handler on a store that fails, and checks its responses and its
// log.
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
	token  = "t0ken-in-the-path" // of each URL
)

// Service is the handler on loopback, for the client "acme". Its methods make one request
// after the other.
type Service struct {
	t       testing.TB
	store   webhookcfg.Store
	patient string // the URL of a handler that waits long for the store
	hasty   string // that of one that waits a moment, for a store that hangs
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

// records holds the log record of a request until it is received.
type records chan string

// Write implements [io.Writer].
func (all records) Write(record []byte) (int, error) {
	all <- string(record)
	return len(record), nil
}

// request is one that a client makes; host is that of its URL, "" in one without a body.
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

// Set sets the URL of an entity, or of all if it is "", to one of a host.
func (s *Service) Set(entity, host string) {
	s.t.Helper()
	s.expect(request{http.MethodPost, entity, host})
}

// Unset unsets the URL of an entity, or of all if it is "".
func (s *Service) Unset(entity string) {
	s.t.Helper()
	s.expect(request{http.MethodDelete, entity, ""})
}

// Read returns the configuration of the client, as reported to it.
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

// changes are requests of each kind that change something.
var changes = []request{
	{http.MethodPost, "", "new"},
	{http.MethodPost, "e1", "new"},
	{http.MethodDelete, "e1", ""},
	{http.MethodDelete, "", ""},
}

var reads = []request{{http.MethodGet, "e1", ""}, {http.MethodGet, "", ""}}

// Outage is a time in which the store fails.
type Outage struct {
	Start, End func()
	Cause      string // part of the log record of a request
	Hangs      bool   // the store fails only when its context ends; Cause is not used
	Serves     bool   // reads succeed
	Healthy    bool   // the store succeeds for other clients
}

// Refuses expects that requests of every kind fail since the service is unavailable.
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

// awaitHealth expects that a store that can tell its health tells it, which takes a second.
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
	s.t.Errorf("the store doesn't turn healthy: %v", healthy)
}

// expectUnavailable expects a request to fail. The cause appears in the log only, and what is
// secret in the URL nowhere.
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

// Survives runs an outage, during which nothing must change, and from which the service must
// recover by itself.
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
