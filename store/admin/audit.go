package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Violation is a webhook that a policy refuses.
type Violation struct {
	// Client is the owner of the webhook.
	Client string
	// Scope is All for the base, else the entity of an override.
	Scope webhookcfg.Scope
	// Webhook is the configured webhook.
	Webhook webhookcfg.Webhook
	// Err says which rule the URL breaks. It's the error of [egress.Policy.Check].
	Err error
}

// Audit yields the webhooks of one client that a policy refuses, base first. Call it before
// you adopt a stricter policy, to see which webhooks you would no longer call. A nil policy
// is the zero Policy, as in [webhookcfg.Options].
//
// It also yields URLs that were set before there was a rule for their characters. You still call
// those, as [egress.Policy.CheckStored] says, but nobody could set them again.
//
// Audit checks URLs and literal addresses. It doesn't resolve names, and changes nothing. It
// ends with an error as [Webhooks] does, if [egress.Policy.Validate] refuses the policy, or if it
// can't check an address. The last one wraps [egress.ErrUnavailable].
func Audit(ctx context.Context, st webhookcfg.Store, client string, policy *egress.Policy) iter.Seq2[Violation, error] {
	policy, invalid := valid(policy)
	return func(yield func(Violation, error) bool) {
		if invalid != nil {
			yield(Violation{}, invalid)
			return
		}
		for e, err := range Webhooks(ctx, st, client) {
			var rule error
			if err == nil && !e.Webhook.URL.IsZero() {
				rule = policy.CheckContext(ctx, e.Webhook.URL.Reveal())
			}
			if errors.Is(rule, egress.ErrUnavailable) {
				err = rule
			}
			if err != nil {
				yield(Violation{}, err)
				return
			}
			if rule != nil && !yield(Violation{client, e.Scope, e.Webhook, rule}, nil) {
				return
			}
		}
	}
}

// AuditAll yields what [Audit] yields for each of the [Clients] of the store. It refuses an invalid
// policy even if there are none.
func AuditAll(ctx context.Context, st webhookcfg.Store, policy *egress.Policy) iter.Seq2[Violation, error] {
	policy, invalid := valid(policy)
	return func(yield func(Violation, error) bool) {
		if invalid != nil {
			yield(Violation{}, invalid)
			return
		}
		for client, err := range Clients(ctx, st) {
			if err != nil {
				yield(Violation{}, err)
				return
			}
			for violation, err := range Audit(ctx, st, client, policy) {
				if !yield(violation, err) || err != nil {
					return
				}
			}
		}
	}
}

// valid returns the policy to audit with, or the error of one that no handler accepts.
func valid(policy *egress.Policy) (*egress.Policy, error) {
	if policy == nil {
		policy = new(egress.Policy)
	}
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("admin: audit: %w", err)
	}
	return policy, nil
}
