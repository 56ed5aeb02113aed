package outbox

import (
	"context"
	"fmt"
)

// Wake sends what waits for a client at once, wherever its webhook now leads: call it when the
// client has set or unset a webhook, and when you know that a receiver works again. It's one
// small write, whatever waits, and reaches the process that has the client within a fraction
// of a second. Pauses end if the webhook was set since, and retries are then due, too.
//
// Call it from the handler's OnEvent, in a goroutine of your own:
//
//	OnEvent: func(ctx context.Context, e webhookcfg.Event) {
//		if (e.Operation == "set" || e.Operation == "unset") && e.Status == http.StatusOK {
//			go box.Wake(context.WithoutCancel(ctx), e.Client)
//		}
//	},
func (o *Outbox) Wake(ctx context.Context, client string) error {
	if err := o.queue.wake(ctx, client); err != nil {
		return fmt.Errorf("outbox: wake: %w", err)
	}
	o.mu.Lock()
	p := o.process
	o.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	d := p.lines[client]
	p.mu.Unlock()
	if d != nil {
		d.wake()
	} else {
		p.hint([]string{client})
	}
	return nil
}
