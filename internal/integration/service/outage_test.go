package service_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// TestOutage: while the database is down, the log says so once, with the cause, although nobody
// asks for the health. Later it says once that the database works again. No message of an outage
// repeats so often that these lines would be hard to find.
func TestOutage(t *testing.T) {
	t.Parallel()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	server := engine.PostgreSQL(t)
	p := start(t, path, server.DSN())
	awaitLine := func(text string) {
		for !strings.Contains(p.stderr.String(), text) {
			select {
			case <-t.Context().Done():
				t.Fatalf("no %s in\n%s", text, p.stderr)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitLine(`msg="not healthy" part=store`)
	awaitLine(`msg="not healthy" part=credentials`)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitLine(`msg="healthy again" part=store`)
	awaitLine(`msg="healthy again" part=credentials`)
	if _, err := p.change("e1"); err != nil {
		t.Errorf("after the outage: %v", err)
	}
	p.stop()
	p.wait()
	log := p.stderr.String()
	if !regexp.MustCompile(`level=ERROR msg="not healthy" part=store error=".*(connect|EOF|reset)`).MatchString(log) {
		t.Errorf("the log has no cause:\n%s", log)
	}
	logged := map[string]int{}
	for _, message := range regexp.MustCompile(`(?m) msg=(".*?"|\S+)( part=\w+)?`).FindAllString(log, -1) {
		logged[message]++
	}
	for message, n := range logged {
		if isTransition := strings.Contains(message, "healthy"); isTransition && n != 1 || n > 3 {
			t.Errorf("%s is logged %d times", message, n)
		}
	}
}
