package deliver_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestOutcomeString(t *testing.T) {
	const want = "Outcome(0) delivered failed deferred undeliverable Outcome(5)"
	var got []string
	for o := range deliver.Undeliverable + 2 {
		got = append(got, o.String())
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// TestReasonPublic: of why a receiver cannot be reached, or the service makes no attempt, a
// client learns nothing.
func TestReasonPublic(t *testing.T) {
	for reason, want := range map[deliver.Reason]string{
		deliver.ReasonUnreachable: "unreachable", deliver.ReasonRedirect: "redirect", deliver.ReasonThrottled: "throttled",
		deliver.ReasonStatus: "status", deliver.ReasonGone: "gone", deliver.ReasonPolicy: "refused", deliver.ReasonExpired: "expired",
		"": "", deliver.ReasonBusy: "", deliver.ReasonPaused: "", deliver.ReasonUnavailable: "", deliver.ReasonNoWebhook: "",
		deliver.ReasonStopped: "", deliver.ReasonMessage: "", reasonTimeout: "", reasonTLS: "", "refused": "",
	} {
		if got := reason.Public(); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}

func TestResultLog(t *testing.T) {
	hook := webhookcfg.Webhook{URL: egress.NewURL("https://example.com/in?token=t0ken"), Source: webhookcfg.SourceBase, Since: time.Unix(1, 0)}
	for _, tt := range []struct {
		r    deliver.Result
		want string
	}{
		{deliver.Result{Outcome: deliver.Undeliverable, Reason: deliver.ReasonNoWebhook}, "[outcome=undeliverable reason=no_webhook duration=0s]"},
		{
			deliver.Result{Outcome: deliver.Failed, Reason: deliver.ReasonThrottled, Status: 429, Wait: time.Minute, Webhook: hook, Duration: time.Second, Err: errors.New("x")},
			"[outcome=failed reason=throttled status=429 wait=1m0s url=https://example.com duration=1s error=x]",
		},
	} {
		if got := fmt.Sprint(slog.AnyValue(tt.r).Resolve()); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		checkHidden(t, tt.r, "t0ken")
	}
}
