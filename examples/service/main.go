// Command service is a whole service that notifies its clients: they set webhooks, the
// service changes modules, and every change is delivered to the webhook in effect, with
// retries, until it is acknowledged or given up. What waits is in the service's own
// database, in a queue of River, and survives a crash. README.md shows how to try it.
//
//	go run . -migrate       # serve, over SQLite
//	go run . migrate        # create or update the tables alone, before the service starts
//	go run . given-up       # print what was given up, and why
//	go run . replay acme    # send it once more, of all, one client or one entity
//
// Secrets come from the environment: CLIENT holds the clients and their secrets, PERSON a
// person who may see the webhooks of the first one at /portal/ and a password, MASTER the
// masters of the signing keys, the present one first, each separated by spaces, and STORE
// replaces -store for a database with a password. Each may be in a file instead: MASTER_FILE
// names that of MASTER, as Docker and Kubernetes mount secrets. With -credentials, the clients
// are in a file of hashes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg/deliver"
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

// config holds the values of the flags and the environment.
type config struct {
	listen, metrics, store string
	drain                  time.Duration
	credentials            string
	shared                 bool
	migrate                bool
	maxStale               time.Duration
	workers, backlog       int
	schedule               deliver.Schedule
	delivery               deliver.Options
	clients                []auth.Credential
	person                 string
	masters                [][]byte
	keep                   time.Duration
	keepMost               int
	command                string
	selected               selection
}

func parse(args []string, getenv func(string) string, stderr io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: service [flags] [migrate | given-up [CLIENT [ENTITY]] | replay [CLIENT [ENTITY]]]")
		flags.PrintDefaults()
	}
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:8080", "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&cfg.metrics, "metrics", "", "local `address` to serve metrics on; none if empty")
	flags.DurationVar(&cfg.drain, "drain", 0, "how long to serve after SIGTERM, unready, while load balancers notice")
	flags.StringVar(&cfg.store, "store", "", "sqlite:PATH or postgres://USER@HOST/DATABASE; defaults to $STORE, or else sqlite:service.db")
	flags.BoolVar(&cfg.migrate, "migrate", false, "create or update the tables first")
	flags.StringVar(&cfg.credentials, "credentials", "", "credential `file` of the clients, with hashes; it replaces CLIENT and is reloaded when it changes")
	flags.BoolVar(&cfg.shared, "shared", false, "accept a credential file that the group of the process may read, as Kubernetes mounts secrets")
	dev := flags.Bool("dev", false, "for development: allow http and loopback addresses")
	flags.IntVar(&cfg.workers, "workers", 192, "notifications under way at the same time in each shard of the queue, with a quarter more in its overflow; those that wait for their turn cost little")
	flags.IntVar(&cfg.backlog, "backlog", 200, "notifications of a client that may wait in the shard that it shares with others; more go to its overflow")
	flags.IntVar(&cfg.delivery.PerClient, "per-client", 0, "of these, for one client; 0 is the default of package deliver")
	flags.IntVar(&cfg.delivery.PerReceiver, "per-receiver", 0, "of these, for one client at one host and port; 0 is the default of package deliver")
	flags.DurationVar(&cfg.delivery.Timeout, "timeout", 15*time.Second, "time limit of one attempt")
	flags.DurationVar(&cfg.delivery.MaxPause, "max-pause", time.Hour, "longest pause after failures, and longest Retry-After that is obeyed")
	flags.IntVar(&cfg.delivery.Transport.MaxIdleConns, "idle-connections", 0, "idle connections to receivers, of about 40 KB each over https; should exceed the number of receivers; 0 is the default of package egress, 1000")
	flags.DurationVar(&cfg.keep, "keep", 14*24*time.Hour, "how long what was given up is kept for replay")
	flags.IntVar(&cfg.keepMost, "keep-most", 100_000, "how much of it is kept for each client, the latest")
	moment := func(name, usage string, at *time.Time) {
		flags.Func(name, usage, func(text string) (err error) { *at, err = time.Parse(time.RFC3339, text); return err })
	}
	moment("after", "only what was enqueued at this `time`, such as 2026-01-31T12:00:00Z, or later", &cfg.selected.after)
	moment("before", "only what was enqueued before this `time`", &cfg.selected.before)
	flags.DurationVar(&cfg.maxStale, "max-stale", 2*time.Second, "how long another process's changes of webhooks may take to show")
	cfg.schedule = deliver.StandardSchedule()
	flags.Func("schedule", "comma-separated `delays` after failed attempts; defaults to those of Standard Webhooks", func(text string) error {
		cfg.schedule = nil
		for field := range strings.SplitSeq(text, ",") {
			delay, err := time.ParseDuration(field)
			if err != nil {
				return err
			}
			cfg.schedule = append(cfg.schedule, delay)
		}
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	cfg.delivery.Policy = new(egress.Policy)
	if *dev {
		cfg.delivery.Policy = egress.Development()
	}
	if cfg.delivery.Timeout <= 0 {
		return cfg, fmt.Errorf("-timeout %v is not positive", cfg.delivery.Timeout)
	}
	if flags.NArg() > 3 {
		return cfg, fmt.Errorf("unexpected argument %q", flags.Arg(3))
	}
	cfg.command, cfg.selected.client, cfg.selected.entity = flags.Arg(0), flags.Arg(1), flags.Arg(2)
	getenv = withFiles(getenv, &err)
	cfg.store = cmp.Or(cfg.store, getenv("STORE"), "sqlite:service.db")
	for client := range strings.FieldsSeq(getenv("CLIENT")) {
		id, secret, _ := strings.Cut(client, ":")
		cfg.clients = append(cfg.clients, auth.Credential{ID: id, Secrets: []auth.Secret{auth.NewSecret(secret)}})
	}
	cfg.person = getenv("PERSON")
	for master := range strings.FieldsSeq(getenv("MASTER")) {
		cfg.masters = append(cfg.masters, []byte(master))
	}
	if cfg.person != "" && len(cfg.clients) == 0 && err == nil {
		err = errors.New("environment variable PERSON: want CLIENT, too")
	}
	return cfg, err
}

// run runs a command until it is complete or ctx ends.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) (err error) {
	cfg, err := parse(args, getenv, stderr)
	if err != nil {
		return err
	}
	logger := newLogger(stderr, slog.LevelInfo)
	d, err := openDatabase(ctx, cfg.store, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if cfg.migrate || cfg.command == "migrate" {
		if err := d.migrate(ctx); err != nil {
			return err
		}
	}
	s, err := newService(d, cfg, logger, newLogger(stderr, slog.LevelWarn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	switch cfg.command {
	case "migrate":
		return nil
	case "":
		d.warn(ctx, logger)
		return s.serve(ctx, stdout)
	case "given-up", "replay":
		return s.listGivenUp(ctx, cfg.selected, cfg.command == "replay", stdout)
	}
	return fmt.Errorf("unknown command %q, want migrate, given-up or replay", cfg.command)
}

func newLogger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}
