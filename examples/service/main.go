// Command service is a whole service that notifies its clients. They set webhooks, the
// service changes modules, and it delivers every change to the webhook in effect. It retries
// until the notification is acknowledged or given up. Notifications wait in a queue of River,
// in the service's own database, so they survive a crash. README.md shows how to try it.
//
//	go run . -migrate       # serve, over SQLite
//	go run . migrate        # create or update the tables alone, before the service starts
//	go run . given-up       # print the notifications that were given up, and why
//	go run . replay acme    # send them once more: all, one client's or one entity's
//
// Set secrets in the environment, several separated by spaces:
//
//   - CLIENT has the clients and their secrets. Instead, you can keep hashes in a file, and
//     name it with -credentials.
//   - PERSON has the name and the password of a person who can see the first client's
//     webhooks at /portal/.
//   - MASTER has the masters of the signing keys, the current one first.
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

// config has the values of the flags and the environment.
type config struct {
	listen, metrics, store string
	drain                  time.Duration
	proxies                []netip.Prefix
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
	flags.Func("trusted-proxy", "read the addresses of clients from the X-Forwarded-For of proxies in `CIDR`; repeatable", func(text string) error {
		network, err := netip.ParsePrefix(text)
		cfg.proxies = append(cfg.proxies, network)
		return err
	})
	flags.StringVar(&cfg.store, "store", "", "sqlite:PATH or postgres://USER@HOST/DATABASE; defaults to $STORE, or else sqlite:service.db")
	flags.BoolVar(&cfg.migrate, "migrate", false, "create or update the tables first")
	flags.StringVar(&cfg.credentials, "credentials", "", "credential `file` of the clients, with hashes; it replaces CLIENT and is reloaded when it changes")
	flags.BoolVar(&cfg.shared, "shared", false, "accept a credential file that the group of the process may read, as Kubernetes mounts secrets")
	dev := flags.Bool("dev", false, "for development: allow http and loopback addresses")
	flags.IntVar(&cfg.workers, "workers", 192, "workers of each shard of the queue, and of its overflow; they cost little while they wait")
	flags.IntVar(&cfg.backlog, "backlog", 200, "how many of a client's notifications can wait in the shard that it shares with others; more go to an overflow")
	flags.IntVar(&cfg.delivery.PerClient, "per-client", 0, "attempts for one client at the same time; 0 means the default of package deliver")
	flags.IntVar(&cfg.delivery.PerReceiver, "per-receiver", 0, "attempts for one client at one host and port at the same time; 0 means the default of package deliver")
	flags.DurationVar(&cfg.delivery.Timeout, "timeout", 15*time.Second, "time limit of one attempt")
	flags.DurationVar(&cfg.delivery.MaxPause, "max-pause", time.Hour, "longest pause after failures, and longest Retry-After that is obeyed")
	flags.IntVar(&cfg.delivery.Transport.MaxIdleConns, "idle-connections", 0, "idle connections to receivers, about 40 KB each over https; should be more than you have receivers; 0 means the default of package egress, 1000")
	flags.DurationVar(&cfg.keep, "keep", 14*24*time.Hour, "how long notifications that were given up are kept for replay")
	flags.IntVar(&cfg.keepMost, "keep-most", 100_000, "how many given-up notifications are kept for each client, the latest ones")
	moment := func(name, usage string, at *time.Time) {
		flags.Func(name, usage, func(text string) (err error) { *at, err = time.Parse(time.RFC3339, text); return err })
	}
	moment("after", "with given-up and replay: only notifications enqueued at this `time`, such as 2026-01-31T12:00:00Z, or later", &cfg.selected.after)
	moment("before", "with given-up and replay: only notifications enqueued before this `time`", &cfg.selected.before)
	flags.DurationVar(&cfg.maxStale, "max-stale", 2*time.Second, "how long it can take until this process sees webhooks that another one set")
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
		return cfg, fmt.Errorf("-timeout %v: must be greater than zero", cfg.delivery.Timeout)
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
		err = errors.New("environment variable PERSON: set CLIENT, too")
	}
	return cfg, err
}

// run runs a command until it's complete or ctx ends.
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
