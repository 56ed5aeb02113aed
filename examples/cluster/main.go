// Command cluster is one replica of a service over a shared database. A change made
// through one replica is in effect on all of them. To run two replicas and a sender on one
// machine, each in its own shell:
//
//	export CLIENT=acme:a-secret-of-acme-for-a-first-try
//	go run . -store sqlite:webhooks.db -migrate
//	go run . -store sqlite:webhooks.db -listen 127.0.0.1:8081
//	go run . -store sqlite:webhooks.db -watch acme/e1
//
// Set a webhook through one replica, read it through the other, and watch the sender:
//
//	curl -u "$CLIENT" -H 'Content-Type: application/json' -d '{"webhook_url":"https://example.com/all"}' http://127.0.0.1:8080/api/v1/configure/configure-webhook
//	curl -u "$CLIENT" http://127.0.0.1:8081/api/v1/configure/configure-webhook/e1
//
// It does not probe the URLs. Secrets come from the environment: CLIENT holds the only
// client and its secret, and STORE replaces -store for a database with a password.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// config holds the values of the flags and the environment.
type config struct {
	listen, store, watch string
	migrate              bool
	maxStale             time.Duration
	client               string
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:8080", "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&cfg.store, "store", "", "sqlite:PATH, postgres:DSN, mysql:DSN or etcd:ENDPOINTS; defaults to $STORE")
	flags.BoolVar(&cfg.migrate, "migrate", false, "create or update the tables first")
	flags.StringVar(&cfg.watch, "watch", "", "instead of serving, print the webhook of `CLIENT/ENTITY` whenever it changes")
	flags.DurationVar(&cfg.maxStale, "max-stale", 2*time.Second, "how stale the copy of a sender may be")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	cfg.store, cfg.client = cmp.Or(cfg.store, getenv("STORE")), getenv("CLIENT")
	return cfg, nil
}

// run runs one replica, or a sender, until ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	cfg, err := parse(args, getenv, stderr)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	shared, err := open(cfg.store, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shared.close()) }()
	if cfg.migrate {
		if err := shared.migrate(ctx); err != nil {
			return err
		}
	}
	if cfg.watch != "" {
		return watch(ctx, shared, cfg, stdout, logger)
	}
	return replica(ctx, shared, cfg, stdout, logger)
}

// replica serves the HTTP interface over the shared store.
func replica(ctx context.Context, shared *shared, cfg config, stdout io.Writer, logger *slog.Logger) error {
	id, secret, _ := strings.Cut(cfg.client, ":")
	clients, err := auth.NewStatic(auth.Credential{ID: id, Secrets: auth.Secrets(secret)})
	if err != nil {
		return fmt.Errorf("environment variable CLIENT, want for instance acme:a-long-random-secret: %w", err)
	}
	h, err := webhookcfg.NewHandler(shared.store, clients, &webhookcfg.Options{
		Reads:     true,
		ProbeMode: webhookcfg.ProbeOff,
		Logger:    logger,
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return err
	}
	sweeping, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { shared.sweep(sweeping) })
	defer group.Wait()
	defer stop()
	fmt.Fprintln(stdout, listener.Addr())
	return serve(ctx, listener, h)
}

// serve serves requests until ctx ends, and then completes those in flight.
func serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second}
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
