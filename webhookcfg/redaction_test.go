package webhookcfg_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// The secret parts of a URL are its path and query.
const (
	secretURL  = "https://hooks.example.com:8443/services/T0PSECRET?k=QU3RY"
	secretPath = "/services/T0PSECRET"
)

func leaks(text string) bool {
	for _, secret := range []string{"s3cret", "T0PSECRET", "QU3RY", "YWNtZTpzM2NyZXQ"} {
		if strings.Contains(text, secret) {
			return true
		}
	}
	return false
}

// TestSecretsStaySecret runs every failure, with parts of the host that quote their
// arguments, and searches all output for secrets.
func TestSecretsStaySecret(t *testing.T) {
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(secretURL))
	quoting := func() error {
		return fmt.Errorf("driver: bad value %q, path %s?k=QU3RY, %+v", secretURL, secretPath, change)
	}
	faults := map[string]func() error{
		"error":            quoting,
		"wrapped":          func() error { return errors.Join(errBroken, quoting()) },
		"panic, error":     func() error { panic(quoting()) },
		"panic, text":      func() error { panic(fmt.Sprint("at ", secretURL, " by s3cret")) },
		"panic, change":    func() error { panic(fmt.Sprintf("%v %+v %#v", change, &change, change)) },
		"panic, as it is":  func() error { panic(change) },
		"invalid argument": func() error { return errors.Join(webhookcfg.ErrInvalidArgument, quoting()) },
		"escaped":          func() error { return fmt.Errorf("driver: %s", url.QueryEscape(secretURL)) },
		"tail":             func() error { return errors.New("driver: services/T0PSECRET?k=QU3RY") },
		"unwrapped":        func() error { return &os.PathError{Op: "open", Path: secretURL, Err: errBroken} },
		"path alone":       func() error { return errors.New("driver: " + secretPath) },
		"query alone":      func() error { return errors.New("driver: k=QU3RY") },
		"another URL":      func() error { return errors.New("driver: still at https://old.example.com/T0PSECRET?k=QU3RY") },
		"refusal":          func() error { return fmt.Errorf("%w: %w", quoting(), overLimit) },
		"none":             func() error { return nil },
	}
	for name, fault := range faults {
		for _, mode := range []webhookcfg.ProbeMode{webhookcfg.ProbeOff, webhookcfg.ProbeWarn, webhookcfg.ProbeEnforce} {
			var out bytes.Buffer
			o := options()
			o.ProbeMode = mode
			o.Prober = prober(func(context.Context, string, egress.URL) error { return fault() })
			o.OnEvent = func(_ context.Context, e webhookcfg.Event) {
				fmt.Fprintf(&out, "%v %+v %#v %v\n", e, e, e, errors.Unwrap(e.Err))
				slog.New(slog.NewTextHandler(&out, nil)).Info("event", "event", e, "scope", e.Scope, "url", e.URL)
				slog.New(slog.NewJSONHandler(&out, nil)).Info("event", "event", e)
			}
			for _, handler := range []func(io.Writer, *slog.HandlerOptions) slog.Handler{
				func(w io.Writer, ho *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, ho) },
				func(w io.Writer, ho *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, ho) },
			} {
				o.Logger = slog.New(handler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
				h := hooktest.NewHandler(t, faulty{fault: func(context.Context) error { return fault() }}, verifier(verify), o)
				if o.CheckChange == nil { // the second handler has one, whose faults come first
					o.Refusals = []webhookcfg.Refusal{overLimit}
					o.CheckChange = func(context.Context, webhookcfg.Change) error { return fault() }
				}
				for _, body := range []string{
					`{"webhook_url":"` + secretURL + `"}`,
					`{"endpoint_id":"` + secretPath + `","webhook_url":"` + secretURL + `"}`,
					`{"webhook_url":"http:` + secretURL[len("https:"):] + `"}`,
					`{"webhook_url":"` + secretURL + `#"}`,
					`{"webhook_url":"` + secretURL + `","` + secretURL + `":""}`,
				} {
					r := httptest.NewRequest("POST", configure, strings.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					r.SetBasicAuth("acme", "s3cret")
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					fmt.Fprintln(&out, w.Header(), w.Body)
				}
			}
			if leaks(out.String()) {
				t.Errorf("%s, probe %v: a secret in the output:\n%s", name, mode, &out)
			}
			if out.Len() == 0 {
				t.Errorf("%s: no output", name)
			}
		}
	}
}

// TestSecretInVerifierError: the verifier's errors can contain the secret in any encoding,
// and a caller's secret can equal the text that we show instead.
func TestSecretInVerifierError(t *testing.T) {
	spellings := map[string]func(secret string) string{
		"plain":     func(s string) string { return s },
		"quoted":    strconv.Quote,
		"cut":       func(s string) string { return s[:len(s)-1] + "…" },
		"head":      func(s string) string { return s[:len(s)/2+1] },
		"reversed":  func(s string) string { b := []byte(s); slices.Reverse(b); return string(b) },
		"upper":     strings.ToUpper,
		"base64":    func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64url": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("acme:" + s)) },
		"token":     func(s string) string { return token("acme", s) },
		"hex":       func(s string) string { return hex.EncodeToString([]byte(s)) },
		"bytes":     func(s string) string { return fmt.Sprint([]byte(s)) },
		"path":      url.PathEscape,
		"query":     url.QueryEscape,
	}
	outage := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	faults := []struct {
		fault func(text string) error
		shown string
	}{
		{func(text string) error { return fmt.Errorf("GET /%s: %w", text, outage) }, "verifier failed (*fmt.wrapError: *net.OpError: *os.SyscallError: syscall.Errno)"},
		{func(text string) error { return fmt.Errorf("%w: %s", webhookcfg.ErrInvalidCredentials, text) }, "verifier refused the credentials (*fmt.wrapError: *errors.errorString)"},
		{func(text string) error { return errors.Join(webhookcfg.ErrInvalidCredentials, errors.New(text)) }, "verifier refused the credentials (*errors.joinError: *errors.errorString: *errors.errorString)"},
		{func(text string) error { return waiting{errors.New(text), 7 * time.Second} }, "verifier asks to wait 7s (webhookcfg_test.waiting: *errors.errorString)"},
		{func(text string) error {
			return fmt.Errorf("%s: %w", text, redact.Fixed("auth: no address"))
		}, "verifier failed: auth: no address (*fmt.wrapError: redact.Fixed)"},
		{func(text string) error { panic("hash of " + text) }, "panic: value of type string, in the verifier"},
		{func(text string) error { panic(errors.New(text)) }, "panic: value of type *errors.errorString, in the verifier"},
	}
	for _, tt := range faults {
		for name, spell := range spellings {
			for _, secret := range []string{"Zx9-hunter2 & Zx9", `Zx9"quoted\`, "verifier", "type", tt.shown} {
				var out bytes.Buffer
				var event webhookcfg.Event
				o := options()
				o.Logger = slog.New(slog.NewJSONHandler(&out, nil))
				o.OnEvent = func(_ context.Context, e webhookcfg.Event) {
					event = e
					fmt.Fprintf(&out, "%v %+v %#v %v\n", e, e, e, e.Err)
				}
				h := hooktest.NewHandler(t, newRecorder(), verifier(func(_ context.Context, _, secret string) (webhookcfg.Client, error) {
					return webhookcfg.Client{}, tt.fault(spell(secret))
				}), o)
				r, w := setRequest(), httptest.NewRecorder()
				r.SetBasicAuth("acme", secret)
				h.ServeHTTP(w, r)
				fmt.Fprintln(&out, w.Header(), w.Body)
				if strings.HasPrefix(secret, "Zx9") && strings.Contains(out.String(), spell(secret)) {
					t.Errorf("%s: status %d: %s", name, w.Code, &out)
				}
				if event.Err == nil || event.Err.Error() != tt.shown {
					t.Errorf("%s of %q: shown %q, want %q", name, secret, event.Err, tt.shown)
				}
			}
		}
	}
}

// TestVerifierErrorMatches: a host can still tell the errors of its verifier apart.
func TestVerifierErrorMatches(t *testing.T) {
	var event webhookcfg.Event
	o := options()
	o.OnEvent = eventInto(&event)
	h := hooktest.NewHandler(t, newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
		return webhookcfg.Client{}, fmt.Errorf("directory: %w", syscall.ECONNREFUSED)
	}), o)
	h.ServeHTTP(httptest.NewRecorder(), setRequest())
	if !errors.Is(event.Err, syscall.ECONNREFUSED) {
		t.Errorf("%v does not match its cause", event.Err)
	}
}

// waiting is an error that makes the response a 429.
type waiting struct {
	error
	wait time.Duration
}

func (e waiting) RetryAfter() time.Duration { return e.wait }

func (e waiting) Unwrap() error { return e.error }

func token(id, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(id + ":" + secret))
}

// TestSecretInHookPanic: OnEvent panics with secrets.
func TestSecretInHookPanic(t *testing.T) {
	var out bytes.Buffer
	o := options()
	o.Logger = slog.New(slog.NewJSONHandler(&out, nil))
	o.OnEvent = func(context.Context, webhookcfg.Event) { panic(secretURL + " by s3cret") }
	r := httptest.NewRequest("POST", configure, strings.NewReader(`{"webhook_url":"`+secretURL+`"}`))
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("acme", "s3cret")
	newHandler(t, newRecorder(), o).ServeHTTP(httptest.NewRecorder(), r)
	if leaks(out.String()) || !strings.Contains(out.String(), "[secret]") {
		t.Errorf("got %s", &out)
	}
}

// TestValuesRedact: the values of the package hide the URL however they are printed.
func TestValuesRedact(t *testing.T) {
	url := egress.NewURL(secretURL)
	hook := webhookcfg.Webhook{URL: url, Source: webhookcfg.SourceOverride}
	change := webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), url)
	page := webhookcfg.Page{Base: hook, Overrides: []webhookcfg.Override{{Entity: "e1", Webhook: hook}}}
	type hidden struct{ inner any }
	type deep struct {
		change webhookcfg.Change
		hook   *webhookcfg.Webhook
		page   []webhookcfg.Page
	}
	values := []any{
		url, &url, hook, &hook, change, &change, page,
		[]any{url, hook},
		map[string]any{"x": change},
		hidden{change},
		&hidden{&hook},
		[]hidden{{page}},
		deep{change, &hook, []webhookcfg.Page{page}},
		webhookcfg.Event{URL: url, Err: errBroken},
	}
	for _, value := range values {
		// %x of a secret would spell it in hexadecimal.
		if text := hooktest.Prints(value); leaks(text) || strings.Contains(text, fmt.Sprintf("%x", "T0PSECRET")) {
			t.Errorf("%T leaks:\n%s", value, text)
		}
	}
}
