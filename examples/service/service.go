package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/examples/internal/probes"
	"example.com/go-webhookcfg/examples/service/metrics"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// service is the service with its parts.
type service struct {
	cfg      config
	logger   *slog.Logger
	database *database
	webhooks *cache.Cache // copy of the store, for the sender
	keys     deliver.Keys
	health   *deliver.Health
	sender   *deliver.Sender
	queue    *outbox.Outbox
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	probes   *probes.Probes
	// credentials are the clients' secrets, once the service serves.
	credentials *auth.Lookup
}

// newService connects the parts. It does no I/O.
func newService(d *database, cfg config, logger *slog.Logger) (s *service, err error) {
	s = &service{cfg: cfg, logger: logger, database: d, probes: probes.New(logger), registry: prometheus.NewRegistry()}
	if s.metrics, err = metrics.NewMetrics(s.registry); err != nil {
		return nil, err
	}
	if s.webhooks, err = cache.New(d.webhooks, &cache.Options{MaxStale: cfg.maxStale, Logger: logger}); err != nil {
		return nil, err
	}
	if err := s.newQueue(); err != nil {
		return nil, errors.Join(err, s.webhooks.Close())
	}
	return s, nil
}

// newQueue makes everything that sends.
func (s *service) newQueue() (err error) {
	if s.keys, err = deliver.DerivedKeys(s.cfg.masters...); err != nil {
		return fmt.Errorf("environment variable MASTER, want for instance the output of openssl rand -hex 32: %w", err)
	}
	if s.health, err = deliver.NewHealth(s.database.webhooks, &deliver.HealthOptions{Logger: s.logger, OnChange: s.onHealthChange}); err != nil {
		return err
	}
	delivery := s.cfg.delivery
	delivery.Health, delivery.OnResult = s.health, s.onResult
	if s.sender, err = deliver.New(s.webhooks.Store(), s.keys, &delivery); err != nil {
		return err
	}
	s.queue, err = outbox.New(s.database.DB, s.database.dialect, s.sender, &outbox.Options{
		Schedule: s.cfg.schedule, // nil is ten attempts over 76 hours
		Logger:   s.logger,
		OnEnd:    s.metrics.OnEnd,
	})
	if err != nil {
		return err
	}
	return s.watch()
}

// close ends everything that newService started.
func (s *service) close() error {
	s.sender.CloseIdleConnections()
	if s.credentials != nil {
		_ = s.credentials.Close()
	}
	return s.webhooks.Close()
}

// serve serves requests and delivers notifications until ctx ends or a part fails. Then it
// completes what's under way.
func (s *service) serve(ctx context.Context, stdout io.Writer) error {
	h, err := s.handler()
	if err != nil {
		return err
	}
	ctx, end := s.drained(ctx)
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	listen := func(address string, h http.Handler) error {
		listener, err := net.Listen("tcp", address)
		if err == nil {
			fmt.Fprintln(stdout, listener.Addr()) // port 0 picks a free one
			group.Go(func() error { return serve(ctx, listener, h) })
		}
		return err
	}
	s.probes.Start(h)
	if err := listen(s.cfg.listen, s.probes); err != nil {
		return err
	}
	if s.cfg.metrics != "" {
		if err := listen(s.cfg.metrics, s.exposition()); err != nil {
			end()
			return errors.Join(err, group.Wait())
		}
	}
	group.Go(func() error {
		if err := s.warm(ctx); err != nil { // what's missing is read when it's needed
			s.logger.WarnContext(ctx, "webhooks weren't read ahead", "error", err)
		}
		return s.queue.Run(ctx)
	})
	group.Go(func() error { s.probes.CheckEvery(ctx, 5*time.Second); return nil })
	group.Go(func() error { s.database.webhooks.SweepEvery(ctx, time.Minute); return nil })
	return group.Wait()
}

// warm reads the webhooks of all clients into the copy, so that the first notifications don't
// each wait for the database.
func (s *service) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var clients []string
	for client, err := range admin.Clients(ctx, s.database.webhooks) {
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	return s.webhooks.Warm(ctx, clients)
}

// drained returns a context that ends some time after ctx. In between the process is unready,
// but still serves requests until load balancers have noticed.
func (s *service) drained(ctx context.Context) (context.Context, context.CancelFunc) {
	drained, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		s.probes.Stop()
		time.AfterFunc(s.cfg.drain, end)
	})
	return drained, func() { stop(); end() }
}

// onEvent gets all events of [webhookcfg.Options.OnEvent].
func (s *service) onEvent(ctx context.Context, e webhookcfg.Event) {
	s.metrics.OnEvent(ctx, e)
	if (e.Operation == "set" || e.Operation == "unset") && e.Code == "" {
		s.queue.Changed(e.Client, e.Scope)
	}
}

// onHealthChange is an OnChange of package deliver. Tell the client here that a webhook was
// stopped, for example by mail, because nobody else does.
func (s *service) onHealthChange(ctx context.Context, client string, scope webhookcfg.Scope, before, after webhookcfg.DeliveryStatus) {
	s.metrics.OnChange(ctx, client, scope, before, after)
	s.logger.InfoContext(ctx, "deliveries changed", "client", client, "scope", scope, "before", before.State, "after", after.State, "reason", after.Reason)
	if after.State == "ok" {
		s.queue.Changed(client, scope)
	}
}

// onResult is an OnResult of package deliver. It logs each attempt that the service itself
// couldn't make. The queue says only once a minute why it can't send.
func (s *service) onResult(ctx context.Context, client, entity, message string, r deliver.Result) {
	s.metrics.OnResult(ctx, client, entity, message, r)
	if r.Reason == deliver.ReasonUnavailable {
		s.logger.WarnContext(ctx, "delivery deferred", "client", client, "entity", entity, "error", r.Err)
	}
}

// handler returns the handler of all requests: for the webhooks, for people, and for the
// service's own paths.
func (s *service) handler() (http.Handler, error) {
	clients, err := s.verifier()
	if err != nil {
		return nil, err
	}
	// It uses the copy, so this process's next attempt already sees a new webhook.
	h, err := webhookcfg.NewHandler(s.webhooks.Store(), clients, &webhookcfg.Options{
		Reads:           true,
		EntityExists:    s.exists,
		Policy:          s.cfg.delivery.Policy,
		ProbeMode:       webhookcfg.ProbeWarn,
		DeliveryStatus:  s.queue.Status,
		OnEvent:         s.onEvent,
		Logger:          s.logger,
		OmitPresentedID: true,
	})
	if err != nil {
		return nil, err
	}
	page, err := s.page(h)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/portal/", page)
	mux.HandleFunc("PUT /api/v1/modules/{id}", signedIn(h, s.putModule))
	mux.HandleFunc("GET /api/v1/signing-key", signedIn(h, s.getKey(h)))
	withSource, err := auth.WithSource(s.logger, s.cfg.proxies...)
	if err != nil {
		return nil, err
	}
	return withSource(h.Before(mux)), nil
}

// serve serves requests until ctx ends, and then completes the ones in flight.
func serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return server.Shutdown(grace)
}
