package main

import (
	"context"
	"flag"
	"fmt"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sealed"
)

func auditFlags(s *session, flags *flag.FlagSet) {
	revealing(s, flags)
	policyFlags(s, flags)
}

func audit(ctx context.Context, s *session) (code int, err error) {
	if err := s.policy.Validate(); err != nil {
		return failure, err
	}
	err = s.useFirst(ctx, func(st *opened) error {
		client := ""
		if len(s.args) > 1 {
			client = s.args[1]
		}
		if n, err := s.namePlain(ctx, client, st); n > 0 || err != nil {
			code = found
			return err
		}
		clients := admin.Clients(ctx, st)
		if client != "" {
			if err := mustHaveWebhooks(ctx, st, client); err != nil {
				return err
			}
			clients = func(yield func(string, error) bool) { yield(client, nil) }
		}
		audited := 0
		for client, err := range clients {
			if err != nil {
				return err
			}
			audited++
			n, err := s.auditClient(ctx, st, client)
			if n > 0 {
				code = found
			}
			if err != nil {
				return err
			}
		}
		fmt.Fprintf(s.stderr, "audited: %d clients\n", audited)
		return nil
	})
	return code, err
}

// auditClient prints the webhooks of a client that the policy refuses, and returns how many there are.
func (s *session) auditClient(ctx context.Context, st *opened, client string) (n int, err error) {
	for v, err := range admin.Audit(ctx, st, client, &s.policy) {
		if err == nil && sealed.IsEnvelope(v.Webhook.URL) {
			err = errSealed
		}
		if err != nil {
			return n, err
		}
		n++
		r := s.record(client, v.Scope.Entity(), v.Webhook)
		r.Rule = v.Err.Error()
		if err := s.print(r, "%s, %v", printable(client), r); err != nil {
			return n, err
		}
	}
	return n, nil
}

// mustHaveWebhooks refuses a client that has set nothing, whose name is probably misspelled.
func mustHaveWebhooks(ctx context.Context, st *opened, client string) error {
	for _, err := range admin.Webhooks(ctx, st, client) {
		return err
	}
	return fmt.Errorf("%s has no webhooks in %s, so there is nothing to audit: check the spelling", printable(client), st.name)
}
