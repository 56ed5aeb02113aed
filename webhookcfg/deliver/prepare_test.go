package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

type prepare = func(ctx context.Context, client, entity string, m deliver.Message, r *http.Request) error

// inHeader returns a Prepare that changes the header only.
func inHeader(change func(http.Header)) prepare {
	return func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
		change(r.Header)
		return nil
	}
}

// setting returns a Prepare that sets a field.
func setting(name string, values ...string) prepare {
	return inHeader(func(h http.Header) { h[name] = values })
}

// TestPrepare: the host adds fields to the header of each attempt and test, after it was
// signed, and they arrive as it wrote them.
func TestPrepare(t *testing.T) {
	r := newReceiver(t, false, status(http.StatusNoContent))
	add := func(ctx context.Context, client, entity string, m deliver.Message, req *http.Request) error {
		if _, ok := ctx.Deadline(); !ok {
			return errors.New("no deadline")
		}
		body, err := io.ReadAll(req.Body)
		if err != nil || !bytes.Equal(body, m.Body) {
			return fmt.Errorf("the body is %q: %w", body, err)
		}
		req.Header.Set("X-Second", fmt.Sprintf("%s/%s %s %d", client, entity, m.ID, len(req.Header.Get("Webhook-Signature"))))
		req.Header.Add("Traceparent", "00-1-2-01")
		req.Header["X-lower"] = []string{"a", "b"}
		req.Header.Set("Idempotency-Key", m.ID)
		return nil
	}
	s := newSender(t, configured(t, r.URL+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{Prepare: add})
	check(t, "notification", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	check(t, "test of the base", s.Test(t.Context(), "acme", "", message), deliver.Delivered, "")
	attempt, _ := s.Begin(t.Context(), "acme", "e2", message)
	check(t, "attempt", attempt.Send(t.Context()), deliver.Delivered, "")
	for i, entity := range []string{"e1", "", "e2"} {
		got := r.received()[i]
		want := fmt.Sprintf("acme/%s %s %d", entity, message.ID, len(got.header.Get("Webhook-Signature")))
		if got.header.Get("X-Second") != want || len(got.header.Values("X-Lower")) != 2 || !bytes.Equal(got.body, message.Body) {
			t.Errorf("%q: %v %s", entity, got.header, got.body)
		}
		if got.header.Get("Traceparent") == "" || got.header.Get("Idempotency-Key") != message.ID || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %v", entity, got.header)
		}
	}
}

// TestPrepareForbidden: a host that changes more than its own fields learns which, and nothing
// is sent, in tests neither.
func TestPrepareForbidden(t *testing.T) {
	type misuse struct {
		prepare
		want string
	}
	on := func(change func(m deliver.Message, r *http.Request), want string) misuse {
		return misuse{func(_ context.Context, _, _ string, m deliver.Message, r *http.Request) error {
			change(m, r)
			return nil
		}, want}
	}
	field := func(name string) misuse { return misuse{setting(name, "x"), "set the field " + name} }
	tests := map[string]misuse{
		"method":           on(func(_ deliver.Message, r *http.Request) { r.Method = http.MethodPut }, "the method"),
		"URL":              on(func(_ deliver.Message, r *http.Request) { r.URL.Path = "/elsewhere" }, "the URL"),
		"no URL":           on(func(_ deliver.Message, r *http.Request) { r.URL = nil }, "the URL"),
		"another URL":      on(func(_ deliver.Message, r *http.Request) { r.URL = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} }, "the URL"),
		"host":             on(func(_ deliver.Message, r *http.Request) { r.Host = "internal.example" }, "Host"),
		"body":             on(func(_ deliver.Message, r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{}")) }, "the body"),
		"no body":          on(func(_ deliver.Message, r *http.Request) { r.Body = nil }, "the body"),
		"bytes":            on(func(m deliver.Message, _ *http.Request) { m.Body[0] = '[' }, "the body"),
		"length":           on(func(_ deliver.Message, r *http.Request) { r.ContentLength = 1 }, "ContentLength"),
		"chunks":           on(func(_ deliver.Message, r *http.Request) { r.TransferEncoding = []string{"chunked"} }, "TransferEncoding"),
		"trailer":          on(func(_ deliver.Message, r *http.Request) { r.Trailer = http.Header{"X": nil} }, "Trailer"),
		"close":            on(func(_ deliver.Message, r *http.Request) { r.Close = true }, "Close"),
		"no header":        on(func(_ deliver.Message, r *http.Request) { r.Header = nil }, "Webhook-Id"),
		"whole":            on(func(_ deliver.Message, r *http.Request) { *r = http.Request{} }, "the body"),
		"id":               {setting("Webhook-Id", "other"), "changed the field Webhook-Id"},
		"second id":        {setting("webhook-id", "other"), "second field webhook-id"},
		"timestamp":        {setting("Webhook-Timestamp", "1"), "changed the field Webhook-Timestamp"},
		"signature":        {inHeader(func(h http.Header) { h.Add("Webhook-Signature", "v1,x") }), "changed the field Webhook-Signature"},
		"no signature":     {inHeader(func(h http.Header) { h.Del("Webhook-Signature") }), "changed the field Webhook-Signature"},
		"name with colon":  {setting("X:", "x"), "invalid"},
		"empty name":       {setting("", "x"), "invalid"},
		"line break":       {setting("X", "x\r\nConnection: close"), "invalid"},
		"NUL":              {setting("X", "\x00"), "invalid"},
		"Connection":       field("Connection"),
		"connection":       field("connection"),
		"Content-Length":   field("Content-Length"),
		"Transfer":         field("Transfer-Encoding"),
		"Trailer field":    field("Trailer"),
		"TE":               field("TE"),
		"Upgrade":          field("Upgrade"),
		"Expect":           field("Expect"),
		"Keep-Alive":       field("Keep-Alive"),
		"Host field":       field("Host"),
		"HTTP2-Settings":   field("HTTP2-Settings"),
		"Proxy-Connection": field("Proxy-Connection"),
		"Proxy-Auth":       field("proxy-authorization"),
	}
	r := newReceiver(t, false, status(http.StatusNoContent))
	st := configured(t, r.URL+secretPath)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Prepare: tt.prepare})
			m := message
			m.Body = bytes.Clone(message.Body)
			for call, result := range map[string]deliver.Result{"Send": s.Send(t.Context(), "acme", "e1", m), "Test": s.Test(t.Context(), "acme", "e1", m)} {
				check(t, call, result, deliver.Deferred, deliver.ReasonUnavailable)
				if text := fmt.Sprint(result.Err); !strings.Contains(text, "Options.Prepare") || !strings.Contains(text, tt.want) {
					t.Errorf("%s: error %s, want %q in it", call, text, tt.want)
				}
			}
			if !bytes.Equal(m.Body, message.Body) {
				t.Errorf("the caller's body is %s", m.Body)
			}
		})
	}
	if n := len(r.received()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestPrepareFails: if Prepare fails or panics, the slot is free again, and no error shows the
// path of the URL.
func TestPrepareFails(t *testing.T) {
	r := newReceiver(t, false, status(http.StatusNoContent))
	st := configured(t, r.URL+secretPath)
	for name, tt := range map[string]struct {
		prepare
		want string
	}{
		"error": {func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
			return fmt.Errorf("no token for %v: %w", r.URL, errPanic)
		}, "Options.Prepare: no token for http://127.0.0.1"},
		"error about another URL": {func(context.Context, string, string, deliver.Message, *http.Request) error {
			return errors.New("still at https://old.example.com/0ld?t0ken")
		}, "Options.Prepare: still at https://old.example.com/[path]"},
		"long error": {func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
			return fmt.Errorf("no token for %v: %s", r.URL, strings.Repeat("x", 9<<10))
		}, "deliver: Options.Prepare: withheld: "},
		"panic": {func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
			panic("of " + r.URL.String())
		}, "Options.Prepare panicked: value of type string"},
		"panic of the runtime": {func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
			r.Header = nil
			r.Header.Set("X", "x")
			return nil
		}, "nil map"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Prepare: tt.prepare, PerHost: 1})
			for range 3 {
				attempt, _ := s.Begin(t.Context(), "acme", "e1", message)
				result := attempt.Send(t.Context())
				check(t, name, result, deliver.Deferred, deliver.ReasonUnavailable)
				if text := fmt.Sprint(result.Err); !strings.Contains(text, tt.want) {
					t.Errorf("error %s, want %q in it", text, tt.want)
				}
				if name == "error" && !errors.Is(result.Err, errPanic) {
					t.Errorf("the error %v isn't the host's", result.Err)
				}
			}
		})
	}
	if n := len(r.received()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestPrepareHangs: a Prepare that ignores its context keeps the slot until it returns. Nothing
// is sent then, and the receiver isn't to blame.
func TestPrepareHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{}
		hang := func(context.Context, string, string, deliver.Message, *http.Request) error {
			time.Sleep(time.Minute)
			return nil
		}
		s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), PerHost: 1, Prepare: hang})
		sent := make(chan deliver.Result)
		go func() { sent <- s.Send(t.Context(), "acme", "e1", message) }()
		time.Sleep(30 * time.Second)
		check(t, "meanwhile", s.Send(t.Context(), "acme", "e1", message), deliver.Deferred, deliver.ReasonBusy)
		check(t, "at last", <-sent, deliver.Deferred, deliver.ReasonUnavailable)
		if n := len(in.ids()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestWebHookOrigin: a receiver that insists on the abuse protection of the CloudEvents webhook
// specification gives its consent when a client sets its URL, and gets the origin with each
// notification and test. One that doesn't consent can't be set.
func TestWebHookOrigin(t *testing.T) {
	const origin, id, secret = "modules.example.com", "acme", "a secret of acme"
	allowed := origin
	r := newReceiver(t, false, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case !slices.Equal(req.Header.Values("WebHook-Request-Origin"), []string{origin}):
			w.WriteHeader(http.StatusForbidden)
		case req.Method == http.MethodOptions:
			w.Header().Set("WebHook-Allowed-Origin", allowed)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	consent, err := egress.Handshake(origin)
	if err != nil {
		t.Fatal(err)
	}
	prober, err := policy().Prober(&egress.ProberOptions{HTTPProbe: consent})
	if err != nil {
		t.Fatal(err)
	}
	st := store.NewMemory()
	server := hooktest.Serve(t, hooktest.NewHandler(t, st, hooktest.NewVerifier(t, id, secret), &webhookcfg.Options{Policy: policy(), Prober: prober}))
	set := func(path string) int {
		t.Helper()
		body := strings.NewReader(`{"webhook_url":"` + r.URL + path + `"}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/v1/configure/configure-webhook", body)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(id, secret)
		req.Header.Set("Content-Type", "application/json")
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := set(secretPath); got != http.StatusOK {
		t.Fatalf("set: status %d", got)
	}
	allowed = "other.example.com"
	if got := set("/another"); got != http.StatusBadRequest {
		t.Errorf("set without consent: status %d", got)
	}

	keys := keyring{deliver.GenerateKey()}
	silent := newSender(t, st, keys, nil)
	check(t, "without the origin", silent.Send(t.Context(), id, "e1", message), deliver.Failed, deliver.ReasonStatus)
	s := newSender(t, st, keys, &deliver.Options{Prepare: setting("WebHook-Request-Origin", origin)})
	check(t, "notification", s.Send(t.Context(), id, "e1", message), deliver.Delivered, "")
	check(t, "test", s.Test(t.Context(), id, "", message), deliver.Delivered, "")
}
