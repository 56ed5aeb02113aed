package enginetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestOverdueIsLogged: while something is overdue, one of the processes logs once a minute who is behind,
// how much, which webhook pauses, why and for how long. Otherwise nobody logs anything.
func TestOverdueIsLogged(t *testing.T) {
	inSite(t, func(s *site) {
		dead := s.peer(1, &peer{respond: does(503)})
		s.set("well", "", s.peer(0, &peer{}))
		s.set("base", "", dead)
		s.set("override", "e", dead)
		var nodes []*node
		for range 3 {
			nodes = append(nodes, s.run(outbox.Options{}, deliver.Options{MaxPause: 40 * time.Second}))
		}
		logged := func() (text string) {
			for _, n := range nodes {
				text += n.log.take()
			}
			return text
		}
		s.enqueue("well", "e", "m")
		time.Sleep(62 * time.Second)
		if text := logged(); text != "" {
			s.t.Errorf("logged without a reason:\n%s", text)
		}
		var ids []string
		for i := range 100 {
			ids = append(ids, fmt.Sprint("d", i))
		}
		s.enqueue("base", "e", ids...)
		s.enqueue("override", "e", ids...)
		time.Sleep(125 * time.Second)
		text := logged()
		if n := strings.Count(text, "overdue"); n < 1 || n > 2 || n != strings.Count(text, "\n") {
			s.t.Errorf("logged %d times in two minutes:\n%s", n, text)
		}
		for _, part := range []string{
			`\"base\": 100 waiting, the first due for `, "1 of its webhooks failing (throttled), the default webhook paused for another ",
			`\"override\": 100 waiting`, `(throttled), the webhook of \"e\" paused for another `, "failures (throttled)",
		} {
			if !strings.Contains(text, part) {
				s.t.Errorf("doesn't say %s:\n%s", part, text)
			}
		}
		if strings.Contains(text, "well") {
			s.t.Errorf("names a client that isn't behind:\n%s", text)
		}
		// The end of the pause is that at which the next attempt is made.
		stats, err := s.box.ClientStats(s.t.Context(), "override")
		if err != nil || len(stats.Pauses) != 1 {
			s.t.Fatalf("%+v, %v", stats, err)
		}
		time.Sleep(time.Until(stats.Pauses[0].Until) - 500*time.Millisecond)
		before := s.pausedUntil("override")
		time.Sleep(2 * time.Second)
		if after := s.pausedUntil("override"); after.Sub(before) < 30*time.Second {
			s.t.Errorf("there was no attempt at the end of the pause: it ended at %v, and then at %v", before, after)
		}
	})
}

// pausedUntil returns the end of the longest pause of a client.
func (s *site) pausedUntil(client string) time.Time {
	s.t.Helper()
	stats, err := s.box.ClientStats(s.t.Context(), client)
	if err != nil || len(stats.Pauses) == 0 {
		s.t.Fatalf("%+v, %v", stats, err)
	}
	return stats.Pauses[0].Until
}
