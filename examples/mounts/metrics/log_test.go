package metrics

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// TestLog compares the log records of every outcome, without the attributes that differ
// from run to run, with testdata/log.jsonl. A request that reached no operation has none.
func TestLog(t *testing.T) {
	var out, whole bytes.Buffer
	steady := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "duration":
			return slog.Attr{}
		case "stack":
			return slog.String("stack", a.Value.String()[:len("goroutine")])
		}
		return a
	}
	golds := slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: steady})
	all := slog.NewJSONHandler(&whole, &slog.HandlerOptions{Level: slog.LevelDebug})
	h := newHandler(t, func(o *webhookcfg.Options) { o.Logger = slog.New(slog.NewMultiHandler(golds, all)) })
	do(t, serve(t, h))
	golden(t, "log.jsonl", strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"))
	if leaks(whole.String()) {
		t.Errorf("the log leaks:\n%s", &whole)
	}
}
