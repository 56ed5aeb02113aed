package webhookcfg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestEvents checks the record and the event of each outcome.
func TestEvents(t *testing.T) {
	var records bytes.Buffer
	var event webhookcfg.Event
	o := options()
	o.Logger = slog.New(slog.NewJSONHandler(&records, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "time" || a.Key == "duration" {
			return slog.Attr{}
		}
		return a
	}}))
	o.OnEvent = eventInto(&event)
	o.ProbeMode = webhookcfg.ProbeWarn
	o.Prober = prober(func(_ context.Context, _ string, target egress.URL) error {
		if strings.Contains(target.Reveal(), "down") {
			return fmt.Errorf("cannot reach %s", target.Reveal())
		}
		return nil
	})
	h := newHandler(t, newRecorder(), o)
	do := func(method, target, body string) {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth("acme", "s3cret")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	const msg = `"msg":"webhook configuration request",`
	tests := []struct {
		method, target, body string
		record               string
	}{
		{"DELETE", configure + "?endpoint_id=", ``, `{"level":"INFO",` + msg + `"operation":"unset","status":400,"code":"invalid_request","description":"A request that reaches all entities takes no query string; the id of one entity belongs at the end of the path of a DELETE, and in the body of a POST","client":"acme","credential":"acme","source":"192.0.2.1","scope":"all"}`},
		{"POST", configure + "?endpoint_id=", `{"webhook_url":"https://h.example.com/"}`, `{"level":"INFO",` + msg + `"operation":"set","status":400,"code":"invalid_request","description":"A request that reaches all entities takes no query string; the id of one entity belongs at the end of the path of a DELETE, and in the body of a POST","client":"acme","credential":"acme","source":"192.0.2.1","scope":"all","url":"https://h.example.com"}`},
		{
			"POST", configure, `{"endpoint_id":"e1","webhook_url":"https://h.example.com:8443/t0ken?k=v"}`,
			`{"level":"INFO",` + msg + `"operation":"set","status":200,"client":"acme","credential":"acme","source":"192.0.2.1","scope":"entity e1","url":"https://h.example.com:8443"}`,
		},
		{
			"POST", variant, `{"webhook_url":"https://down.example.com/t0ken"}`,
			`{"level":"WARN",` + msg + `"operation":"set","status":200,"client":"acme","credential":"acme","source":"192.0.2.1","scope":"all","url":"https://down.example.com","error":"cannot reach https://down.example.com"}`,
		},
		{"DELETE", configure, ``, `{"level":"INFO",` + msg + `"operation":"unset","status":200,"client":"acme","credential":"acme","source":"192.0.2.1","scope":"all"}`},
		{"GET", configure + "/e1", ``, `{"level":"DEBUG",` + msg + `"operation":"read","status":200,"client":"acme","credential":"acme","source":"192.0.2.1","scope":"entity e1"}`},
		{"GET", configure, ``, `{"level":"DEBUG",` + msg + `"operation":"list","status":200,"client":"acme","credential":"acme","source":"192.0.2.1"}`},
		{
			"POST", configure, `{"webhook_url":"ftp://h.example.com/t0ken"}`,
			`{"level":"INFO",` + msg + `"operation":"set","status":400,"code":"invalid_webhook_url","description":"The URL must be absolute with the scheme https","client":"acme","credential":"acme","source":"192.0.2.1","scope":"all","url":"redacted"}`,
		},
	}
	for _, tt := range tests {
		records.Reset()
		event = webhookcfg.Event{}
		do(tt.method, tt.target, tt.body)
		if got := strings.TrimSpace(records.String()); got != tt.record {
			t.Errorf("%s %s: record\n%s\nwant\n%s", tt.method, tt.target, got, tt.record)
		}
		var record struct {
			Operation, Client, Code string
			Status                  int
		}
		if err := json.Unmarshal(records.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		if event.Operation != record.Operation || event.Client != record.Client || event.Status != record.Status || event.Code != record.Code {
			t.Errorf("the event %+v is not the record %+v", event, record)
		}
	}
	records.Reset()
	event = webhookcfg.Event{}
	do("PUT", configure, "")
	do("GET", "/nowhere", "")
	if records.Len() > 0 || event.Operation != "" {
		t.Errorf("requests that reach no operation were logged: %s %+v", &records, event)
	}
}

// TestRefusalNamesRule: the event and the record of a refusal have the text of the response, and
// show the URL as far as it goes.
func TestRefusalNamesRule(t *testing.T) {
	var records bytes.Buffer
	var event webhookcfg.Event
	o := options()
	o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
	o.OnEvent = eventInto(&event)
	o.BodyLimit = 2000
	o.ProbeMode = webhookcfg.ProbeEnforce
	o.Prober = prober(func(context.Context, string, egress.URL) error { return errBroken })
	h := newHandler(t, newRecorder(), o)
	descriptions := map[string]bool{}
	for _, tt := range []struct{ target, body, url string }{
		{configure, `{`, ""},
		{configure, "\xff", ""},
		{configure, `{"webhook_url":"https://h.example.com/t0ken","moc_id":"e1"}`, ""},
		{configure, `{"webhook_url":"https://h.example.com/t0ken","webhook_url":""}`, ""},
		{configure, `{"webhook_url":"https://h.example.com/t0ken","endpoint_id":null}`, ""},
		{configure, `{"endpoint_id":"e1"}`, ""},
		{configure, `"` + strings.Repeat("x", 2000) + `"`, ""},
		{configure, `{"webhook_url":"https://h.example.com/t0ken","endpoint_id":""}`, "https://h.example.com"},
		{configure + "?x", `{"webhook_url":"https://h.example.com/t0ken"}`, "https://h.example.com"},
		{configure, `{"webhook_url":"https://10.1.2.3/t0ken"}`, "https://10.1.2.3"},
		{configure, `{"webhook_url":"https://h.example.com:0/t0ken"}`, "https://h.example.com:0"},
		{configure, `{"webhook_url":"http://h.example.com/t0ken"}`, "http://h.example.com"},
		{configure, `{"webhook_url":"https://t0ken:t0ken@h.example.com/"}`, "https://h.example.com"},
		{configure, `{"webhook_url":"https://h.example.com/\\t0ken"}`, "https://h.example.com"},
		{configure, `{"webhook_url":"https://h.example.com/#t0ken"}`, "https://h.example.com"},
		{configure, `{"webhook_url":"https://localhost/t0ken"}`, "https://localhost"},
		{configure, `{"webhook_url":"https:///t0ken"}`, "redacted"},
		{configure, `{"webhook_url":"t0ken"}`, "redacted"},
		{configure, `{"webhook_url":"https://h.example.com/t0ken"}`, "https://h.example.com"},
	} {
		records.Reset()
		r, w := httptest.NewRequest("POST", tt.target, strings.NewReader(tt.body)), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/json")
		r.SetBasicAuth("acme", "s3cret")
		h.ServeHTTP(w, r)
		var record struct{ Code, Description, URL string }
		if err := json.Unmarshal(records.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		if event.Description == "" || w.Body.String() != errorBody(event.Code, event.Description) || record.Description != event.Description {
			t.Errorf("%.80s: response %s, event %q, record %q", tt.body, w.Body, event.Description, record.Description)
		}
		if event.URL.String() != tt.url || record.URL != tt.url || strings.Contains(records.String(), "t0ken") {
			t.Errorf("%.80s: URL of the event %s, want %q; record %s", tt.body, event.URL, tt.url, &records)
		}
		descriptions[event.Description] = true
	}
	if len(descriptions) < 16 {
		t.Errorf("only %d different reasons: %v", len(descriptions), descriptions)
	}
}

// TestEventNamesSecret: the record and the event name the secret that signed in, also if
// the request fails.
func TestEventNamesSecret(t *testing.T) {
	var records bytes.Buffer
	var event webhookcfg.Event
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(&records, nil))
	o.OnEvent = eventInto(&event)
	named := verifier(func(_ context.Context, id, _ string) (webhookcfg.Client, error) {
		return webhookcfg.Client{ID: id, SecretName: "spring"}, nil
	})
	h := hooktest.NewHandler(t, newRecorder(), named, o)
	for _, target := range []string{configure, configure + "/.."} {
		records.Reset()
		event = webhookcfg.Event{}
		r := httptest.NewRequest("DELETE", target, nil)
		r.SetBasicAuth("acme", "s3cret")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if event.Client != "acme" || event.SecretName != "spring" || !strings.Contains(records.String(), " client=acme credential=acme secret_name=spring") {
			t.Errorf("%s: got %+v and %s", target, event, &records)
		}
	}
}

// TestPresentedID: the event and the record of a sign-in that was refused or throttled show
// the id, cut and cleaned. They don't if it may be the secret.
func TestPresentedID(t *testing.T) {
	long := strings.Repeat("x", 127)
	for _, tt := range []struct {
		name, id string
		err      error
		omit     bool
		want     string
	}{
		{name: "wrong secret", id: "acme", err: webhookcfg.ErrInvalidCredentials, want: "acme"},
		{name: "throttled", id: "acme", err: retryError{time.Second}, want: "acme"},
		{name: "outage", id: "acme", err: errBroken},
		{name: "success", id: "acme"},
		{name: "switched off", id: "acme", err: webhookcfg.ErrInvalidCredentials, omit: true},
		{name: "long", id: long + "xx", err: webhookcfg.ErrInvalidCredentials, want: long + "x"},
		{name: "long, cut between characters", id: long + "\u00e9", err: webhookcfg.ErrInvalidCredentials, want: long},
		{name: "control and format characters", id: "a\u0085b\u202ec\u200bd\ufeff", err: webhookcfg.ErrInvalidCredentials, want: "abcd"},
		{name: "secret in the id", id: "acme s3cret", err: webhookcfg.ErrInvalidCredentials},
		{name: "secret in the id but for a format character", id: "s3\u200bcret", err: webhookcfg.ErrInvalidCredentials},
		{name: "secret as the id", id: "s3cret", err: webhookcfg.ErrInvalidCredentials},
	} {
		var event webhookcfg.Event
		var records bytes.Buffer
		o := options()
		o.OnEvent = eventInto(&event)
		o.OmitPresentedID = tt.omit
		o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
		h := hooktest.NewHandler(t, newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{ID: "owner"}, tt.err
		}), o)
		r := httptest.NewRequest("DELETE", configure, nil)
		r.SetBasicAuth(tt.id, "s3cret")
		h.ServeHTTP(httptest.NewRecorder(), r)
		var record struct {
			PresentedID string `json:"presented_id"`
			Credential  string
		}
		if err := json.Unmarshal(records.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		if event.PresentedID != tt.want || record.PresentedID != tt.want {
			t.Errorf("%s: the event has %q, the record %q, want %q", tt.name, event.PresentedID, record.PresentedID, tt.want)
		}
		credential := ""
		if tt.err == nil {
			credential = tt.id
		}
		if event.Credential != credential || record.Credential != credential {
			t.Errorf("%s: the credential is %q and %q, want %q", tt.name, event.Credential, record.Credential, credential)
		}
	}
}

// TestLevels: failures of the service are errors. Refused sign-ins, and sign-ins or probes
// that must wait, are warnings. A client that disconnects, or a URL that can't be reached, is
// neither.
func TestLevels(t *testing.T) {
	const info, warn, fail = "INFO", "WARN", "ERROR"
	throttled := errors.Join(webhookcfg.ErrInvalidCredentials, retryError{time.Second})
	tests := []struct {
		name       string
		verify     error
		probe      error
		store      error
		disconnect bool
		status     int
		level      string
	}{
		{"success", nil, nil, nil, false, 200, info},
		{"wrong secret", webhookcfg.ErrInvalidCredentials, nil, nil, false, 401, warn},
		{"throttled sign-in", throttled, nil, nil, false, 429, warn},
		{"throttled probe", nil, retryError{time.Second}, nil, false, 429, warn},
		{"unreachable", nil, errBroken, nil, false, 400, info},
		{"prober", nil, fmt.Errorf("probe: %w", egress.ErrUnavailable), nil, false, 503, fail},
		{"verifier", errBroken, nil, nil, false, 503, fail},
		{"store", nil, nil, errBroken, false, 503, fail},
		{"defect", nil, nil, webhookcfg.ErrInvalidArgument, false, 500, fail},
		{"disconnect", nil, context.Canceled, nil, true, 503, info},
		{"disconnect during a sign-in", fmt.Errorf("s3cret: %w", context.Canceled), nil, nil, true, 503, info},
		{"wrong secret, then a disconnect", errors.Join(webhookcfg.ErrInvalidCredentials, context.Canceled), nil, nil, true, 401, warn},
		{"outage, then a disconnect", nil, nil, errBroken, true, 503, fail},
		{"call that cancels itself", nil, nil, context.Canceled, false, 503, fail},
	}
	for _, tt := range tests {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		returns := func(err error) error {
			if err != nil && tt.disconnect {
				cancel()
			}
			return err
		}
		var records bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
		o.ProbeMode = webhookcfg.ProbeEnforce
		o.Prober = prober(func(context.Context, string, egress.URL) error { return returns(tt.probe) })
		h := hooktest.NewHandler(t, faulty{fault: func(context.Context) error { return returns(tt.store) }}, verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{ID: "acme"}, returns(tt.verify)
		}), o)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, setRequest().WithContext(ctx))
		if w.Code != tt.status || !strings.Contains(records.String(), `"level":"`+tt.level+`"`) {
			t.Errorf("%s: got %d, and the record %s", tt.name, w.Code, &records)
		}
	}
}

// TestRecordIsPrintable: nothing that others choose puts a character into a record that a log or a
// terminal could take for something else, however it gets there.
func TestRecordIsPrintable(t *testing.T) {
	const odd = "a\u009b2J\u202eb\x1b[31m\u200bc"
	failures := map[string]func() error{
		"error":   func() error { return errors.New(odd) },
		"joined":  func() error { return errors.Join(errBroken, errors.New(odd)) },
		"panic":   func() error { panic(odd) },
		"success": func() error { return nil },
	}
	for name, fail := range failures {
		for part, set := range map[string]func(*webhookcfg.Options){
			"prober": func(o *webhookcfg.Options) {
				o.Prober = prober(func(context.Context, string, egress.URL) error { return fail() })
			},
			"existing": func(o *webhookcfg.Options) {
				o.EntityExists = func(context.Context, string, string) (bool, error) { return true, fail() }
			},
			"event": func(o *webhookcfg.Options) { o.OnEvent = func(context.Context, webhookcfg.Event) { panic(odd) } },
		} {
			var records bytes.Buffer
			o := options()
			o.ProbeMode = webhookcfg.ProbeEnforce
			o.Prober = prober(func(context.Context, string, egress.URL) error { return nil })
			o.ValidEntityID = func(string) bool { return true }
			o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
			var event webhookcfg.Event
			o.OnEvent = eventInto(&event)
			set(o)
			h := hooktest.NewHandler(t, newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
				return webhookcfg.Client{ID: "acme\u202e", SecretName: odd}, nil
			}), o)
			for _, id := range []string{"acme\u009b\u202e", "acme"} {
				r := httptest.NewRequest("POST", configure, strings.NewReader(`{"endpoint_id":"e\u202e1","webhook_url":"`+hookURL+`"}`))
				r.Header.Set("Content-Type", "application/json")
				r.SetBasicAuth(id, "s3cret")
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
			if event.Err != nil && strings.ContainsAny(event.Err.Error(), "\u009b\u202e\u200b\x1b") {
				t.Errorf("%s, %s: the event has %+q", part, name, event.Err)
			}
			for _, r := range []string{"\u009b", "\u202e", "\u200b", `\u009b`, `\u001b`, `\u202e`} {
				if strings.Contains(records.String(), r) {
					t.Errorf("%s, %s: the record has %+q: %+q", part, name, r, records.String())
				}
			}
		}
	}
}

// TestUnservedReads: a GET that the host could have switched on gets a plain 405, and the log says
// how to switch it on. Other requests without a route aren't logged.
func TestUnservedReads(t *testing.T) {
	for _, tt := range []struct {
		name, method, path string
		reads              bool
		store              webhookcfg.Store
		want               string
	}{
		{"read", "GET", configure + "/e1", false, newRecorder(), "to serve GET, set Options.Reads"},
		{"list", "GET", variant, false, newRecorder(), "to serve GET, set Options.Reads"},
		{"list of a store without lists", "GET", configure, true, struct{ webhookcfg.Store }{newRecorder()}, "to serve lists, the store has to be a Lister"},
		{"slash", "GET", configure + "/", false, newRecorder(), ""},
		{"other method", "PUT", configure, false, newRecorder(), ""},
		{"other path", "GET", "/nowhere", false, newRecorder(), ""},
	} {
		var records bytes.Buffer
		o := options()
		o.Reads, o.Logger = tt.reads, slog.New(slog.NewJSONHandler(&records, nil))
		o.OnEvent = func(context.Context, webhookcfg.Event) { t.Errorf("%s: OnEvent was called", tt.name) }
		w := httptest.NewRecorder()
		newHandler(t, tt.store, o).ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		var record struct {
			Status int
			Error  string
		}
		if records.Len() > 0 {
			if err := json.Unmarshal(records.Bytes(), &record); err != nil {
				t.Fatal(err)
			}
		}
		if record.Error != tt.want || tt.want != "" && (record.Status != 405 || w.Code != 405) || strings.Contains(w.Body.String(), "Options") {
			t.Errorf("%s: got %d %s and the record %s", tt.name, w.Code, w.Body, &records)
		}
	}
}
