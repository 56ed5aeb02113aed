package main

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// service is the service with its parts.
type service struct {
	cfg      config
	logger   *slog.Logger
	database *database
	webhooks *cache.Cache // a copy of the store for the sender
	keys     deliver.Keys
	health   *deliver.Health
	sender   *deliver.Sender
	queue    queue
	recalls  chan scope // what is to be made due
	results  expvar.Map // how many of this process, by outcome and reason
}

// newService connects the parts, without I/O.
func newService(d *database, cfg config, logger, queueLogger *slog.Logger) (s *service, err error) {
	s = &service{cfg: cfg, logger: logger, database: d, recalls: make(chan scope, maxRecalls)}
	if s.keys, err = deliver.DerivedKeys(cfg.masters...); err != nil {
		return nil, fmt.Errorf("environment variable MASTER, want for instance the output of openssl rand -hex 32: %w", err)
	}
	if s.health, err = deliver.NewHealth(d.webhooks, &deliver.HealthOptions{Logger: logger}); err != nil {
		return nil, err
	}
	if s.webhooks, err = cache.New(d.webhooks, &cache.Options{MaxStale: cfg.maxStale, Logger: logger}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.webhooks.Close())
		}
	}()
	delivery := cfg.delivery
	delivery.Health, delivery.OnResult, delivery.OnRecovered = s.health, s.onResult, s.onRecovered
	if s.sender, err = deliver.New(s.webhooks, s.keys, &delivery); err != nil {
		return nil, err
	}
	s.queue, err = d.openQueue(s.river(queueLogger))
	return s, err
}

// close ends what newService started.
func (s *service) close() error {
	s.sender.CloseIdleConnections()
	return s.webhooks.Close()
}

// serve serves requests and delivers notifications until ctx ends, or a part fails. Then it
// completes what is under way.
func (s *service) serve(ctx context.Context, stdout io.Writer) error {
	h, err := s.handler()
	if err != nil {
		return err
	}
	listener, err := listen(s.cfg.listen, stdout)
	if err != nil {
		return err
	}
	defer listener.Close()
	group, ctx := errgroup.WithContext(ctx)
	if s.cfg.metrics != "" {
		local, err := listen(s.cfg.metrics, stdout)
		if err != nil {
			return err
		}
		group.Go(func() error { return serve(ctx, local, s.exposition()) })
	}
	group.Go(func() error { return serve(ctx, listener, h) })
	group.Go(func() error { return s.deliver(ctx) })
	group.Go(func() error { s.database.webhooks.SweepEvery(ctx, time.Minute); return nil })
	group.Go(func() error { s.recallUntil(ctx); return nil })
	group.Go(func() error { s.forgetEvery(ctx, time.Hour); return nil })
	return group.Wait()
}

// deliver delivers what is in the queue until ctx ends, and then completes the attempts under
// way. Each of them ends within its own time.
func (s *service) deliver(ctx context.Context) error {
	if err := s.queue.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return s.queue.Stop(context.WithoutCancel(ctx))
}

// handler returns the handler of all requests: for the webhooks, and for the service's own
// paths.
func (s *service) handler() (http.Handler, error) {
	clients, err := auth.NewStatic(s.cfg.clients...)
	if err != nil {
		return nil, fmt.Errorf("environment variable CLIENT, want for instance acme:a-long-random-secret other:another-secret: %w", err)
	}
	// Through the copy, so that a set is in effect for the next attempt of this process.
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
	return h.Before(own), nil
}

// listen listens on an address and prints it, as port 0 picks a free one.
func listen(address string, stdout io.Writer) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		fmt.Fprintln(stdout, listener.Addr())
	}
	return listener, err
}

// serve serves requests until ctx ends, and then completes those in flight.
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
