package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

func TestClientStatsString(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		minute := time.Minute
		for _, tt := range []struct {
			stats ClientStats
			want  string
		}{
			{ClientStats{Client: "a\n", Waiting: 3, Overdue: minute, Unclaimed: true}, `"a\n": 3 waiting, the first due for 1m0s, and no process sends to it`},
			{ClientStats{Client: "a", Waiting: 1000, Overdue: minute}, `"a": 1000 or more waiting, the first due for 1m0s, with as many requests under way as its limits allow, unless "can't send for now" is logged`},
			{ClientStats{Client: "a"}, `"a": nothing waiting`},
			{ClientStats{Client: "a", Waiting: 1, Reason: "status"}, `"a": 1 waiting for a retry (status)`},
			{
				ClientStats{Client: "a", Waiting: 3, Overdue: minute, Failing: 2, Reason: "status", Pauses: []Pause{{webhookcfg.Entity("e1"), time.Now().Add(minute), 7, "throttled"}, {}}},
				`"a": 3 waiting, the first due for 1m0s, 2 of its webhooks failing (status), the webhook of "e1" paused for another 1m0s after 7 failures (throttled)`,
			},
			{
				ClientStats{Client: "a", Waiting: 3, Overdue: minute, Failing: 1, Pauses: []Pause{{webhookcfg.All(), time.Now().Add(minute), 1, ""}}},
				`"a": 3 waiting, the first due for 1m0s, 1 of its webhooks failing, the default webhook paused for another 1m0s after 1 failures`,
			},
		} {
			if got := tt.stats.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		}
	})
}
