package webhookcfg_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
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

// TestSecretInVerifierError: the errors of the verifier quote the secret.
func TestSecretInVerifierError(t *testing.T) {
	for _, fault := range []func(secret string) error{
		func(secret string) error { return fmt.Errorf("no row for %q", secret) },
		func(secret string) error { return fmt.Errorf("GET /%s", url.PathEscape(secret)) },
		func(secret string) error { return fmt.Errorf("Authorization: Basic %s", token("acme", secret)) },
		func(secret string) error { return fmt.Errorf("%w: %s", webhookcfg.ErrInvalidCredentials, secret) },
		func(secret string) error { panic("hash of " + secret) },
		func(secret string) error { return fmt.Errorf("GET /?secret=%s", url.QueryEscape(secret)) },
	} {
		var out bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewJSONHandler(&out, nil))
		o.OnEvent = func(_ context.Context, e webhookcfg.Event) { fmt.Fprintf(&out, "%v %v\n", e, e.Err) }
		h := hooktest.NewHandler(t, newRecorder(), verifier(func(_ context.Context, _, secret string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, fault(secret)
		}), o)
		for _, secret := range []string{"s3cret", `s3cret"quoted\`, "s3cret & more"} {
			out.Reset()
			secretToken := token("acme", secret)
			r, w := setRequest(), httptest.NewRecorder()
			r.SetBasicAuth("acme", secret)
			h.ServeHTTP(w, r)
			fmt.Fprintln(&out, w.Header(), w.Body)
			if text := out.String(); leaks(text) || strings.Contains(text, secretToken) || !strings.Contains(text, "[secret]") {
				t.Errorf("status %d: %s", w.Code, &out)
			}
		}
	}
}

func token(id, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(id + ":" + secret))
}

// TestGuessedSecret: the secret of a caller that is not signed in can neither blank an
// error nor make it grow beyond twice its length and the types.
func TestGuessedSecret(t *testing.T) {
	const types = "*fmt.wrapError: *net.OpError: *os.SyscallError: syscall.Errno"
	outage := fmt.Errorf("directory: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	for _, guess := range []string{"e", "c", " ", "[secret]", "secr", "conn", "dial", outage.Error(), "directory: dial", "tcp: connect"} {
		for _, cause := range []error{outage, fmt.Errorf("%s: %w", strings.Repeat(guess, 100), outage)} {
			var event webhookcfg.Event
			o := options()
			o.OnEvent = eventInto(&event)
			h := hooktest.NewHandler(t, newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
				return webhookcfg.Client{}, cause
			}), o)
			r := setRequest()
			r.SetBasicAuth("acme", guess)
			h.ServeHTTP(httptest.NewRecorder(), r)
			got := event.Err.Error()
			if len(got) > 2*len(cause.Error())+200 {
				t.Errorf("%q makes %d bytes %d", guess, len(cause.Error()), len(got))
			}
			if got != cause.Error() && !strings.Contains(got, types) {
				t.Errorf("%q leaves %q", guess, got)
			}
			if !errors.Is(event.Err, syscall.ECONNREFUSED) {
				t.Errorf("%q: the event does not match its cause", guess)
			}
		}
	}
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
