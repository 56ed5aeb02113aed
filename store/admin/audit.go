package admin

import (
	"context"
	"errors"
	"iter"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// pageSize is the number of overrides that are read at a time.
const pageSize = 1000

// Violation is a configured webhook that a policy refuses.
type Violation struct {
	// Scope is All for the base, else the entity of an override.
	Scope webhookcfg.Scope
	// Webhook is the configured webhook.
	Webhook webhookcfg.Webhook
	// Err is the error of [egress.Policy.Check].
	Err error
}

// Audit yields the webhooks of one client that the policy refuses, base first. Call it
// before you adopt a stricter policy, to see which webhooks would no longer be called. A nil
// policy is the zero Policy, as in [webhookcfg.Options].
//
// Audit checks URLs and literal addresses. It resolves no names and changes nothing. It
// ends with an error if the lister fails, or if an address can't be checked; that error
// wraps [egress.ErrUnavailable]. If the configuration changes in the meantime, the pages may
// show states of different moments; see [webhookcfg.Lister].
func Audit(ctx context.Context, lister webhookcfg.Lister, client string, policy *egress.Policy) iter.Seq2[Violation, error] {
	if policy == nil {
		policy = new(egress.Policy)
	}
	return func(yield func(Violation, error) bool) {
		judge := func(scope webhookcfg.Scope, hook webhookcfg.Webhook) (goOn bool) {
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
			page, err := lister.List(ctx, client, after, pageSize)
			if err != nil {
				yield(Violation{}, err)
				return
			}
			if first && !judge(webhookcfg.All(), page.Base) {
				return
			}
			for _, o := range page.Overrides {
				if !judge(webhookcfg.Entity(o.Entity), o.Webhook) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}
