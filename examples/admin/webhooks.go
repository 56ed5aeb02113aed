package main

import (
	"context"
	"strings"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/webhookcfg"
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

// webhookRecord is a webhook in JSON.
type webhookRecord struct {
	Client string `json:"client"`
	// Entity is empty for the base.
	Entity string `json:"entity,omitzero"`
	Source string `json:"source"`
	URL    string `json:"url,omitzero"`
	// Sealed says that the URL is encrypted, and we don't have the keys.
	Sealed bool       `json:"sealed,omitzero"`
	Since  *time.Time `json:"since,omitempty"`
	// Rule says which rule of the policy the URL breaks.
	Rule string `json:"rule,omitzero"`
	// Delivery says how deliveries go, and Queue what waits for the client, if that's known.
	Delivery *deliveryRecord `json:"delivery,omitempty"`
	Queue    *queueRecord    `json:"queue,omitempty"`
}

func (s *session) record(client, entity string, hook webhookcfg.Webhook) webhookRecord {
	r := webhookRecord{Client: client, Entity: entity, Source: hook.Source.String(), URL: hook.URL.String()}
	if s.urls {
		r.URL = hook.URL.Reveal()
	}
	if r.Sealed = sealed.IsEnvelope(hook.URL); r.Sealed {
		r.URL = ""
	}
	if hook.Source != webhookcfg.SourceNone {
		since := hook.Since.UTC()
		r.Since = &since
	}
	return r
}

// String returns the entity, the source, the URL, the time and the rule, if they're set. The base
// is called default, as on the page for people. How deliveries go and what waits is on lines of
// their own.
func (r webhookRecord) String() string {
	words := []string{"default:"}
	switch {
	case r.Entity == "":
	case r.Source == webhookcfg.SourceBase.String():
		words = []string{"entity " + printable(r.Entity) + ":", "default"}
	default:
		words = []string{"entity " + printable(r.Entity) + ":", r.Source}
	}
	if r.URL != "" {
		words = append(words, printable(r.URL))
	}
	if r.Sealed {
		words = append(words, "encrypted")
	}
	if r.Since != nil {
		words = append(words, "since "+r.Since.Format(time.RFC3339Nano))
	}
	if r.Rule != "" {
		words = append(words, "("+r.Rule+")")
	}
	lines := []string{strings.Join(words, " ")}
	if r.Delivery != nil {
		lines = append(lines, r.Delivery.String())
	}
	if r.Queue != nil {
		lines = append(lines, "queue of "+r.Queue.text)
	}
	return strings.Join(lines, "\n")
}
