// Command service is a whole service that notifies its clients. They set webhooks, the
// service changes modules, and it delivers every change to the webhook in effect. It retries
// until the notification is acknowledged or given up. Notifications wait in package outbox's
// queue, in the service's own database, so they survive a crash. README.md shows how to try it.
//
//	go run . migrate        # create or update the tables, before the service starts
//	go run . add acme       # print a new secret of a client, only this once
//	go run .                # serve, over SQLite
//	go run . secrets        # print when the clients' secrets were last used
//	go run . retire acme    # delete all secrets of a client, or the one that you name
//	go run . given-up       # print the notifications that were given up, and why
//	go run . replay acme    # send them once more: all, one client's or one entity's
//
// Set secrets in the environment:
//
//   - MASTER has the masters of the signing keys, the current one first, separated by spaces.
//   - PERSON has a client, and the name and the password of a person who can see its webhooks
//     at /portal/, such as acme:ann:a-password-of-ann.
//   - STORE replaces -store, if your database's URL has a password.
//
// You can also put each into a file, as Docker and Kubernetes mount secrets: MASTER_FILE
// names the file of MASTER.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

// config has the values of the flags and the environment.
type config struct {
	listen, metrics, store string
	drain                  time.Duration
	proxies                []netip.Prefix
	migrate                bool
	maxStale               time.Duration
	queue                  outbox.Options
	delivery               deliver.Options
	person                 string
	masters                [][]byte
	command                string
	selected               selection // its entity is the secret's name for add and retire
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (cfg config, err error) {
	flags := cfg.flags(stderr)
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	cfg.command, cfg.selected.client, cfg.selected.entity = flags.Arg(0), flags.Arg(1), flags.Arg(2)
	switch cfg.command {
	case "", "migrate", "add", "secrets", "retire", "given-up", "replay":
	default:
		return cfg, fmt.Errorf("unknown command %q, want migrate, add, secrets, retire, given-up or replay", cfg.command)
	}
	if flags.NArg() > 3 {
		return cfg, fmt.Errorf("unexpected argument %q", flags.Arg(3))
	}
	if n := slices.Index(flags.Args(), ""); n >= 0 {
		return cfg, fmt.Errorf("argument %d is empty, perhaps because a variable isn't set", n+1)
	}
	if cfg.listen == "" { // which would mean all addresses
		return cfg, errors.New("-listen is empty, perhaps because a variable isn't set: want an address like 127.0.0.1:8080")
	}
	if cfg.delivery.Timeout <= 0 {
		return cfg, fmt.Errorf("-timeout %v: must be greater than zero", cfg.delivery.Timeout)
	}
	return cfg, cfg.environment(getenv)
}

// flags returns the flags, which set the fields of cfg.
func (cfg *config) flags(stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: service [flags] [migrate | add CLIENT [NAME] | secrets [CLIENT] | retire CLIENT [NAME] | given-up [CLIENT [ENTITY]] | replay [CLIENT [ENTITY]]]")
		flags.PrintDefaults()
	}
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:8080", "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&cfg.metrics, "metrics", "", "local `address` to serve metrics on; none if empty")
	flags.DurationVar(&cfg.drain, "drain", 0, "how long to serve after SIGTERM, unready, while load balancers notice")
	flags.Func("trusted-proxy", "read the addresses of clients from the X-Forwarded-For of proxies in `CIDR`; repeatable", func(text string) error {
		network, err := netip.ParsePrefix(text)
		cfg.proxies = append(cfg.proxies, network)
		return err
	})
	flags.StringVar(&cfg.store, "store", "", "sqlite:PATH or postgres://USER@HOST/DATABASE; defaults to $STORE, or else sqlite:service.db")
	flags.BoolVar(&cfg.migrate, "migrate", false, "create or update the tables first")
	flags.DurationVar(&cfg.maxStale, "max-stale", 2*time.Second, "how long it can take until this process sees webhooks that another one set")
	cfg.delivery.Policy = new(egress.Policy)
	flags.BoolFunc("dev", "for development: allow http and loopback addresses", func(string) error {
		cfg.delivery.Policy = egress.Development()
		return nil
	})
	cfg.deliveryFlags(flags)
	return flags
}

// deliveryFlags adds the flags for deliveries and for the queue.
func (cfg *config) deliveryFlags(flags *flag.FlagSet) {
	flags.IntVar(&cfg.queue.Clients, "clients", 0, "clients to send to at the same time; if more have something to send, they take turns; 0 means the default of package outbox")
	flags.IntVar(&cfg.delivery.PerClient, "per-client", 0, "attempts for one client at the same time; 0 means the default of package deliver")
	flags.IntVar(&cfg.delivery.PerReceiver, "per-receiver", 0, "attempts for one client at one host and port at the same time; 0 means the default of package deliver")
	flags.DurationVar(&cfg.delivery.Timeout, "timeout", 15*time.Second, "time limit of one attempt")
	flags.DurationVar(&cfg.delivery.MaxPause, "max-pause", time.Hour, "longest pause after failures, and longest Retry-After that is obeyed")
	flags.IntVar(&cfg.delivery.Transport.MaxIdleConns, "idle-connections", 0, "idle connections to receivers, about 40 KB each over https; should be more than you have receivers; 0 means the default of package egress, 1000")
	flags.DurationVar(&cfg.queue.KeepFor, "keep", 0, "how long notifications are kept after they were delivered, given up or dropped; 0 means the default of package outbox")
	flags.IntVar(&cfg.queue.KeepPerClient, "keep-most", 0, "how many of each are kept for each client, the latest ones; 0 means the default of package outbox")
	moment := func(name, usage string, at *time.Time) {
		flags.Func(name, usage, func(text string) (err error) { *at, err = time.Parse(time.RFC3339, text); return err })
	}
	moment("after", "with given-up and replay: only notifications enqueued at this `time`, such as 2026-01-31T12:00:00Z, or later", &cfg.selected.after)
	moment("before", "with given-up and replay: only notifications enqueued before this `time`", &cfg.selected.before)
	flags.Func("schedule", "comma-separated `delays` after failed attempts; defaults to those of Standard Webhooks", func(text string) error {
		cfg.queue.Schedule = nil
		for field := range strings.SplitSeq(text, ",") {
			delay, err := time.ParseDuration(field)
			if err != nil {
				return err
			}
			cfg.queue.Schedule = append(cfg.queue.Schedule, delay)
		}
		return nil
	})
}

// environment reads the secrets.
func (cfg *config) environment(getenv func(string) string) error {
	values := map[string]string{"STORE": "", "MASTER": "", "PERSON": ""}
	for name := range values {
		values[name] = getenv(name)
		if path := getenv(name + "_FILE"); path != "" {
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("environment variable %s_FILE: %w", name, err)
			}
			values[name] = strings.TrimSpace(string(text))
		}
	}
	cfg.store = cmp.Or(cfg.store, values["STORE"], "sqlite:service.db")
	cfg.person = values["PERSON"]
	for master := range strings.FieldsSeq(values["MASTER"]) {
		cfg.masters = append(cfg.masters, []byte(master))
	}
	return nil
}

// run runs a command until it's complete or ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	cfg, err := parse(args, getenv, stderr)
	if err != nil {
		return err
	}
	logger := newLogger(stderr)
	d, err := openDatabase(cfg.store, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if cfg.migrate || cfg.command == "migrate" {
		err = d.migrate(ctx)
	} else {
		err = d.ready(ctx)
	}
	if err != nil {
		return err
	}
	client, name := cfg.selected.client, cfg.selected.entity
	switch cfg.command {
	case "migrate":
		return nil
	case "add":
		return d.addSecret(ctx, client, cmp.Or(name, time.Now().Format(time.DateOnly)), stdout)
	case "secrets":
		return d.printSecrets(ctx, client, stdout)
	case "retire":
		return d.retireSecrets(ctx, client, name)
	}
	s, err := newService(d, cfg, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if cfg.command != "" {
		return s.listGivenUp(ctx, cfg.selected, cfg.command == "replay", stdout)
	}
	d.warn(ctx, logger)
	return s.serve(ctx, stdout)
}

func newLogger(out io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(out, nil)) }
