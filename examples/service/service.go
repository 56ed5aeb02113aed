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
	"example.com/go-webhookcfg/examples/mounts/metrics"
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
	took     *prometheus.HistogramVec // the time from a change to the end of its notification
	probes   *probes.Probes
	// credentials are the clients' secrets, once the service serves.
	credentials *auth.Lookup
}

// newService connects the parts. It does no I/O.
func newService(d *database, cfg config, logger *slog.Logger) (s *service, err error) {
	s = &service{
		cfg: cfg, logger: logger, database: d,
		probes: probes.New(logger),
	}
	if s.keys, err = deliver.DerivedKeys(cfg.masters...); err != nil {
		return nil, fmt.Errorf("environment variable MASTER, want for instance the output of openssl rand -hex 32: %w", err)
	}
	if s.health, err = deliver.NewHealth(d.webhooks, &deliver.HealthOptions{Logger: logger, OnChange: s.onHealthChange}); err != nil {
		return nil, err
	}
	if s.webhooks, err = cache.New(d.webhooks, &cache.Options{MaxStale: cfg.maxStale, Logger: logger}); err != nil {
		return nil, err
	}
	webhooks := s.webhooks
	defer func() {
		if err != nil {
			err = errors.Join(err, webhooks.Close())
		}
	}()
	s.probes.Watch("store", d.webhooks)
	delivery := cfg.delivery
	delivery.Health = s.health
	delivery.OnResult = func(ctx context.Context, client, entity, message string, r deliver.Result) {
		s.metrics.OnResult(ctx, client, entity, message, r)
		s.logResult(ctx, client, entity, r)
	}
	if s.sender, err = deliver.New(s.webhooks.Store(), s.keys, &delivery); err != nil {
		return nil, err
	}
	queue := cfg.queue
	queue.Logger, queue.OnEnd = logger, s.onEnd
	if s.queue, err = outbox.New(d.DB, d.dialect, s.sender, &queue); err != nil {
		return nil, err
	}
	return s, s.register()
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
	listener, err := net.Listen("tcp", s.cfg.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	addresses := []net.Addr{listener.Addr()}
	ctx, end := s.drained(ctx)
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	if s.cfg.metrics != "" {
		local, err := net.Listen("tcp", s.cfg.metrics)
		if err != nil {
			return err
		}
		addresses = append(addresses, local.Addr())
		group.Go(func() error { return serve(ctx, local, s.exposition()) })
	}
	group.Go(func() error { return serve(ctx, listener, s.probes) })
	group.Go(func() error { return s.queue.Run(ctx) })
	group.Go(func() error { s.probes.CheckEvery(ctx, 5*time.Second); return nil })
	group.Go(func() error { s.database.webhooks.SweepEvery(ctx, time.Minute); return nil })
	group.Go(func() error { s.warm(ctx); return nil })
	group.Go(func() error { s.logOverdue(ctx, time.Minute); return nil })
	s.probes.Start(h)
	for _, address := range addresses {
		fmt.Fprintln(stdout, address) // port 0 picks a free one
	}
	return group.Wait()
}

// warm reads all clients into the copy. Until it's done, and if it fails, deliveries read
// missing clients themselves.
func (s *service) warm(ctx context.Context) {
	err := s.readAhead(ctx)
	if err != nil && ctx.Err() == nil {
		s.logger.WarnContext(ctx, "can't read all clients into the copy of the store", "error", err)
	}
}

func (s *service) readAhead(ctx context.Context) error {
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

// wake sends what waits for a client at once, since its webhook changed or works again.
func (s *service) wake(ctx context.Context, client string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.queue.Wake(ctx, client); err != nil {
		s.logger.WarnContext(ctx, "can't send at once what waits", "client", client, "error", err)
	}
}

// onEvent gets all events of [webhookcfg.Options.OnEvent].
func (s *service) onEvent(ctx context.Context, e webhookcfg.Event) {
	s.metrics.OnEvent(ctx, e)
	if (e.Operation == "set" || e.Operation == "unset") && e.Code == "" {
		s.wake(ctx, e.Client)
	}
}

// onHealthChange is an OnChange of package deliver. Tell the client here that a webhook was
// stopped, for example by mail, because nobody else does.
func (s *service) onHealthChange(ctx context.Context, client string, scope webhookcfg.Scope, before, after webhookcfg.DeliveryStatus) {
	s.metrics.OnChange(ctx, client, scope, before, after)
	s.logger.InfoContext(ctx, "deliveries changed", "client", client, "scope", scope, "before", before.State, "after", after.State, "reason", after.Reason)
	if after.State == "ok" {
		s.wake(ctx, client)
	}
}

// handler returns the handler of all requests, for the webhooks and for the service's own
// paths.
func (s *service) handler() (http.Handler, error) {
	clients, err := s.verifier()
	if err != nil {
		return nil, err
	}
	// It uses the copy, so this process's next attempt already sees a new webhook.
	h, err := webhookcfg.NewHandler(s.webhooks.Store(), clients, &webhookcfg.Options{
		Reads:          true,
		EntityExists:   s.exists,
		Policy:         s.cfg.delivery.Policy,
		ProbeMode:      webhookcfg.ProbeWarn,
		DeliveryStatus: s.health.Status,
		OnEvent:        s.onEvent,
		Logger:         s.logger,
	})
	if err != nil {
		return nil, err
	}
	own := s.modules(h)
	if err := s.pages(own, h); err != nil {
		return nil, err
	}
	withSource, err := auth.WithSource(s.logger, s.cfg.proxies...)
	if err != nil {
		return nil, err
	}
	return withSource(h.Before(own)), nil
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
