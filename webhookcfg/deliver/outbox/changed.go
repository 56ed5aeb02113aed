package outbox

import "example.com/go-webhookcfg/webhookcfg"

// Changed says that a client's webhooks in a scope were set or unset. What waits for them is then sent
// at once, wherever they lead now, retries too. It's one small write, whatever waits, and reaches the
// process that has the client within a fraction of a second.
//
// Call it also when a webhook perhaps works again, for example in [deliver.HealthOptions.OnChange]
// after a test that succeeded. It then gets one attempt before its pause is over, at most once a
// minute. If that succeeds, the pause ends, and retries are sent when they're due.
//
// If the sender reads webhooks from a copy, such as one of package
// [example.com/go-webhookcfg/store/cache], the copy must know of the change within 15 seconds
// ([example.com/go-webhookcfg/store/cache.Options.MaxStale]). What it learns later is only sent
// when it's due.
//
// Changed returns at once. It writes on the side, for half a minute at most, so no request has
// to wait for it. If that fails, the log says so, and what waits is sent when it's due, as it is if
// the process ends first. Call it from [webhookcfg.Options.OnEvent]:
//
//	OnEvent: func(_ context.Context, e webhookcfg.Event) {
//		if (e.Operation == "set" || e.Operation == "unset") && e.Status == http.StatusOK {
//			box.Changed(e.Client, e.Scope)
//		}
//	},
func (o *Outbox) Changed(client string, scope webhookcfg.Scope) {
	if len(scope.Entity()) > maxName { // nothing can wait for it
		return
	}
	o.queue.Changed(client, scope.Entity())
}
