package sent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/sent"
	"github.com/google/go-cmp/cmp"
)

// queue is a Queue that records its calls.
type queue struct {
	fault func(ctx context.Context) error
	page  sent.Page
	calls []string
}

func (q *queue) call(ctx context.Context, format string, args ...any) error {
	if _, ok := ctx.Deadline(); !ok {
		return errors.New("the call has no deadline")
	}
	q.calls = append(q.calls, fmt.Sprintf(format, args...))
	if q.fault != nil {
		return q.fault(ctx)
	}
	return nil
}

func (q *queue) Notifications(ctx context.Context, client string, query sent.Query) (sent.Page, error) {
	err := q.call(ctx, "list %s %+v", client, query)
	return q.page, err
}

func (q *queue) Notification(ctx context.Context, client, id string) (sent.Notification, error) {
	err := q.call(ctx, "read %s %s", client, id)
	for _, n := range q.page.Notifications {
		if n.ID == id {
			return n, err
		}
	}
	return sent.Notification{}, errors.Join(err, sent.ErrNotFound)
}

func (q *queue) SendAgain(ctx context.Context, client string, s sent.Selection) error {
	return q.call(ctx, "again %s %s %s", client, s.ID, s.Scope)
}

func (q *queue) PlanSendAgain(ctx context.Context, client string, s sent.Selection) (sent.Plan, error) {
	return sent.Plan{Count: 7}, q.call(ctx, "plan %s %s", client, s.Scope)
}

// queueCalls makes each call of a Queue.
var queueCalls = map[string]func(ctx context.Context, q sent.Queue, client string) error{
	"list": func(ctx context.Context, q sent.Queue, client string) error {
		_, err := q.Notifications(ctx, client, sent.Query{Limit: 10})
		return err
	},
	"read": func(ctx context.Context, q sent.Queue, client string) error {
		_, err := q.Notification(ctx, client, "m1")
		return err
	},
	"plan": func(ctx context.Context, q sent.Queue, client string) error {
		_, err := q.PlanSendAgain(ctx, client, sent.Selection{Scope: webhookcfg.All()})
		return err
	},
	"again": func(ctx context.Context, q sent.Queue, client string) error {
		return q.SendAgain(ctx, client, sent.Selection{ID: "m1"})
	},
}

var errBroken = errors.New("broken on purpose")

// retryError is the error of a busy queue.
type retryError struct{ wait time.Duration }

func (e retryError) Error() string { return "too fast" }

func (e retryError) RetryAfter() time.Duration { return e.wait }

// newView returns a view of a queue for its clients.
func newView(t *testing.T, q sent.Queue, o *webhookcfg.Options) *sent.View {
	t.Helper()
	verifier := hooktest.NewVerifier(t, "acme", "a-long-random-secret")
	return &sent.View{Handler: hooktest.NewHandler(t, store.NewMemory(), verifier, o), Queue: q}
}

func eventInto(e *webhookcfg.Event) func(context.Context, webhookcfg.Event) {
	return func(_ context.Context, got webhookcfg.Event) { *e = got }
}

// TestNotificationGuards: a queue that fails, hangs, panics, asks to wait, knows nothing or
// quotes a URL gets the same response as a store, and its text in the record is redacted.
func TestNotificationGuards(t *testing.T) {
	const token = "https://hooks.example.com/t0ken?key=v4lue"
	tests := []struct {
		name  string
		fault func(ctx context.Context) error
		want  int
		cause error
	}{
		{"fails", func(context.Context) error { return fmt.Errorf("%w: POST %s", errBroken, token) }, 503, errBroken},
		{"hangs", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 503, context.DeadlineExceeded},
		{"panics", func(context.Context) error { panic(token) }, 500, nil},
		{"asks to wait", func(context.Context) error { return retryError{1500 * time.Millisecond} }, 429, retryError{1500 * time.Millisecond}},
		{"finds nothing", func(context.Context) error { return fmt.Errorf("%w: %s", sent.ErrNotFound, token) }, 404, sent.ErrNotFound},
		{"refuses the cursor", func(context.Context) error { return webhookcfg.ErrInvalidArgument }, 400, webhookcfg.ErrInvalidArgument},
	}
	for _, tt := range tests {
		for name, call := range queueCalls {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var records bytes.Buffer
					var event webhookcfg.Event
					q := &queue{fault: tt.fault, page: sent.Page{Notifications: []sent.Notification{{ID: "m1", State: "waiting"}}}}
					o := &webhookcfg.Options{Logger: slog.New(slog.NewTextHandler(&records, nil)), OnEvent: eventInto(&event)}
					start := time.Now()
					err := call(t.Context(), newView(t, q, o), "acme")
					var e *webhookcfg.Error
					if !errors.As(err, &e) || e.Status != tt.want || event.Status != tt.want || tt.cause != nil && !errors.Is(err, tt.cause) {
						t.Fatalf("got %v, event %+v, want status %d", err, event, tt.want)
					}
					if wait, ok := errors.AsType[retryError](tt.cause); ok && e.RetryAfter != wait.wait {
						t.Errorf("the client should wait for %v, want %v", e.RetryAfter, wait.wait)
					}
					if text := records.String() + err.Error() + fmt.Sprintf("%+v", event); strings.Contains(text, "t0ken") || strings.Contains(text, "v4lue") {
						t.Errorf("the record shows the URL: %s", text)
					}
					if took := time.Since(start); took > 10*time.Second {
						t.Errorf("it took %v", took)
					}
					if event.Client != "acme" {
						t.Errorf("the event is for the client %q", event.Client)
					}
				})
			})
		}
	}
}

// TestNotificationEvents: a look is a record of level Debug, a plan none, and sending again is
// one of level Info, with the actor.
func TestNotificationEvents(t *testing.T) {
	want := map[string]string{"list": "DEBUG notifications", "read": "DEBUG notifications", "plan": "", "again": "INFO send_again"}
	for name, call := range queueCalls {
		var records bytes.Buffer
		q := &queue{page: sent.Page{Notifications: []sent.Notification{{ID: "m1", State: "waiting"}}}}
		o := new(webhookcfg.Options)
		o.Logger = slog.New(slog.NewTextHandler(&records, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if !slices.Contains([]string{"level", "operation", "actor", "client"}, a.Key) {
				return slog.Attr{}
			}
			return a
		}}))
		if err := call(webhookcfg.ContextWithActor(t.Context(), "ann"), newView(t, q, o), "acme"); err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSpace(records.String())
		level, operation, _ := strings.Cut(want[name], " ")
		line := fmt.Sprintf("level=%s operation=%s client=acme actor=ann", level, operation)
		if want[name] == "" {
			line = ""
		}
		if got != line {
			t.Errorf("%s: got %q, want %q", name, got, line)
		}
	}
}

// TestNotificationArguments: an invalid argument never reaches the queue.
func TestNotificationArguments(t *testing.T) {
	ctx, q := t.Context(), &queue{}
	v := newView(t, q, nil)
	list := func(client string, query sent.Query) error {
		_, err := v.Notifications(ctx, client, query)
		return err
	}
	read := func(id string) error {
		_, err := v.Notification(ctx, "acme", id)
		return err
	}
	plan := func(s sent.Selection) error {
		_, err := v.PlanSendAgain(ctx, "acme", s)
		return err
	}
	e1 := webhookcfg.Entity("e1")
	tests := map[string]struct {
		err  error
		want int
	}{
		"no client":            {list("", sent.Query{Limit: 1}), 500},
		"no limit":             {list("acme", sent.Query{}), 500},
		"large limit":          {list("acme", sent.Query{Limit: 1001}), 500},
		"entity":               {list("acme", sent.Query{Entity: "e*", Limit: 1}), 400},
		"state":                {list("acme", sent.Query{State: "Waiting", Limit: 1}), 400},
		"long cursor":          {list("acme", sent.Query{After: strings.Repeat("a", 2049), Limit: 1}), 400},
		"no ID":                {read(""), 404},
		"long ID":              {read(strings.Repeat("a", 257)), 404},
		"control character":    {read("m\x00"), 404},
		"empty selection":      {v.SendAgain(ctx, "acme", sent.Selection{}), 500},
		"ID and scope":         {v.SendAgain(ctx, "acme", sent.Selection{ID: "m1", Scope: e1}), 500},
		"malformed ID":         {v.SendAgain(ctx, "acme", sent.Selection{ID: "ü"}), 404},
		"malformed entity":     {v.SendAgain(ctx, "acme", sent.Selection{Scope: webhookcfg.Entity("..")}), 400},
		"send again, nobody":   {v.SendAgain(ctx, "\x00", sent.Selection{Scope: e1}), 500},
		"plan of one":          {plan(sent.Selection{ID: "m1"}), 500},
		"plan of nothing":      {plan(sent.Selection{}), 500},
		"plan of a bad entity": {plan(sent.Selection{Scope: webhookcfg.Entity("a/b")}), 400},
	}
	for name, tt := range tests {
		var e *webhookcfg.Error
		if !errors.As(tt.err, &e) || e.Status != tt.want {
			t.Errorf("%s: got %v, want status %d", name, tt.err, tt.want)
		}
	}
	if len(q.calls) > 0 {
		t.Errorf("calls: %q", q.calls)
	}
	off := newView(t, nil, nil)
	for name, call := range queueCalls {
		if err := call(ctx, off, "acme"); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s without a queue: %v", name, err)
		}
	}
}

// TestMalformedEntityIsNotShown: what stands where an identifier belongs can be a URL or a secret,
// so no event or record shows it before it's checked.
func TestMalformedEntityIsNotShown(t *testing.T) {
	const typed = "https://hooks.example.com/t0ken?key=v4lue"
	for name, call := range map[string]func(v *sent.View) error{
		"again": func(v *sent.View) error {
			return v.SendAgain(t.Context(), "acme", sent.Selection{Scope: webhookcfg.Entity(typed)})
		},
		"plan": func(v *sent.View) error {
			_, err := v.PlanSendAgain(t.Context(), "acme", sent.Selection{Scope: webhookcfg.Entity(typed)})
			return err
		},
		"both": func(v *sent.View) error {
			return v.SendAgain(t.Context(), "acme", sent.Selection{ID: "m1", Scope: webhookcfg.Entity(typed)})
		},
		"list": func(v *sent.View) error {
			_, err := v.Notifications(t.Context(), "acme", sent.Query{Entity: typed, Limit: 1})
			return err
		},
	} {
		var records bytes.Buffer
		var event webhookcfg.Event
		o := &webhookcfg.Options{Logger: slog.New(slog.NewTextHandler(&records, nil)), OnEvent: eventInto(&event)}
		err := call(newView(t, &queue{}, o))
		if err == nil || event.Status < http.StatusBadRequest {
			t.Errorf("%s: %v, event %+v", name, err, event)
		}
		if text := fmt.Sprint(err, event, event.Scope, records.String()); strings.Contains(text, "t0ken") || strings.Contains(text, "v4lue") {
			t.Errorf("%s: shown in %s", name, text)
		}
	}
}

// TestNotificationWords: only listed words reach a client, no more notifications than it asked
// for, and no body unless the host shows bodies.
func TestNotificationWords(t *testing.T) {
	states, reasons := sent.Words()
	_, delivery := webhookcfg.DeliveryWords()
	if diff := cmp.Diff(append(delivery, "no_webhook", "off", "stopped"), reasons); diff != "" {
		t.Errorf("reasons: -want +got:\n%s", diff)
	}
	q := &queue{}
	v := newView(t, q, nil)
	ask := func(n sent.Notification) int {
		n.ID = "m1"
		q.page.Notifications = []sent.Notification{n}
		var list, read *webhookcfg.Error
		_, listErr := v.Notifications(t.Context(), "acme", sent.Query{Limit: 1})
		_, readErr := v.Notification(t.Context(), "acme", "m1")
		isListError, isReadError := errors.As(listErr, &list), errors.As(readErr, &read)
		switch {
		case isListError != isReadError:
			t.Errorf("%+v: list %v, read %v", n, listErr, readErr)
		case isListError:
			return list.Status
		}
		return http.StatusOK
	}
	for _, word := range slices.Concat(states, reasons, []string{"", "given up", "Delivered", "timeout", "policy", "message", "503", "gone\n"}) {
		wantState, wantReason := 500, 500
		if slices.Contains(states, word) {
			wantState = 200
		}
		if word == "" || slices.Contains(reasons, word) {
			wantReason = 200
		}
		if got := ask(sent.Notification{State: word}); got != wantState {
			t.Errorf("state %q: got %d, want %d", word, got, wantState)
		}
		if got := ask(sent.Notification{State: "dropped", Reason: word}); got != wantReason {
			t.Errorf("reason %q: got %d, want %d", word, got, wantReason)
		}
		if got := ask(sent.Notification{State: "waiting", History: []sent.Attempt{{}, {Reason: word}}}); got != wantReason {
			t.Errorf("reason %q of an attempt: got %d, want %d", word, got, wantReason)
		}
	}

	q.page.Notifications = []sent.Notification{{ID: "m1", State: "waiting"}, {ID: "m2", State: "waiting"}}
	if _, err := v.Notifications(t.Context(), "acme", sent.Query{Limit: 1}); err == nil {
		t.Error("two notifications, although the limit is one")
	}
	with := newView(t, q, nil)
	with.Bodies = true
	for want, v := range map[string]*sent.View{"": v, "text/plain body": with} {
		q.page.Notifications = []sent.Notification{{ID: "m1", State: "delivered", ContentType: "text/plain", Body: []byte(" body")}}
		if _, err := v.Notifications(t.Context(), "acme", sent.Query{Limit: 1}); err != nil || string(q.page.Notifications[0].Body) != " body" {
			t.Errorf("the queue has %+v after a list of them, %v", q.page.Notifications, err)
		}
		n, err := v.Notification(t.Context(), "acme", "m1")
		if got := n.ContentType + string(n.Body); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}
