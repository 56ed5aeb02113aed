package main

import (
	"context"

	"example.com/go-webhookcfg/store/admin"
)

// clientRecord is a client in JSON.
type clientRecord struct {
	Client string `json:"client"`
}

func listClients(ctx context.Context, s *session) (int, error) {
	return success, s.useFirst(ctx, func(st *opened) error {
		for client, err := range admin.Clients(ctx, st) {
			if err == nil {
				err = s.print(clientRecord{client}, "%s", printable(client))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func list(ctx context.Context, s *session) (int, error) {
	return success, s.useFirst(ctx, func(st *opened) error {
		for e, err := range admin.Webhooks(ctx, st, s.args[1]) {
			if err == nil {
				r := s.record(s.args[1], e.Scope.Entity(), e.Webhook)
				err = s.print(r, "%v", r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func show(ctx context.Context, s *session) (int, error) {
	return success, s.useFirst(ctx, func(st *opened) error {
		hook, err := st.Resolve(ctx, s.args[1], s.args[2])
		if err != nil {
			return err
		}
		r := s.record(s.args[1], s.args[2], hook)
		if r.Delivery, err = st.delivery(ctx, s.args[1], s.args[2], hook); err != nil {
			return err
		}
		if r.Queue, err = s.waiting(ctx, st, s.args[1]); err != nil {
			return err
		}
		return s.print(r, "%v", r)
	})
}
