package main

import (
	"context"
	"encoding/json"
	"net/http"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// onResult counts a result; it is the [deliver.Options.OnResult]. It logs why the service
// itself could not make an attempt: nothing else shows that. Why a receiver failed is kept
// with the job.
func (s *service) onResult(ctx context.Context, client, entity, _ string, r deliver.Result) {
	name := r.Outcome.String()
	if r.Reason != "" {
		name += "/" + string(r.Reason)
	}
	s.results.Add(name, 1)
	if r.Reason == deliver.ReasonUnavailable {
		s.logger.WarnContext(ctx, "delivery deferred", "client", client, "entity", entity, "error", r.Err)
	}
}

// exposition returns the handler that serves the metrics. They name no client, but are not
// public.
func (s *service) exposition() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		queue, err := s.database.counts(r.Context())
		if err != nil {
			s.unavailable(w, r, "metrics", "error", err)
			return
		}
		respond(w, struct {
			Results json.RawMessage `json:"results"` // of this process
			Queue   counts          `json:"queue"`   // of all processes
		}{json.RawMessage(s.results.String()), queue})
	})
	return mux
}
