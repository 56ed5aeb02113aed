package webhookcfg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

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
		{
			"POST", configure, `{"endpoint_id":"e1","webhook_url":"https://h.example.com:8443/t0ken?k=v"}`,
			`{"level":"INFO",` + msg + `"operation":"set","status":200,"client":"acme","scope":"entity e1","url":"https://h.example.com:8443"}`,
		},
		{
			"POST", variant, `{"webhook_url":"https://down.example.com/t0ken"}`,
			`{"level":"WARN",` + msg + `"operation":"set","status":200,"client":"acme","scope":"all","url":"https://down.example.com","error":"cannot reach https://down.example.com"}`,
		},
		{"DELETE", configure, ``, `{"level":"INFO",` + msg + `"operation":"unset","status":200,"client":"acme","scope":"all"}`},
		{"GET", configure + "/e1", ``, `{"level":"DEBUG",` + msg + `"operation":"read","status":200,"client":"acme","scope":"entity e1"}`},
		{"GET", configure, ``, `{"level":"DEBUG",` + msg + `"operation":"list","status":200,"client":"acme"}`},
		{
			"POST", configure, `{"webhook_url":"ftp://h.example.com/t0ken"}`,
			`{"level":"INFO",` + msg + `"operation":"set","status":400,"code":"invalid_webhook_url","client":"acme","scope":"all"}`,
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
