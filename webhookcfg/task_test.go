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
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// responseError is an error that says which response it gets.
type responseError struct {
	response *webhookcfg.Error
	text     string
}

func (e responseError) Error() string { return e.text }
func (e responseError) Unwrap() error { return e.response }

// TestTaskResponses: a task that fails, hangs, panics or asks to wait gets the same response as a
// store, or the one that it chose, if that's one of the handler's. No text shows a URL.
func TestTaskResponses(t *testing.T) {
	const token = "https://hooks.example.com/t0ken?key=v4lue"
	plan := webhookcfg.Refusal{Code: "plan", Description: "Your plan has no tests"}
	respond := func(status int, code, description string) func(context.Context) error {
		return func(context.Context) error {
			return responseError{&webhookcfg.Error{Status: status, Code: code, Description: description, RetryAfter: 3 * time.Second}, "POST " + token}
		}
	}
	for name, tt := range map[string]struct {
		do    func(ctx context.Context) error
		want  string
		cause error
	}{
		"succeeds":       {func(context.Context) error { return nil }, "", nil},
		"fails":          {func(context.Context) error { return fmt.Errorf("%w: POST %s", errBroken, token) }, "503 temporarily_unavailable: The service cannot complete the request now 1s", errBroken},
		"hangs":          {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "503 temporarily_unavailable: The service cannot complete the request now 1s", context.DeadlineExceeded},
		"panics":         {func(context.Context) error { panic(token) }, "500 server_error: The server encountered an unexpected condition 0s", nil},
		"aborts":         {func(context.Context) error { panic(fmt.Errorf("on purpose: %w", http.ErrAbortHandler)) }, "500 server_error: The server encountered an unexpected condition 0s", http.ErrAbortHandler},
		"is wrong":       {func(context.Context) error { return webhookcfg.ErrInvalidArgument }, "500 server_error: The server encountered an unexpected condition 0s", webhookcfg.ErrInvalidArgument},
		"asks to wait":   {func(context.Context) error { return retryError{1500 * time.Millisecond} }, "429 too_many_requests: Too many requests; try again later 1.5s", retryError{1500 * time.Millisecond}},
		"finds nothing":  {respond(404, "not_found", "There is no such thing"), "404 not_found: There is no such thing 3s", nil},
		"refuses":        {respond(403, "plan", plan.Description), "403 plan: Your plan has no tests 3s", nil},
		"waits":          {respond(429, "too_many_requests", "no"), "429 too_many_requests: Too many requests; try again later 3s", nil},
		"is down":        {respond(503, "temporarily_unavailable", "no"), "503 temporarily_unavailable: The service cannot complete the request now 1s", nil},
		"is a defect":    {respond(500, "server_error", "no"), "500 server_error: The server encountered an unexpected condition 0s", nil},
		"other code":     {respond(404, "no_such_thing", "no"), "500 server_error: The server encountered an unexpected condition 0s", nil},
		"other status":   {respond(400, "not_found", "no"), "500 server_error: The server encountered an unexpected condition 0s", nil},
		"other refusal":  {respond(403, "plan", "no"), "500 server_error: The server encountered an unexpected condition 0s", nil},
		"refusal as 400": {respond(400, "plan", plan.Description), "500 server_error: The server encountered an unexpected condition 0s", nil},
		"unsafe text":    {respond(404, "not_found", `no"`), "500 server_error: The server encountered an unexpected condition 0s", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var records bytes.Buffer
				var event webhookcfg.Event
				o := options()
				o.Logger, o.OnEvent, o.Refusals = slog.New(slog.NewTextHandler(&records, nil)), eventInto(&event), []webhookcfg.Refusal{plan}
				start := time.Now()
				err := newHandler(t, newRecorder(), o).Do(t.Context(), "acme", webhookcfg.Task{Operation: "look"}, tt.do)
				got := ""
				if e, ok := errors.AsType[*webhookcfg.Error](err); ok {
					got = fmt.Sprintf("%d %s: %s %v", e.Status, e.Code, e.Description, e.RetryAfter)
				}
				if got != tt.want || tt.cause != nil && !errors.Is(err, tt.cause) {
					t.Fatalf("got %q (%v), want %q", got, err, tt.want)
				}
				if text := records.String() + fmt.Sprintf("%v %+v", err, event); strings.Contains(text, "t0ken") || strings.Contains(text, "v4lue") {
					t.Errorf("the record shows the URL: %s", text)
				}
				if event.Operation != "look" || event.Client != "acme" || event.Status == 0 {
					t.Errorf("the event is %+v", event)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestTaskPassesOnError: a task can return the error of another method of the handler.
func TestTaskPassesOnError(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	var inner error
	outer := h.Do(t.Context(), "acme", webhookcfg.Task{Operation: "look"}, func(ctx context.Context) error {
		_, inner = h.Read(ctx, "acme", "e*")
		return inner
	})
	got, want := httptest.NewRecorder(), httptest.NewRecorder()
	inner.(http.Handler).ServeHTTP(want, nil)
	outer.(http.Handler).ServeHTTP(got, nil)
	if got.Code != http.StatusBadRequest || got.Body.String() != want.Body.String() || outer.Error() != inner.Error() {
		t.Errorf("got %d %s (%v), want %d %s (%v)", got.Code, got.Body, outer, want.Code, want.Body, inner)
	}
}

// TestTaskArguments: a task runs only for a valid client, and for a well-formed identifier, which
// isn't shown otherwise.
func TestTaskArguments(t *testing.T) {
	const typed = "https://hooks.example.com/t0ken"
	for name, tt := range map[string]struct {
		client string
		scope  webhookcfg.Scope
		want   int
	}{
		"no client":        {"", webhookcfg.All(), 500},
		"malformed client": {"\x00", webhookcfg.All(), 500},
		"malformed entity": {"acme", webhookcfg.Entity(typed), 400},
		"entity":           {"acme", webhookcfg.Entity("e1"), 200},
		"all":              {"acme", webhookcfg.All(), 200},
		"nothing":          {"acme", webhookcfg.Scope{}, 200},
	} {
		var event webhookcfg.Event
		o := options()
		o.OnEvent = eventInto(&event)
		hasRun := false
		err := newHandler(t, newRecorder(), o).Do(t.Context(), tt.client, webhookcfg.Task{Operation: "look", Scope: tt.scope}, func(context.Context) error {
			hasRun = true
			return nil
		})
		if event.Status != tt.want || (err == nil) != (tt.want == 200) || hasRun != (tt.want == 200) {
			t.Errorf("%s: it ran %v, %v, event %+v", name, hasRun, err, event)
		}
		if hasRun && event.Scope != tt.scope || strings.Contains(fmt.Sprint(err, event), "t0ken") {
			t.Errorf("%s: event %+v", name, event)
		}
	}
}

// TestTaskEvents: a change has a record of level Info, a read one of level Debug, and a part only one
// if it fails.
func TestTaskEvents(t *testing.T) {
	for level, task := range map[string]webhookcfg.Task{
		"INFO":  {Operation: "t"},
		"DEBUG": {Operation: "t", IsRead: true},
		"":      {Operation: "t", IsRead: true, IsPart: true},
	} {
		for _, isBroken := range []bool{false, true} {
			var records bytes.Buffer
			events := 0
			o := options()
			o.Logger = slog.New(slog.NewTextHandler(&records, &slog.HandlerOptions{Level: slog.LevelDebug}))
			o.OnEvent = func(context.Context, webhookcfg.Event) { events++ }
			want := level
			_ = newHandler(t, newRecorder(), o).Do(t.Context(), "acme", task, func(context.Context) error {
				if isBroken {
					want = "ERROR"
					return errBroken
				}
				return nil
			})
			if got := strings.Count(records.String(), "\n"); want == "" && (got > 0 || events > 0) || want != "" && (got != 1 || events != 1 || !strings.Contains(records.String(), "level="+want)) {
				t.Errorf("%+v: want a record of level %q, got %d events and %s", task, want, events, records.String())
			}
		}
	}
}

// TestTaskPanics: a task can panic with all that it shows to a person, so only what the runtime says
// is logged, and where it was.
func TestTaskPanics(t *testing.T) {
	for want, do := range map[string]func(context.Context) error{
		"panic: value of type string": func(context.Context) error { panic("a key that nobody knows") },
		"panic: runtime error":        func(context.Context) error { var none []error; return none[len(none)] },
	} {
		var records bytes.Buffer
		o := options()
		o.Logger = slog.New(slog.NewTextHandler(&records, nil))
		err := newHandler(t, newRecorder(), o).Do(t.Context(), "acme", webhookcfg.Task{Operation: "look"}, do)
		if text := records.String(); !strings.Contains(text, want) || !strings.Contains(text, "task_test.go") || strings.Contains(text+err.Error(), "nobody knows") {
			t.Errorf("want %s, logged %s", want, text)
		}
	}
}
