package webhookcfg_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestActor: the event and the record of a call and of a request show the actor of the
// context, cut and cleaned. They don't if it contains the client's secret.
func TestActor(t *testing.T) {
	long := strings.Repeat("x", 128)
	for _, tt := range []struct{ actor, call, request string }{
		{"", "", ""},
		{"ada@example.com", "ada@example.com", "ada@example.com"},
		{"J\u00fcrgen M\u00fcller", "J\u00fcrgen M\u00fcller", "J\u00fcrgen M\u00fcller"},
		{"a\nlevel=ERROR\u202ed\x00", "a level=ERRORd", "a level=ERRORd"},
		{long + "y", long, long},
		{"ada s3cret", "ada s3cret", ""},
	} {
		ctx := webhookcfg.ContextWithActor(t.Context(), tt.actor)
		for name, run := range map[string]struct {
			want, credential string
			do               func(h *webhookcfg.Handler)
		}{
			"call":    {tt.call, "", func(h *webhookcfg.Handler) { _ = h.Unset(ctx, "acme", webhookcfg.All()) }},
			"request": {tt.request, "acme", func(h *webhookcfg.Handler) { overWire(h, ctx, webhookcfg.All(), "") }},
		} {
			var event webhookcfg.Event
			var records bytes.Buffer
			o := options()
			o.OnEvent = eventInto(&event)
			o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
			run.do(newHandler(t, newRecorder(), o))
			var record struct{ Client, Credential, Actor string }
			if err := json.Unmarshal(records.Bytes(), &record); err != nil {
				t.Fatalf("%v in %s", err, &records)
			}
			if event.Actor != run.want || record.Actor != run.want || event.Client != "acme" || event.Credential != run.credential {
				t.Errorf("%s by %q: the event has %q, the record %q, want %q", name, tt.actor, event.Actor, record.Actor, run.want)
			}
		}
	}
}

// TestActorOfRefusedSignIn: nobody is named before they have proved who they are. The actor of
// a sign-in is often what somebody typed, which can be a secret in the wrong field.
func TestActorOfRefusedSignIn(t *testing.T) {
	ctx := webhookcfg.ContextWithActor(t.Context(), "T0PSECRET")
	for _, tt := range []struct {
		id, secret, want string
		err              error
	}{
		{"acme", "s3cret", "T0PSECRET", nil},
		{"T0PSECRET", "wrong", "", webhookcfg.ErrInvalidCredentials},
		{"T0PSECRET:", "wrong", "", webhookcfg.ErrInvalidCredentials},
		{"acme", "", "", webhookcfg.ErrInvalidCredentials},
	} {
		var event webhookcfg.Event
		var records bytes.Buffer
		o := options()
		o.OmitPresentedID = true
		o.OnEvent = eventInto(&event)
		o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
		_, err := newHandler(t, newRecorder(), o).SignIn(ctx, tt.id, tt.secret)
		if !errors.Is(err, tt.err) || event.Actor != tt.want || tt.want == "" && leaks(records.String()+fmt.Sprintf("%+v %v", event, err)) {
			t.Errorf("%q: got %v, the event %+v and the record %s", tt.id, err, event, &records)
		}
	}
}

// TestEventSource: the source comes from the context, or else from the connection.
func TestEventSource(t *testing.T) {
	for _, tt := range []struct {
		context netip.Addr
		peer    string
		want    string
	}{
		{netip.MustParseAddr("192.0.2.9"), "127.0.0.1:1", "192.0.2.9"},
		{netip.MustParseAddr("::ffff:192.0.2.9"), "", "192.0.2.9"},
		{netip.MustParseAddr("fe80::1%eth0"), "", "fe80::1"},
		{netip.Addr{}, "[::ffff:192.0.2.1]:1", "192.0.2.1"},
		{netip.Addr{}, "[fe80::1%eth0]:1", "fe80::1"},
		{netip.Addr{}, "@", ""},
		{netip.Addr{}, "", ""},
	} {
		var event webhookcfg.Event
		var records bytes.Buffer
		o := options()
		o.OnEvent = eventInto(&event)
		o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
		r := httptest.NewRequest("DELETE", configure, nil)
		r.RemoteAddr = tt.peer
		newHandler(t, newRecorder(), o).ServeHTTP(httptest.NewRecorder(), r.WithContext(auth.ContextWithSource(t.Context(), tt.context)))
		var record struct{ Source string }
		if err := json.Unmarshal(records.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		got := ""
		if event.Source.IsValid() {
			got = event.Source.String()
		}
		if got != tt.want || record.Source != tt.want {
			t.Errorf("%v at %q: the event has %q, the record %q, want %q", tt.context, tt.peer, got, record.Source, tt.want)
		}
	}
}
