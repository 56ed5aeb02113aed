package webhookcfg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// TestSignIn: a sign-in from Go works like a request's. The verifier, the event, the level of
// the record and the response are the same, and the secret never shows.
func TestSignIn(t *testing.T) {
	tests := []struct {
		name, id, secret string
		verify           verifier
		want             int
	}{
		{name: "right", id: "acme", secret: "s3cret", want: 200},
		{name: "wrong secret", id: "acme", secret: "wr0ng", want: 401},
		{name: "unknown", id: "nobody", secret: "s3cret", want: 401},
		{name: "no id", secret: "s3cret", want: 401},
		{name: "no secret", id: "acme", want: 401},
		{name: "control character", id: "acme", secret: "s3cret\x00", want: 401},
		{name: "not UTF-8", id: "acme\xff", secret: "s3cret", want: 401},
		{name: "too long", id: "acme", secret: strings.Repeat("s", 4096), want: 401},
		{name: "throttled", id: "acme", secret: "s3cret", verify: func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, retryError{1500 * time.Millisecond}
		}, want: 429},
		{name: "down", id: "acme", secret: "s3cret", verify: func(_ context.Context, _, secret string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, fmt.Errorf("no match for %s", secret)
		}, want: 503},
		{name: "invalid client", id: "acme", secret: "s3cret", verify: func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, nil
		}, want: 500},
		{name: "panics", id: "acme", secret: "s3cret", verify: func(_ context.Context, _, secret string) (webhookcfg.Client, error) { panic(secret) }, want: 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var event webhookcfg.Event
			var records bytes.Buffer
			o := options()
			o.OnEvent = eventInto(&event)
			o.Logger = slog.New(slog.NewTextHandler(&records, &slog.HandlerOptions{Level: slog.LevelDebug}))
			if tt.verify == nil {
				tt.verify = verify
			}
			h, err := webhookcfg.NewHandler(newRecorder(), tt.verify, o)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("GET", configure+"/e1", nil)
			r.SetBasicAuth(tt.id, tt.secret)
			r.RemoteAddr = ""
			wire := httptest.NewRecorder()
			h.ServeHTTP(wire, r)
			want := event
			client, err := h.SignIn(t.Context(), tt.id, tt.secret)
			if event.Operation != "sign_in" || wire.Code != tt.want {
				t.Errorf("operation %s, and the request got %d", event.Operation, wire.Code)
			}
			if strings.Contains(records.String(), "s3cret") && tt.secret != "" {
				t.Errorf("the secret is in %s", &records)
			}
			if tt.want == http.StatusOK {
				if err != nil || client.ID != tt.id || event.Credential != tt.id || event.Status != http.StatusOK || !strings.Contains(records.String(), "level=DEBUG msg=\"webhook configuration request\" operation=sign_in") {
					t.Errorf("got %v, %+v and %s", err, event, &records)
				}
				return
			}
			if client != (webhookcfg.Client{}) {
				t.Errorf("got %+v", client)
			}
			got := respond(t, err)
			if diff := cmp.Diff(fmt.Sprint(wire.Code, wire.Header(), wire.Body), fmt.Sprint(got.Code, got.Header(), got.Body)); diff != "" {
				t.Errorf("-request +call:\n%s", diff)
			}
			if event.Status != want.Status || event.Code != want.Code || event.PresentedID != want.PresentedID {
				t.Errorf("the event is %+v, want %+v", event, want)
			}
			if (tt.want == http.StatusUnauthorized) != errors.Is(err, webhookcfg.ErrInvalidCredentials) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("colon", func(t *testing.T) {
		h, err := webhookcfg.NewHandler(newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			t.Error("asked the verifier")
			return webhookcfg.Client{ID: "a"}, nil
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.SignIn(t.Context(), "a:b", "c"); !errors.Is(err, webhookcfg.ErrInvalidCredentials) {
			t.Errorf("an id that no request can hold: %v", err)
		}
	})
}
