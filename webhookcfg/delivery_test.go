package webhookcfg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// deliveryReader reads e1, which has hookURL, where DeliveryStatus returns d.
func deliveryReader(t *testing.T, d *webhookcfg.DeliveryStatus) (read func(path string) *httptest.ResponseRecorder) {
	t.Helper()
	o := options()
	o.DeliveryStatus = func(context.Context, string, string, webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		return *d, nil
	}
	h := newHandler(t, newRecorder(), o)
	if err := h.Set(t.Context(), "acme", webhookcfg.Entity("e1"), hookURL); err != nil {
		t.Fatal(err)
	}
	return func(path string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", path+"/e1", nil), httptest.NewRecorder()
		r.SetBasicAuth("acme", "s3cret")
		h.ServeHTTP(w, r)
		return w
	}
}

// TestReadDelivery: a read shows the state, unless that is unknown.
func TestReadDelivery(t *testing.T) {
	at := func(seconds float64) time.Time {
		return noon.Add(time.Duration(seconds * float64(time.Second))).In(time.FixedZone("", 3600))
	}
	tests := []struct {
		name     string
		delivery webhookcfg.DeliveryStatus
		want     string
	}{
		{"nothing", webhookcfg.DeliveryStatus{}, ""},
		{"unknown state", webhookcfg.DeliveryStatus{Reason: "gone", LastFailure: at(1)}, ""},
		{"state alone", webhookcfg.DeliveryStatus{State: "ok"}, `{"state":"ok"}`},
		{
			"success",
			webhookcfg.DeliveryStatus{State: "ok", LastSuccess: at(1.9)},
			`{"state":"ok","last_success":"2026-01-02T03:04:06Z"}`,
		},
		{
			"failures",
			webhookcfg.DeliveryStatus{State: "failing", Reason: "unreachable", LastSuccess: at(1), LastFailure: at(3)},
			`{"state":"failing","reason":"unreachable","last_success":"2026-01-02T03:04:06Z","last_failure":"2026-01-02T03:04:08Z"}`,
		},
		{
			"pause",
			webhookcfg.DeliveryStatus{State: "failing", Reason: "throttled", LastFailure: at(3), PausedUntil: at(60)},
			`{"state":"failing","reason":"throttled","last_failure":"2026-01-02T03:04:08Z","paused_until":"2026-01-02T03:05:05Z"}`,
		},
		{
			"stop",
			webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone", LastFailure: at(3)},
			`{"state":"stopped","reason":"gone","last_failure":"2026-01-02T03:04:08Z"}`,
		},
	}
	for _, tt := range tests {
		for path, key := range map[string]string{configure: "endpoint_id", variant: "moc_id"} {
			want := strings.TrimSuffix(shown(key, "e1", hookURL, "override"), "}")
			if tt.want != "" {
				want += `,"delivery":` + tt.want
			}
			if got := deliveryReader(t, &tt.delivery)(path).Body.String(); got != want+"}" {
				t.Errorf("%s:\n got %s\nwant %s}", tt.name, got, want)
			}
		}
	}
}

// TestDeliveryStatusCalls: DeliveryStatus is called only in the read of one entity, and only
// with a URL in effect.
func TestDeliveryStatusCalls(t *testing.T) {
	var calls []string
	o := options()
	o.EntityExists = func(_ context.Context, _, entity string) (bool, error) { return entity != "e9", nil } // so that unsets resolve too
	o.DeliveryStatus = func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the call has no deadline")
		}
		calls = append(calls, fmt.Sprintf("%s %s %s %s %s", client, entity, hook.URL.Reveal(), hook.Source, hook.Since.UTC().Format(time.RFC3339)))
		return webhookcfg.DeliveryStatus{State: "ok"}, nil
	}
	address := serve(t, newHandler(t, newRecorder(), o))
	ok := func(response string) string { return strings.TrimSuffix(response, "}") + `,"delivery":{"state":"ok"}}` }
	got := steps(t, address, "get e1", "set e1 "+hookURL, "get e1", "set "+hookURL, "moc get e2", "unset e2", "get e2", "other get e2", "get e9", "unset e9")
	want := []string{
		shown("endpoint_id", "e1", "", "none"), successBody, ok(shown("endpoint_id", "e1", hookURL, "override")),
		successBody, ok(shown("moc_id", "e2", hookURL, "base")), successBody, shown("endpoint_id", "e2", "", "off"),
		shown("endpoint_id", "e2", "", "none"), "404 unknown_entity", "404 unknown_entity",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	steps(t, address, "set e3 "+hookURL, "list", "unset e3", "unset")
	const since = "2026-01-02T03:04:05Z"
	if diff := cmp.Diff([]string{"acme e1 " + hookURL + " override " + since, "acme e2 " + hookURL + " base " + since}, calls); diff != "" {
		t.Errorf("calls: -want +got:\n%s", diff)
	}
}

// TestDeliveryWords: a response has only words that the interface lists. If DeliveryStatus
// returns any other word, that's a defect.
func TestDeliveryWords(t *testing.T) {
	states, reasons := webhookcfg.DeliveryWords()
	for field, words := range map[string][]string{"state": states, "reason": reasons} {
		enum, description := openAPIWords(t, field)
		if diff := cmp.Diff(words, enum); diff != "" {
			t.Errorf("the %ss of the OpenAPI document: -want +got:\n%s", field, diff)
		}
		for _, word := range words {
			if !strings.Contains(description, "("+word+")") {
				t.Errorf("the OpenAPI document doesn't describe the %s %s", field, word)
			}
		}
	}
	known := regexp.MustCompile(`,"delivery":\{"state":"(` + strings.Join(states, "|") + `)"(,"reason":"(` + strings.Join(reasons, "|") + `)")?\}\}$`)
	words := []string{"", "OK", "Failing", "ok ", " gone", "gone\n", "ok|failing", "policy", "timeout", "tls", "410", hookURL, "\"", "\x00", "\xff", strings.Repeat("ok", 1<<16)}
	words = slices.Concat(words, states, reasons)
	var d webhookcfg.DeliveryStatus
	read := deliveryReader(t, &d)
	for _, state := range words {
		for _, reason := range words {
			d = webhookcfg.DeliveryStatus{State: state, Reason: reason}
			w := read(configure)
			validState, validReason := state == "" || slices.Contains(states, state), reason == "" || slices.Contains(reasons, reason)
			switch {
			case !validState || !validReason:
				if w.Code != http.StatusInternalServerError || errorCode(w.Body.String()) != "server_error" {
					t.Errorf("%.20q, %.20q: got %d %s", state, reason, w.Code, w.Body)
				}
			case state == "":
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "delivery") {
					t.Errorf("%q, %q: got %d %s", state, reason, w.Code, w.Body)
				}
			case w.Code != http.StatusOK || !known.MatchString(w.Body.String()):
				t.Errorf("%q, %q: got %d %s", state, reason, w.Code, w.Body)
			}
		}
	}
}

// openAPIWords returns the values that the document lists for a field of Delivery, and their
// description.
func openAPIWords(t *testing.T, field string) (words []string, description string) {
	t.Helper()
	_, schema, _ := strings.Cut(openAPI(t, options()), "\n    Delivery:\n")
	_, property, _ := strings.Cut(schema, "\n        "+field+":\n")
	description, enum, _ := strings.Cut(property, "\n          enum: [")
	enum, _, found := strings.Cut(enum, "]\n")
	if !found {
		t.Fatalf("the document has no values of %s", field)
	}
	return strings.Split(enum, ", "), description
}

// TestDeliveryStatusFromGo: a call from Go returns what a read of the client shows, and fails
// with the same error, without the URL. Only a failure is reported.
func TestDeliveryStatusFromGo(t *testing.T) {
	type status = webhookcfg.DeliveryStatus
	for name, tt := range map[string]struct {
		status func(entity string, hook webhookcfg.Webhook) (status, error)
		want   status
		code   string
	}{
		"known": {func(string, webhookcfg.Webhook) (status, error) {
			return status{State: "failing", Reason: "gone", LastFailure: noon}, nil
		}, status{State: "failing", Reason: "gone", LastFailure: noon}, ""},
		"not known": {func(string, webhookcfg.Webhook) (status, error) {
			return status{Reason: "gone", LastFailure: noon}, nil
		}, status{}, ""},
		"entity": {func(entity string, _ webhookcfg.Webhook) (status, error) {
			return status{State: map[string]string{"e1": "ok"}[entity]}, nil
		}, status{State: "ok"}, ""},
		"state": {func(_ string, hook webhookcfg.Webhook) (status, error) { return status{State: hook.URL.Reveal()}, nil }, status{}, "server_error"},
		"reason": {func(_ string, hook webhookcfg.Webhook) (status, error) {
			return status{State: "failing", Reason: hook.URL.Reveal()}, nil
		}, status{}, "server_error"},
		"error": {func(_ string, hook webhookcfg.Webhook) (status, error) {
			return status{State: "ok"}, errors.New(hook.URL.Reveal())
		}, status{}, "temporarily_unavailable"},
		"nil error": {func(string, webhookcfg.Webhook) (status, error) { return status{}, (*nilError)(nil) }, status{}, "temporarily_unavailable"},
		"panic":     {func(_ string, hook webhookcfg.Webhook) (status, error) { panic(hook.URL.Reveal()) }, status{}, "server_error"},
	} {
		var out bytes.Buffer
		var events []webhookcfg.Event
		o := options()
		o.Logger = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.DeliveryStatus = func(_ context.Context, _, entity string, hook webhookcfg.Webhook) (status, error) {
			return tt.status(entity, hook)
		}
		o.OnEvent = func(_ context.Context, e webhookcfg.Event) { events = append(events, e) }
		h := newHandler(t, newRecorder(), o)
		if err := h.Set(t.Context(), "acme", webhookcfg.Entity("e1"), secretURL); err != nil {
			t.Fatal(err)
		}
		hook, err := h.Read(t.Context(), "acme", "e1")
		if err != nil {
			t.Fatal(err)
		}
		events = nil
		out.Reset()
		got, err := h.DeliveryStatus(t.Context(), "acme", "e1", hook)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if tt.code == "" {
			if err != nil || events != nil || out.Len() > 0 {
				t.Errorf("%s: got %v, the events %v and the records %s", name, err, events, &out)
			}
			continue
		}
		r, w := readRequest(), httptest.NewRecorder()
		r.RemoteAddr = ""
		h.ServeHTTP(w, r)
		if e, ok := errors.AsType[*webhookcfg.Error](err); !ok || e.Code != tt.code || respond(t, err).Body.String() != w.Body.String() {
			t.Errorf("%s: got %v, and the client %s", name, err, w.Body)
		}
		if len(events) != 2 || report(events[0]) != report(events[1]) {
			t.Errorf("%s: got the events %+v", name, events)
		}
		if fmt.Fprint(&out, err, events); leaks(out.String()) {
			t.Errorf("%s: %s", name, &out)
		}
	}
}

// TestNoDeliveryStatusFromGo: without a URL or the option, nothing is known and nothing is
// called. The base has an empty entity, and a client must be one.
func TestNoDeliveryStatusFromGo(t *testing.T) {
	var entities []string
	o := options()
	o.DeliveryStatus = func(_ context.Context, client, entity string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		entities = append(entities, client+" "+entity)
		return webhookcfg.DeliveryStatus{State: "ok"}, nil
	}
	set := webhookcfg.Webhook{Source: webhookcfg.SourceBase, URL: egress.NewURL(hookURL)}
	with, without := newHandler(t, newRecorder(), o), newHandler(t, newRecorder(), options())
	for name, tt := range map[string]struct {
		h      *webhookcfg.Handler
		client string
		hook   webhookcfg.Webhook
		want   string
		err    error
	}{
		"base":      {with, "acme", set, "ok", nil},
		"off":       {with, "acme", webhookcfg.Webhook{Source: webhookcfg.SourceOff}, "", nil},
		"no option": {without, "acme", set, "", nil},
		"no client": {with, "", set, "", webhookcfg.ErrInvalidArgument},
	} {
		if got, err := tt.h.DeliveryStatus(t.Context(), tt.client, "", tt.hook); got.State != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if diff := cmp.Diff([]string{"acme "}, entities); diff != "" {
		t.Errorf("calls: -want +got:\n%s", diff)
	}
}

// TestSecretInDeliveryStatus: DeliveryStatus gets the URL, so its errors, panics and words
// can quote it. No response, event or record does.
func TestSecretInDeliveryStatus(t *testing.T) {
	for name, fault := range map[string]func(webhookcfg.Webhook) (word string, err error){
		"error":     func(hook webhookcfg.Webhook) (string, error) { return "", errors.New("quoted: " + hook.URL.Reveal()) },
		"panic":     func(hook webhookcfg.Webhook) (string, error) { panic("quoted: " + hook.URL.Reveal()) },
		"path only": func(webhookcfg.Webhook) (string, error) { return "", errors.New("quoted: " + secretPath) },
		"word":      func(hook webhookcfg.Webhook) (string, error) { return "quoted: " + hook.URL.Reveal(), nil },
	} {
		var out bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewJSONHandler(&out, nil))
		o.OnEvent = func(_ context.Context, e webhookcfg.Event) { fmt.Fprintf(&out, "%+v %v\n", e, e.Err) }
		o.DeliveryStatus = func(_ context.Context, _, _ string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
			word, err := fault(hook)
			return webhookcfg.DeliveryStatus{State: "failing", Reason: word}, err
		}
		h := newHandler(t, newRecorder(), o)
		if err := h.Set(t.Context(), "acme", webhookcfg.Entity("e1"), secretURL); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, readRequest())
		fmt.Fprintln(&out, w.Body)
		if text := out.String(); leaks(text) || !strings.Contains(text, "quoted: ") {
			t.Errorf("%s: status %d: %s", name, w.Code, text)
		}
	}
}
