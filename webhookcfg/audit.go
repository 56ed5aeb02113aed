package webhookcfg

import (
	"context"
	"errors"
	"iter"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Violation is a configured webhook that a policy refuses.
type Violation struct {
	// Scope is All for the base, else the entity of an override.
	Scope Scope
	// Webhook is the configured webhook.
	Webhook Webhook
	// Err is the error of [egress.Policy.Check].
	Err error
}

// Audit lists the configuration of one client and yields the webhooks that the policy
// refuses, base first, so that a host can see which webhooks would no longer be called
// before it adopts a stricter policy. If policy is nil, it is the zero Policy, as in
// [Options]. Audit checks URLs and literal addresses, resolves no names and changes
// nothing. An error of the lister, or one that wraps [egress.ErrUnavailable] because an
// address could not be checked, is yielded in place of a violation and ends the iteration.
// The pages may show states of different moments; see [Lister].
func Audit(ctx context.Context, lister Lister, client string, policy *egress.Policy) iter.Seq2[Violation, error] {
	if policy == nil {
		policy = new(egress.Policy)
	}
	return func(yield func(Violation, error) bool) {
		judge := func(scope Scope, hook Webhook) (goOn bool) {
			if hook.URL.IsZero() {
				return true
			}
			rule := policy.CheckContext(ctx, hook.URL.Reveal())
			if errors.Is(rule, egress.ErrUnavailable) {
				yield(Violation{}, rule)
				return false
			}
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
