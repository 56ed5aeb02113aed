// Package probes tells Kubernetes, a load balancer or an alert how your process is doing. You
// can copy the package.
package probes

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Probes responds to whoever watches the process. Once the service has started, Probes passes
// it all other requests.
//
//	/livez    200 as long as the process responds; if it doesn't, restart it
//	/readyz   503 before the service has started and after Stop; send it no requests then
//	/healthz  503 before the service has started and if a part doesn't work, with the names of all
//	          parts; alert somebody
//
// /readyz doesn't follow the health of a shared store. Otherwise all processes would leave
// the load balancer at the same moment. Clients would get its errors then, and not a 503 that
// says what to do.
type Probes struct {
	logger     *slog.Logger
	service    atomic.Pointer[http.Handler] // nil before the start
	isStopping atomic.Bool
	parts      map[string]healthy // set before service

	mu      sync.Mutex
	failing map[string]bool // parts that the log says are failing
}

// healthy is a part that knows its health, such as a store. Asking it is cheap.
type healthy interface {
	Healthy(ctx context.Context) error
}

// New returns the probes of a process that hasn't started yet. The logger gets the reason why
// a part fails, which /healthz doesn't show.
func New(logger *slog.Logger) *Probes {
	return &Probes{logger: logger, parts: map[string]healthy{}, failing: map[string]bool{}}
}

// Watch lets /healthz show a part, if it has a method Healthy as the stores have. Other parts aren't
// shown, so if you wrap a part, pass the method through. Don't call Watch after Start.
func (p *Probes) Watch(name string, part any) {
	if h, ok := part.(healthy); ok {
		p.parts[name] = h
	}
}

// Start starts to pass requests to the service.
func (p *Probes) Start(service http.Handler) { p.service.Store(&service) }

// Stop makes /readyz respond with 503. Requests are still served.
func (p *Probes) Stop() { p.isStopping.Store(true) }

// ServeHTTP implements [http.Handler].
func (p *Probes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service := p.service.Load()
	switch r.URL.Path {
	case "/livez":
		_, _ = io.WriteString(w, "alive\n")
	case "/readyz":
		if service == nil || p.isStopping.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	case "/healthz":
		p.serveHealth(w, r, service != nil)
	default:
		if service != nil {
			(*service).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		respond(w, http.StatusServiceUnavailable, map[string]string{
			"error": "temporarily_unavailable", "error_description": "The service is starting",
		})
	}
}

// CheckEvery asks the parts for their health at the interval until ctx ends. So the log says
// when a part starts to fail, and why, even if nobody asks for /healthz.
func (p *Probes) CheckEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.check(ctx)
		}
	}
}

// serveHealth responds with the state of each part. Only the log has the causes, since the
// path may be public.
func (p *Probes) serveHealth(w http.ResponseWriter, r *http.Request, isStarted bool) {
	status, states := http.StatusServiceUnavailable, map[string]string{}
	if isStarted {
		status, states = http.StatusOK, p.check(r.Context())
	}
	for _, state := range states {
		if state != "ok" {
			status = http.StatusServiceUnavailable
		}
	}
	respond(w, status, states)
}

// check returns the state of each part, and logs what has changed. The states of those that it could
// not ask before ctx ended are unknown.
func (p *Probes) check(ctx context.Context) map[string]string {
	limited, cancel := context.WithTimeout(ctx, 6*time.Second)
	defer cancel()
	states := map[string]string{}
	for name := range p.parts {
		states[name] = "unknown"
	}
	for name, part := range p.parts {
		err := part.Healthy(limited)
		if ctx.Err() != nil {
			break // says nothing about the part
		}
		states[name] = "ok"
		if err != nil {
			states[name] = "failing"
		}
		p.log(ctx, name, err)
	}
	return states
}

// log logs when a part starts to fail, and when it works again.
func (p *Probes) log(ctx context.Context, name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch was := p.failing[name]; {
	case err != nil && !was:
		p.logger.ErrorContext(ctx, "not healthy", "part", name, "error", err)
	case err == nil && was:
		p.logger.InfoContext(ctx, "healthy again", "part", name)
	}
	p.failing[name] = err != nil
}

func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // it fails only if the client disconnected
}
