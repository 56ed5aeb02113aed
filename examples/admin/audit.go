package main

import (
	"context"
	"flag"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sealed"
)

func auditFlags(s *session, flags *flag.FlagSet) {
	revealing(s, flags)
	policyFlags(s, flags)
}

func audit(ctx context.Context, s *session) (code int, err error) {
	err = s.useFirst(ctx, func(st *opened) error {
		client := ""
		if len(s.args) > 1 {
			client = s.args[1]
		}
		if n, err := s.namePlain(ctx, client, st); n > 0 || err != nil {
			code = found
			return err
		}
		violations := admin.AuditAll(ctx, st, &s.policy)
		if client != "" {
			violations = admin.Audit(ctx, st, client, &s.policy)
		}
		for v, err := range violations {
			if err == nil && sealed.IsEnvelope(v.Webhook.URL) {
				err = errSealed
			}
			if err == nil {
				code = found
				r := s.record(v.Client, v.Scope.Entity(), v.Webhook)
				r.Rule = v.Err.Error()
				err = s.print(r, "%s, %v", printable(v.Client), r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return code, err
}
