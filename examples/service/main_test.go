package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

const (
	client   = "acme:a-secret-of-acme-for-a-first-try"
	other    = "other:a-secret-of-other-for-a-first-try"
	master   = "a-master-of-at-least-thirty-two-bytes"
	webhooks = "/api/v1/configure/configure-webhook"
)

// variables returns an environment with these variables.
func variables(all map[string]string) environment {
	return func(name string) (string, bool) {
		value, isSet := all[name]
		return value, isSet
	}
}

var withMaster = variables(map[string]string{"MASTER": master})

// newStore returns the -store of a database with its tables and two clients.
func newStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "service.db")
	d, err := openDatabase("sqlite:"+path, true, newLogger(t.Output()))
	if err == nil {
		err = d.migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{client, other} {
		id, secret, _ := strings.Cut(one, ":")
		hashed, err := hash([]byte(secret))
		if err == nil {
			_, err = d.change(t.Context(), insertSecret, id, "first", hashed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

// start runs the service until the end of the test, and returns the URLs of its two
// servers.
func start(t *testing.T, args ...string) (service, metrics string) {
	t.Helper()
	return startWith(t, withMaster, args...)
}

func startWith(t *testing.T, lookup environment, args ...string) (service, metrics string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-listen", "127.0.0.1:0", "-metrics", "127.0.0.1:0"}, args...), lookup, writer, t.Output())
		writer.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(reader)
	var urls []string
	for len(urls) < 2 && lines.Scan() {
		urls = append(urls, "http://"+lines.Text())
	}
	if len(urls) < 2 {
		t.Fatal(lines.Err())
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	return urls[0], urls[1] + "/metrics"
}

// call sends one request and returns "status body".
func call(t *testing.T, method, url, body string) string {
	t.Helper()
	return callAs(t, client, method, url, body)
}

func callAs(t *testing.T, client, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	id, secret, _ := strings.Cut(client, ":")
	r.SetBasicAuth(id, secret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(text)))
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, want) {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// await waits until isReady returns true. After three minutes it fails with the other result.
func await(t *testing.T, isReady func() (ready bool, otherwise string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		ready, otherwise := isReady()
		if ready {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(otherwise)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// figure returns the value of a metric.
func figure(t *testing.T, metrics, name string) string {
	t.Helper()
	_, value, _ := strings.Cut(call(t, http.MethodGet, metrics, ""), "\n"+name+" ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// awaitGivenUp waits until n notifications are given up and no other is left.
func awaitGivenUp(t *testing.T, metrics string, n int64) {
	t.Helper()
	await(t, func() (bool, string) {
		of := func(state string) string {
			return figure(t, metrics, `webhook_queue_notifications{part="queue",state="`+state+`"}`)
		}
		waiting, givenUp := of("waiting"), of("given_up")
		return waiting == "0" && givenUp == fmt.Sprint(n), fmt.Sprintf("%s wait and %s given up, want %d given up and none left", waiting, givenUp, n)
	})
}

// change changes a module through the service, and returns its version.
func change(t *testing.T, service, id string) (version int64) {
	t.Helper()
	got := call(t, http.MethodPut, service+"/api/v1/modules/"+id, "on")
	if _, err := fmt.Sscanf(got, `200 {"version":%d}`, &version); err != nil {
		t.Fatalf("got %s: %v", got, err)
	}
	return version
}

// TestWalkThrough follows the README: a change is delivered, or given up, and replayed.
func TestWalkThrough(t *testing.T) {
	status := new(atomic.Int64)
	status.Store(http.StatusNoContent)
	received := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		received <- r.Header.Get("Webhook-Id") + " " + string(body)
		w.WriteHeader(int(status.Load()))
	}))
	defer receiver.Close()
	set := func(module string) string {
		return fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":%q}`, module, receiver.URL+"/in?token=t0ken")
	}
	store, before := newStore(t), time.Now()
	service, metrics := start(t, "-store", store, "-dev", "-schedule", "10ms,10ms", "-max-pause", "10ms")

	expect(t, call(t, http.MethodPost, service+webhooks, set("e1")), "404 ")
	first := change(t, service, "e1")
	awaitGivenUp(t, metrics, 0) // nothing is sent, as there is no webhook
	expect(t, call(t, http.MethodPost, service+webhooks, set("e1")), "200 ")
	second := change(t, service, "e1")
	const body = ` {"data":{"id":"e1","version":%d},"type":"module.updated"}`
	if got := <-received; !strings.HasSuffix(got, fmt.Sprintf(body, second)) {
		t.Errorf("received %s", got)
	}

	status.Store(http.StatusInternalServerError)
	third := change(t, service, "e1")
	awaitGivenUp(t, metrics, 1)
	failed := <-received
	for attempt := 2; attempt <= 3; attempt++ {
		if got := <-received; got != failed || !strings.HasSuffix(got, fmt.Sprintf(body, third)) {
			t.Errorf("attempt %d has %s, the first one %s", attempt, got, failed)
		}
	}
	status.Store(http.StatusNoContent)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-store", store, "given-up"}, withMaster, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(failed, " ")
	expect(t, out.String(), "acme e1 "+id+" 3 status")
	out.Reset()
	if err := run(t.Context(), []string{"-store", store, "-since", before.Format(time.RFC3339), "replay"}, withMaster, &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	expect(t, out.String(), "acme: 2\n") // the one that had no webhook was dropped
	again := []string{<-received, <-received}
	if !slices.Contains(again, failed) || !slices.ContainsFunc(again, func(got string) bool { return strings.HasSuffix(got, fmt.Sprintf(body, first)) }) {
		t.Errorf("replay sends %s, want %s and the first change", again, failed)
	}
	awaitGivenUp(t, metrics, 0)

	expectDelivery(t, service, `"delivery":{"state":"ok"`)
	status.Store(http.StatusGone)
	change(t, service, "e1")
	awaitGivenUp(t, metrics, 0) // nobody wants it
	expectDelivery(t, service, `"delivery":{"state":"stopped","reason":"gone"`)
	for name, want := range map[string]string{
		`webhook_delivery_results_total{outcome="delivered",reason=""}`:                             "3",
		`webhook_delivery_changes_total{reason="gone",state="stopped"}`:                             "1",
		`webhook_delivery_results_total{outcome="failed",reason="status"}`:                          "3",
		`webhook_delivery_results_total{outcome="undeliverable",reason="gone"}`:                     "1",
		`webhook_delivery_results_total{outcome="undeliverable",reason="no_webhook"}`:               "1",
		`webhook_configuration_requests_total{code="",operation="set",scope="entity",status="200"}`: "1",
	} {
		if got := figure(t, metrics, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// expectDelivery reads what the client learns of the deliveries.
func expectDelivery(t *testing.T, service, want string) {
	t.Helper()
	if got := call(t, http.MethodGet, service+webhooks+"/e1", ""); !strings.Contains(got, want) {
		t.Errorf("the client reads %s, want %s", got, want)
	}
}

// TestReplicas: a webhook that you set through one process is in effect there at once. It's
// soon in effect in all others, and in the copy of a process that only sends. In between,
// each has either the old webhook or the new one.
func TestReplicas(t *testing.T) {
	args := []string{"-store", newStore(t), "-dev", "-max-stale", "200ms"}
	one, _ := start(t, args...)
	two, _ := start(t, args...)
	expect(t, call(t, http.MethodPut, one+"/api/v1/modules/e1", "on"), "200 ")
	read := func(replica string) func() string {
		return func() string { return call(t, http.MethodGet, replica+webhooks+"/e1", "") }
	}
	sender := sender(t, args)
	before := `"webhook_url":null,"source":"none"`
	for _, step := range []struct{ method, replica, path, body, want string }{
		{http.MethodPost, one, "", `{"webhook_url":"http://127.0.0.1:1/all"}`, `"webhook_url":"http://127.0.0.1:1/all","source":"base"`},
		{http.MethodPost, two, "", `{"endpoint_id":"e1","webhook_url":"http://127.0.0.1:1/e1"}`, `"webhook_url":"http://127.0.0.1:1/e1","source":"override"`},
		{http.MethodDelete, one, "/e1", "", `"webhook_url":null,"source":"off"`},
		{http.MethodDelete, two, "", "", `"webhook_url":null,"source":"none"`},
	} {
		expect(t, call(t, step.method, step.replica+webhooks+step.path, step.body), "200 ")
		if got := read(step.replica)(); !strings.Contains(got, step.want) {
			t.Errorf("after %s %s %s the same process reads %s", step.method, step.path, step.body, got)
		}
		for name, read := range map[string]func() string{one: read(one), two: read(two), "the sender": sender} {
			var got string
			await(t, func() (bool, string) {
				got = read()
				return !strings.Contains(got, before), name + " still has " + got
			})
			if !strings.Contains(got, step.want) {
				t.Errorf("after %s %s %s, %s has %s", step.method, step.path, step.body, name, got)
			}
		}
		before = step.want
	}
}

// sender returns a function that resolves the webhook of e1 from a copy of its own, like a
// process that only sends. The function describes the webhook like the response to a read.
func sender(t *testing.T, args []string) func() string {
	t.Helper()
	s := idle(t, args)
	return func() string {
		t.Helper()
		hook, err := s.webhooks.Resolve(t.Context(), "acme", "e1")
		if err != nil {
			t.Fatal(err)
		}
		if hook.URL.IsZero() {
			return fmt.Sprintf(`"webhook_url":null,"source":%q`, hook.Source)
		}
		return fmt.Sprintf(`"webhook_url":%q,"source":%q`, hook.URL.Reveal(), hook.Source)
	}
}

// idle returns a service that neither serves nor delivers.
func idle(t *testing.T, args []string) *service {
	t.Helper()
	logger := newLogger(t.Output())
	cfg, err := parse(args, withMaster, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDatabase(cfg.store, false, logger)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(d, cfg, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestOutbox: if its notification can't be enqueued, a module doesn't change.
func TestOutbox(t *testing.T) {
	store := newStore(t)
	service, _ := start(t, "-store", store, "-dev")
	db, _, err := openSQLite(strings.TrimPrefix(store, "sqlite:"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE wh_outbox_message RENAME TO lost"); err != nil {
		t.Fatal(err)
	}
	expect(t, call(t, http.MethodPut, service+"/api/v1/modules/e1", "on"), "503 ")
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE lost RENAME TO wh_outbox_message"); err != nil {
		t.Fatal(err)
	}
	change(t, service, "e1")
}

func nothing(string) (string, bool) { return "", false }

// TestGivenUp prints the notifications of one client, and of all clients. They're more than one
// page. It needs no MASTER.
func TestGivenUp(t *testing.T) {
	const given = 103
	args, _ := withEnded(t, given)
	for _, step := range []struct {
		command []string
		printed int
	}{
		{[]string{"given-up"}, given},
		{[]string{"given-up", "acme"}, given - 1},
		{[]string{"given-up", "acme", "e2"}, 1},
		{[]string{"-since", "2100-01-01T00:00:00Z", "given-up"}, 0},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), append(args, step.command...), nothing, &out, t.Output()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), " msg_"); got != step.printed {
			t.Errorf("%v prints %d notifications, want %d", step.command, got, step.printed)
		}
	}
}

// fullDisk refuses what's written to it.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestWriteFails: a list that can't be written isn't taken for a complete one.
func TestWriteFails(t *testing.T) {
	args, _ := withEnded(t, 1)
	for _, command := range []string{"secrets", "given-up"} {
		err := run(t.Context(), append(args, command), nothing, fullDisk{}, t.Output())
		if err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// withEnded returns a service that doesn't run, with notifications that were given up: one of
// other, and the rest of acme. Each client also has one that was dropped, and a webhook.
func withEnded(t *testing.T, given int) (args []string, s *service) {
	t.Helper()
	args = []string{"-store", newStore(t)}
	s = idle(t, args)
	for i := range given + 2 {
		client := "acme"
		if i < 2 {
			client = "other"
		}
		if _, err := s.update(t.Context(), module{client, fmt.Sprint("e", i), []byte("on")}); err != nil {
			t.Fatal(err)
		}
	}
	for client, entity := range map[string]string{"other": "e1", "acme": "e3"} {
		if err := s.database.webhooks.Apply(t.Context(), webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://example.com/"))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.database.ExecContext(t.Context(), "UPDATE wh_outbox_message SET state = $1, due = enqueued WHERE client = $2 AND entity <> $3", outbox.GivenUp-1, []byte(client), []byte(entity)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.database.ExecContext(t.Context(), "UPDATE wh_outbox_message SET state = $1, due = enqueued WHERE client = $2 AND entity = $3", outbox.Dropped-1, []byte(client), []byte(entity)); err != nil {
			t.Fatal(err)
		}
	}
	return args, s
}

// TestReplay starts to send notifications of one client or of all again, and says how many.
// A client that just did so doesn't keep others from it.
func TestReplay(t *testing.T) {
	const given = 5
	for _, step := range []struct {
		command string
		want    string
		scopes  map[string]webhookcfg.Scope // that are sent again
	}{
		{"replay nobody", "nobody: nothing to send again\n", nil},
		{"-since 2100-01-01T00:00:00Z replay", "", nil},
		{"-since 2001-01-01T00:00:00Z replay", "acme: 5\nother: 2\n", map[string]webhookcfg.Scope{"acme": webhookcfg.All(), "other": webhookcfg.All()}},
		{"replay other", "other: 2\n", map[string]webhookcfg.Scope{"other": webhookcfg.All()}},
		{"-since 2001-01-01T00:00:00Z replay acme e3", "acme: 1\n", map[string]webhookcfg.Scope{"acme": webhookcfg.Entity("e3")}},
	} {
		args, s := withEnded(t, given)
		var out bytes.Buffer
		if err := run(t.Context(), append(args, strings.Fields(step.command)...), nothing, &out, t.Output()); err != nil {
			t.Fatal(err)
		}
		if out.String() != step.want {
			t.Errorf("%s prints %q, want %q", step.command, &out, step.want)
		}
		for _, client := range []string{"acme", "other"} {
			plan, err := s.queue.PlanSendAgain(t.Context(), client, sent.Selection{Scope: webhookcfg.All()})
			if got := plan.Last.Selection.Scope; err != nil || got != step.scopes[client] {
				t.Errorf("%s: %s sends %v again, want %v: %v", step.command, client, got, step.scopes[client], err)
			}
		}
	}

	args, _ := withEnded(t, given)
	replay := func(fields ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append(args, fields...), nothing, &out, t.Output())
		return out.String(), err
	}
	if out, err := replay("replay"); err == nil || !strings.Contains(err.Error(), "give -since") || out != "" {
		t.Errorf("of all clients at any time: %q, %v", out, err)
	}
	if _, err := replay("replay", "acme"); err != nil {
		t.Error(err)
	}
	if out, err := replay("-since", "2001-01-01T00:00:00Z", "replay"); err == nil || !strings.Contains(err.Error(), `"acme": outbox: send again: the client sent this again a moment ago`) || out != "other: 2\n" {
		t.Errorf("while one is at it: %q, %v", out, err)
	}
}

// TestReplayOfTooManyToCount: what's outside of -since can hide how much is inside, but is no reason to
// send nothing.
func TestReplayOfTooManyToCount(t *testing.T) {
	args := []string{"-store", newStore(t)}
	s := idle(t, args)
	tx, err := s.database.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		if err := s.queue.Enqueue(t.Context(), tx, (module{"acme", fmt.Sprint("old", i), nil}).changed(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	const hour = int64(3600_000_000)
	if _, err := s.database.ExecContext(t.Context(), "UPDATE wh_outbox_message SET state = 2, attempts = 10, enqueued = enqueued - $1, due = enqueued + $2", 24*hour, 10*hour); err != nil {
		t.Fatal(err)
	}
	if _, err := s.update(t.Context(), module{"acme", "new", []byte("on")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.database.ExecContext(t.Context(), "UPDATE wh_outbox_message SET state = 2, attempts = 10, due = enqueued + $1 WHERE entity = $2", 5*hour, []byte("new")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	if err := run(t.Context(), append(args, "-since", since, "replay", "acme"), nothing, &out, t.Output()); err != nil || out.String() != "acme: 0 or more\n" {
		t.Errorf("%q, %v", &out, err)
	}
}

func TestSignIn(t *testing.T) {
	service, _ := start(t, "-store", newStore(t))
	for _, path := range []string{"/api/v1/modules/e1", "/api/v1/signing-key"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, service+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(path, "modules") {
			r.Method = http.MethodPut
		}
		r.SetBasicAuth("acme", "a-guess-at-the-secret")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	keys := make(map[string]bool)
	for _, client := range []string{client, other} {
		key := callAs(t, client, http.MethodGet, service+"/api/v1/signing-key", "")
		expect(t, key, `200 {"key":"whsec_`)
		keys[key] = true
	}
	if len(keys) != 2 {
		t.Error("two clients have the same key")
	}
}

// TestSigningKey: a client can ask for the key of one module, which differs if its keys depend on
// the webhook.
func TestSigningKey(t *testing.T) {
	s := idle(t, []string{"-dev", "-store", newStore(t)})
	derived, err := deliver.DerivedOriginKeys([]byte(master))
	if err != nil {
		t.Fatal(err)
	}
	s.keys = derived
	h, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	keys := make(map[string]bool)
	for id, url := range map[string]string{"e1": "http://127.0.0.1:1/", "e2": "http://127.0.0.1:2/"} {
		key := func() string {
			return call(t, http.MethodGet, server.URL+"/api/v1/signing-key?endpoint_id="+id, "")
		}
		expect(t, call(t, http.MethodPut, server.URL+"/api/v1/modules/"+id, "on"), "200 ")
		expect(t, key(), `200 {"key":""}`)
		expect(t, call(t, http.MethodPost, server.URL+webhooks, fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":%q}`, id, url)), "200 ")
		expect(t, key(), `200 {"key":"whsec_`)
		keys[key()] = true
	}
	if len(keys) != 2 {
		t.Error("two modules have the same key")
	}
	for _, id := range []string{"", "a/b"} {
		expect(t, call(t, http.MethodGet, server.URL+"/api/v1/signing-key?endpoint_id="+id, ""), `400 {"error":"invalid_request"`)
	}
	for _, query := range []string{"endpoint_id=e1&endpoint_id=e2", "moc_id=e1", "endpoint_id=e1&moc_id=e2", "endpoint_id=%zz", "endpoint_id=e1;a", "e1"} {
		expect(t, call(t, http.MethodGet, server.URL+"/api/v1/signing-key?"+query, ""), "400 want one endpoint_id")
	}
}

// TestWarm: a process that starts reads the webhooks that are set, before it needs one.
func TestWarm(t *testing.T) {
	store := newStore(t)
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://example.com/in"))
	if err := idle(t, []string{"-store", store}).database.webhooks.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	_, metrics := start(t, "-store", store)
	await(t, func() (bool, string) {
		entries := figure(t, metrics, `webhook_cache_entries{part="copy"}`)
		return entries == "1", entries + " entries of the copy"
	})
}

// TestBadModules: a module is refused if it can't be stored or can't have a webhook.
func TestBadModules(t *testing.T) {
	service, _ := start(t, "-store", newStore(t), "-dev")
	longest := strings.Repeat("a", 64)
	for _, id := range []string{longest + "a", "a%20b", "a%0A", "a%00", "%ff", "..%2f", "%2e"} {
		expect(t, call(t, http.MethodPut, service+"/api/v1/modules/"+id, "on"), "400 ")
	}
	expect(t, call(t, http.MethodPut, service+"/api/v1/modules/e1", strings.Repeat("x", 64<<10+1)), "400 ")
	_, secret, _ := strings.Cut(client, ":")
	expect(t, call(t, http.MethodPut, service+"/api/v1/modules/"+secret, "on"), "400 ")
	expect(t, call(t, http.MethodGet, service+"/api/v1/signing-key?endpoint_id="+secret, ""), "400 ")
	for _, id := range []string{longest, "Az-09_"} {
		change(t, service, id)
		set := fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":"http://127.0.0.1:1/"}`, id)
		expect(t, call(t, http.MethodPost, service+webhooks, set), "200 ")
	}
}

func TestBadArguments(t *testing.T) {
	there := newStore(t)
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no engine", []string{"-store", "service.db"}, "want sqlite:PATH"},
		{"unknown engine", []string{"-store", "redis:127.0.0.1"}, "want sqlite:PATH"},
		{"a DSN without its scheme", []string{"-store", "host=127.0.0.1 password=s3cret"}, "want sqlite:PATH"},
		{"bad URL", []string{"-store", "postgres://app:s3cret@%%"}, "rejected by pgx"},
		{"a missing certificate", []string{"-store", "postgres://app:s3cret@127.0.0.1:1/app?sslmode=verify-full&sslrootcert=missing.pem"}, "open missing.pem: "},
		{"connection refused", []string{"-store", "postgres://app:s3cret@127.0.0.1:1/app", "-migrate"}, "connect"},
		{"bad schedule", []string{"-store", there, "-schedule", "5s,soon"}, "schedule"},
		{"no time for an attempt", []string{"-store", there, "-timeout", "0"}, "-timeout 0s: must be greater than zero"},
		{"a missing directory", []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "none", "service.db"), "-migrate"}, "service.db: "},
		{"no time in a copy", []string{"-store", there, "-max-stale", "0"}, "-max-stale 0s: must be greater than zero"},
		{"no pause", []string{"-store", there, "-max-pause", "0"}, "-max-pause 0s: must be greater than zero"},
		{"a negative pause", []string{"-store", there, "-max-pause", "-1s"}, "-max-pause -1s: must be greater than zero"},
		{"an end before the start", []string{"-store", there, "-drain", "-5s"}, "-drain -5s: must not be negative"},
		{"a negative delay", []string{"-store", there, "-schedule", "1s,-1s"}, "-1s: must not be negative"},
		{"too fresh", []string{"-store", there, "-max-stale", "1ns"}, "MaxStale is 1ns"},
		{"unknown command", []string{"-store", there, "repeat"}, `unknown command "repeat"`},
		{"a bad time", []string{"-store", there, "-since", "yesterday"}, "since"},
		{"no store", []string{"-store", ""}, "perhaps because a variable isn't set"},
		{"a password that isn't escaped", []string{"-store", "postgres://app:12/s3cret@127.0.0.1/app"}, "in a password, write / as %2F"},
		{"a password with a #", []string{"-store", "postgres://app:12#s3cret@127.0.0.1/app"}, "write it as %23"},
		{"no address", []string{"-store", there, "-listen", ""}, "-listen is empty"},
		{"no port", []string{"-store", there, "-listen", "127.0.0.1:"}, "ends after the colon"},
		{"no port for metrics", []string{"-store", there, "-metrics", "127.0.0.1:"}, "ends after the colon"},
		{"empty command", []string{"-store", there, ""}, " is empty, perhaps"},
		{"empty client", []string{"-store", there, "replay", ""}, " is empty, perhaps"},
		{"empty name of a secret", []string{"-store", there, "retire", "acme", ""}, " is empty, perhaps"},
		{"two entities", []string{"-store", there, "replay", "acme", "e1", "e2"}, `unexpected argument "e2"`},
		{"a name where none is used", []string{"-store", there, "secrets", "acme", "first"}, `unexpected argument "first"`},
		{"a client to migrate", []string{"-store", there, "migrate", "acme"}, `unexpected argument "acme"`},
		{"a time where none is used", []string{"-store", there, "-since", "2026-01-31T12:00:00Z", "secrets"}, "secrets doesn't use -since"},
		{"a time to serve", []string{"-store", there, "-since", "2026-01-31T12:00:00Z"}, "serving doesn't use -since"},
		{"flags of the service", []string{"-store", there, "-schedule", "1s", "-listen", "127.0.0.1:0", "replay", "acme"}, "replay doesn't use -listen, -schedule"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, log bytes.Buffer
			err := run(t.Context(), tt.args, withMaster, &out, &log)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if text := fmt.Sprint(err, out.String(), log.String()); strings.Contains(text, "s3cret") {
				t.Errorf("the password shows: %s", text)
			}
		})
	}
	for name, lookup := range map[string]environment{"none": nothing, "short": variables(map[string]string{"MASTER": "too-short"})} {
		if err := run(t.Context(), []string{"-store", there}, lookup, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "MASTER, want for instance the output of openssl") {
			t.Errorf("with the master %q: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "a-file-with-a-master-that-is-long-enough")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for master, want := range map[string]string{
		file:                                     "set MASTER_FILE to that",
		"MASTER=" + master:                       "it's a line of a script",
		"$MASTER_SECRET_that_is_long_enough_aa":  "placeholder",
		"{{.Values.master.that.is.long.enough}}": "placeholder",
		"<the-output-of-openssl-rand-base64-32>": "placeholder",
	} {
		lookup := variables(map[string]string{"MASTER": master})
		if err := run(t.Context(), []string{"-store", there}, lookup, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), master) {
			t.Errorf("with the master %q: %v, want %q", master, err, want)
		}
	}
}

// TestNotReady: if the database can't be used, every command ends with the cause. If nothing but
// its tables or its file is missing, the error says what to do, and no command creates them.
func TestNotReady(t *testing.T) {
	missing, empty := filepath.Join(t.TempDir(), "service.db"), filepath.Join(t.TempDir(), "service.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for store, want := range map[string]string{
		"sqlite:" + missing:                     "if the path is right, run the command migrate first, as the user of the service, or start the service with -migrate",
		"sqlite:" + empty:                       "the tables are missing: there's none with the prefix wh_: call Migrate: wait if a backup is being restored, otherwise run the command migrate first",
		"postgres://app:s3cret@127.0.0.1:1/app": "connection refused",
	} {
		for _, command := range [][]string{nil, {"add"}, {"secrets"}, {"retire"}, {"given-up"}, {"replay"}} {
			var log bytes.Buffer
			err := run(t.Context(), append([]string{"-store", store}, command...), withMaster, io.Discard, &log)
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s %q: %v", store, command, err)
			}
			if log.Len() > 0 {
				t.Errorf("%s %q logs %s", store, command, &log)
			}
			if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%q: %v", command, err)
			}
		}
	}
}

// TestMissingTable: if any table is missing, as after an incomplete restore, /healthz of a running
// service says so, and no command starts. The error names the table, which migrate doesn't create again.
func TestMissingTable(t *testing.T) {
	for _, table := range []string{"wh_override", "wh_delivery", "wh_outbox_message", "wh_outbox_again", "secrets", "modules"} {
		store := newStore(t)
		service, _ := start(t, "-store", store)
		expect(t, call(t, http.MethodGet, service+"/healthz", ""), "200 ")
		d, err := openDatabase(store, false, newLogger(t.Output()))
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{"DROP VIEW wh_webhook", "DROP TABLE " + table} {
			if _, err := d.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		await(t, func() (bool, string) {
			got := call(t, http.MethodGet, service+"/healthz", "")
			return strings.HasPrefix(got, "503 "), got + " without the table " + table
		})
		for _, name := range []string{"given-up", "secrets", "migrate", "given-up"} {
			if text, err := command(t, store, name); err == nil || !strings.Contains(err.Error(), table) || !strings.Contains(err.Error(), "restore it") {
				t.Errorf("%s without the table %s: %s, %v", name, table, text, err)
			}
		}
	}
}

// TestMissingTables: if all tables of the webhooks or of the queue are missing, migrate names them, and
// doesn't create them empty while others are there. The statements that the error names do.
func TestMissingTables(t *testing.T) {
	for name, tt := range map[string]struct{ tables, schema string }{
		"webhooks": {"wh_schema wh_client wh_override wh_delivery", "store/sqlstore/schema/sqlite"},
		"queue":    {"wh_outbox_schema wh_outbox_message wh_outbox_line wh_outbox_pause wh_outbox_mark wh_outbox_process wh_outbox_again", "webhookcfg/deliver/outbox/schema/sqlite.sql"},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			d, err := openDatabase(store, false, newLogger(t.Output()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = d.Close() }()
			exec := func(statement string) {
				t.Helper()
				if _, err := d.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			exec("DROP VIEW wh_webhook")
			for table := range strings.FieldsSeq(tt.tables) {
				exec("DROP TABLE " + table)
			}
			for range 2 {
				if text, err := command(t, store, "migrate"); err == nil || !strings.Contains(err.Error(), "wh_") || !strings.HasSuffix(err.Error(), tt.schema) {
					t.Fatalf("%s, %v", text, err)
				}
			}
			files := []string{filepath.Join("..", "..", filepath.FromSlash(tt.schema))}
			if filepath.Ext(files[0]) == "" {
				if files, err = filepath.Glob(filepath.Join(files[0], "*.sql")); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				exec(string(text))
			}
			if text, err := command(t, store, "migrate"); err != nil {
				t.Errorf("after its remedy: %s, %v", text, err)
			}
		})
	}
}

// TestScheduleTwice: the last -schedule counts, as with other flags.
func TestScheduleTwice(t *testing.T) {
	cfg, err := parse([]string{"-schedule", "1s,2s", "-schedule", "3s"}, withMaster, t.Output())
	if err != nil || !slices.Equal(cfg.schedule, deliver.Schedule{3 * time.Second}) {
		t.Errorf("%v, %v", cfg.schedule, err)
	}
}

// TestVersionsGrow: each version is above the last, even if the clock has gone back since.
func TestVersionsGrow(t *testing.T) {
	s := idle(t, []string{"-store", newStore(t)})
	update := func() int64 {
		t.Helper()
		version, err := s.update(t.Context(), module{"acme", "e1", []byte("on")})
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	last := update()
	for range 100 {
		version := update()
		if version <= last {
			t.Fatalf("version %d after %d", version, last)
		}
		last = version
	}
	ahead := time.Now().Add(time.Hour).UnixMicro()
	if _, err := s.database.ExecContext(t.Context(), "UPDATE modules SET version = $1", ahead); err != nil {
		t.Fatal(err)
	}
	if got := update(); got != ahead+1 {
		t.Errorf("version %d after %d", got, ahead)
	}
}

// TestRestoredBackup: no change gets an ID that its receivers have seen, whether the module was
// changed or created since the restored backup, or the table was lost and is created empty.
func TestRestoredBackup(t *testing.T) {
	for name, restore := range map[string][]string{
		"changed since the backup": {"DELETE FROM modules", "INSERT INTO modules SELECT * FROM backup"},
		"created since the backup": {"DELETE FROM modules"},
		"the table was lost":       {"DROP TABLE modules", createModules},
	} {
		t.Run(name, func(t *testing.T) {
			s := idle(t, []string{"-store", newStore(t)})
			exec := func(statement string) {
				t.Helper()
				if _, err := s.database.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			change := func() string {
				t.Helper()
				version, err := s.update(t.Context(), module{"acme", "e1", []byte("on")})
				if err != nil {
					t.Fatal(err)
				}
				return module{"acme", "e1", nil}.changed(version).Message.ID
			}
			seen := []string{change()}
			exec("CREATE TABLE backup AS SELECT * FROM modules")
			seen = append(seen, change(), change())
			exec("DELETE FROM wh_outbox_message")
			for _, statement := range restore {
				exec(statement)
			}
			if err := s.database.migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range seen {
				if id := change(); slices.Contains(seen, id) {
					t.Errorf("the ID %s comes again", id)
				}
			}
		})
	}
}
