package webhookcfg

import (
	"context"
	"iter"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Violation is a webhook that is configured and that a policy refuses.
type Violation struct {
	// Scope is All for the base, else the entity of an override.
	Scope Scope
	// Webhook is what is configured.
	Webhook Webhook
	// Err is what it breaks.
	Err error
}

// Audit walks the configuration of one client and yields what the policy
// refuses, base first: what to look at before a stricter policy goes into service,
// which then would refuse these at sending. It judges texts and literal addresses
// and resolves no names; it changes nothing. An error of the lister ends the walk,
// in place of a violation. The pages are of different moments, as [Lister] says.
func Audit(ctx context.Context, lister Lister, client string, policy *egress.Policy) iter.Seq2[Violation, error] {
	return func(yield func(Violation, error) bool) {
		judge := func(scope Scope, hook Webhook) (goOn bool) {
			if hook.URL.IsZero() {
				return true
			}
			rule := policy.Check(hook.URL.Reveal())
			return rule == nil || yield(Violation{scope, hook, rule}, nil)
		}
		for after, first := "", true; ; first = false {
			page, err := lister.List(ctx, client, after, maxLimit)
			if err != nil {
				yield(Violation{}, err)
				return
			}
			if first && !judge(All(), page.Base) {
				return
			}
			for _, o := range page.Overrides {
				if !judge(Entity(o.Entity), o.Webhook) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}
