package deliver_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
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
		"": "", deliver.ReasonBusy: "", deliver.ReasonPaused: "", deliver.ReasonUnavailable: "", deliver.ReasonNoWebhook: "", deliver.ReasonOff: "",
		deliver.ReasonStopped: "", deliver.ReasonMessage: "", reasonTimeout: "", reasonTLS: "",
	} {
		if got := reason.Public(); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}

// TestReasonWords: each reason is about the service, so that no client sees it, or has a word
// that clients can see. Every such word has its reason.
func TestReasonWords(t *testing.T) {
	private := []deliver.Reason{
		deliver.ReasonBusy, deliver.ReasonPaused, deliver.ReasonUnavailable, deliver.ReasonNoWebhook, deliver.ReasonOff, deliver.ReasonStopped, deliver.ReasonMessage,
	}
	var words []string
	for _, reason := range declaredReasons(t) {
		word := reason.Public()
		if isPrivate := slices.Contains(private, reason); isPrivate != (word == "") {
			t.Errorf("%q has the word %q: add it to webhookcfg.DeliveryWords, or to the list in this test", reason, word)
		}
		if word != "" {
			words = append(words, word)
		}
	}
	_, want := webhookcfg.DeliveryWords()
	slices.Sort(words)
	slices.Sort(want)
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("words that clients can see: -want +got:\n%s", diff)
	}
}

// declaredReasons returns the constants of the type Reason.
func declaredReasons(t *testing.T) (reasons []deliver.Reason) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || file.Name.Name != "deliver" || len(spec.Values) != 1 {
				return true
			}
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Reason" {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				reasons = append(reasons, deliver.Reason(text))
			}
			return true
		})
	}
	return reasons
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
