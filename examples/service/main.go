// Command service is a whole service that notifies its clients. They set webhooks, the
// service changes modules, and it delivers every change to the webhook in effect. It retries
// until the notification is acknowledged or given up. Notifications wait in package outbox's
// queue, in the service's own database, so they survive a crash. README.md shows how to try it.
//
//	go run . -dev           # serve over SQLite, to try it
//	go run . migrate        # create or update the tables, before the service starts
//	go run . add acme       # print a new secret of a client, only this once
//	go run .                # serve
//	go run . secrets        # print when the clients' secrets were last used
//	go run . retire acme    # refuse all secrets of a client, or the one that you name
//	go run . given-up       # print the notifications that were given up, and why
//	go run . replay acme    # send them and the dropped ones again: all, one client's or one entity's
//
// Set secrets in the environment:
//
//   - MASTER has the masters of the signing keys, the current one first, separated by spaces.
//   - STORE replaces -store, if your database's URL has a password.
//
// You can also put each into a file, as Docker and Kubernetes mount secrets: MASTER_FILE
// names the file of MASTER, and replaces it. A file is UTF-8 without a byte order mark.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/go-webhookcfg/examples/internal/filled"
	"example.com/go-webhookcfg/examples/internal/textfile"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

// config has the values of the arguments and the environment.
type config struct {
	listen, metrics, store string
	migrate, dev           bool
	drain, maxStale        time.Duration
	proxies                []netip.Prefix
	delivery               deliver.Options
	schedule               deliver.Schedule
	masters                [][]byte
	since                  time.Time
	command, client, name  string // the name of a secret or an entity
}

// commands are the commands, with how many arguments each takes at most.
var commands = map[string]int{"": 0, "migrate": 0, "add": 2, "secrets": 1, "retire": 2, "given-up": 2, "replay": 2}

// uses reports whether a command uses a flag.
func uses(command, flag string) bool {
	switch flag {
	case "store", "migrate", "dev":
		return true
	case "since":
		return command == "given-up" || command == "replay"
	}
	return command == ""
}

func parse(args []string, lookup environment, stderr io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: service [flags] [migrate | add CLIENT [NAME] | secrets [CLIENT] | retire CLIENT [NAME] | given-up [CLIENT [ENTITY]] | replay [CLIENT [ENTITY]]]")
		flags.PrintDefaults()
	}
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:8080", "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&cfg.metrics, "metrics", "", "local `address` to serve metrics on; none if empty")
	flags.Func("store", "sqlite:PATH or postgres://USER@HOST/DATABASE; defaults to $STORE, or else sqlite:service.db", func(text string) error {
		if cfg.store = text; text == "" {
			return errors.New("it's empty, perhaps because a variable isn't set")
		}
		return nil
	})
	flags.BoolVar(&cfg.migrate, "migrate", false, "create or update the tables first")
	flags.BoolVar(&cfg.dev, "dev", false, "for development: -migrate, allow http and loopback addresses, and make up a MASTER if there's none")
	flags.DurationVar(&cfg.drain, "drain", 0, "how long to serve after SIGTERM, unready, while load balancers notice")
	flags.DurationVar(&cfg.maxStale, "max-stale", 2*time.Second, "how long it can take until this process sees webhooks that another one set")
	flags.DurationVar(&cfg.delivery.Timeout, "timeout", 15*time.Second, "time limit of one attempt to deliver")
	flags.DurationVar(&cfg.delivery.MaxPause, "max-pause", time.Hour, "longest pause after failures, and longest Retry-After that is obeyed")
	flags.Func("trusted-proxy", "read the addresses of clients from the X-Forwarded-For of proxies in `CIDR`; repeatable", func(text string) error {
		network, err := netip.ParsePrefix(text)
		cfg.proxies = append(cfg.proxies, network)
		return err
	})
	flags.Func("schedule", "comma-separated `delays` after failed attempts; defaults to those of Standard Webhooks", func(text string) error {
		cfg.schedule = nil // the last one counts, as with other flags
		for field := range strings.SplitSeq(text, ",") {
			delay, err := time.ParseDuration(field)
			if err == nil && delay < 0 {
				err = fmt.Errorf("%v: must not be negative", delay)
			}
			if err != nil {
				return err
			}
			cfg.schedule = append(cfg.schedule, delay)
		}
		return nil
	})
	flags.Func("since", "with given-up and replay: only notifications enqueued at this `time`, such as 2026-01-31T12:00:00Z, or later", func(text string) (err error) {
		cfg.since, err = time.Parse(time.RFC3339, text)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if err := filled.Args(flags, args); err != nil {
		return cfg, err
	}
	cfg.command, cfg.client, cfg.name = flags.Arg(0), flags.Arg(1), flags.Arg(2)
	most, isKnown := commands[cfg.command]
	var unused []string
	flags.Visit(func(f *flag.Flag) {
		if !uses(cfg.command, f.Name) {
			unused = append(unused, "-"+f.Name)
		}
	})
	switch {
	case !isKnown:
		return cfg, fmt.Errorf("unknown command %q, want %s", cfg.command, strings.Join(slices.Sorted(maps.Keys(commands))[1:], ", "))
	case unused != nil && cfg.command == "":
		return cfg, fmt.Errorf("serving doesn't use %s", strings.Join(unused, ", "))
	case unused != nil:
		return cfg, fmt.Errorf("%s doesn't use %s", cfg.command, strings.Join(unused, ", "))
	case flags.NArg() > most+1:
		return cfg, fmt.Errorf("unexpected argument %q", flags.Arg(most+1))
	case cfg.listen == "": // which would mean all addresses
		return cfg, errors.New("-listen is empty, perhaps because a variable isn't set: want an address like 127.0.0.1:8080")
	case hasNoPort(cfg.listen), hasNoPort(cfg.metrics):
		return cfg, errors.New("-listen or -metrics ends after the colon, perhaps because a variable isn't set: want an address like 127.0.0.1:8080; port 0 picks a free one")
	case cfg.drain < 0:
		return cfg, fmt.Errorf("-drain %v: must not be negative", cfg.drain)
	}
	for name, value := range map[string]time.Duration{"timeout": cfg.delivery.Timeout, "max-stale": cfg.maxStale, "max-pause": cfg.delivery.MaxPause} {
		if value <= 0 {
			return cfg, fmt.Errorf("-%s %v: must be greater than zero", name, value)
		}
	}
	cfg.delivery.Policy = new(egress.Policy)
	if cfg.dev {
		cfg.delivery.Policy = egress.Development()
	}
	return cfg, cfg.readSecrets(lookup)
}

// hasNoPort reports whether an address has an empty port, which would mean any.
func hasNoPort(address string) bool { return strings.HasSuffix(address, ":") }

// environment is [os.LookupEnv].
type environment func(name string) (value string, isSet bool)

// readSecrets reads the secrets.
func (cfg *config) readSecrets(lookup environment) error {
	store, err := lookup.setting("STORE")
	if err != nil {
		return err
	}
	if strings.Contains(store, "\n") {
		return errors.New("environment variable STORE or STORE_FILE: want one line")
	}
	cfg.store = cmp.Or(cfg.store, store, "sqlite:service.db")
	masters, err := lookup.setting("MASTER")
	if err != nil {
		return err
	}
	if strings.ContainsAny(masters, ",;\"'") { // they'd belong to a master, and give other keys
		return errors.New("environment variable MASTER or MASTER_FILE: masters are separated by blanks: leave out commas, semicolons and quotes")
	}
	for master := range strings.FieldsSeq(masters) {
		if err := checkMaster(master); err != nil {
			return fmt.Errorf("environment variable MASTER or MASTER_FILE: %w", err)
		}
		cfg.masters = append(cfg.masters, []byte(master))
	}
	if cfg.dev && len(cfg.masters) == 0 {
		cfg.masters = [][]byte{[]byte(rand.Text() + rand.Text())} // other keys at each start
	}
	return nil
}

// checkMaster refuses what stands for a master, or contains one: all keys would be derived from text that
// others can guess, or differ from what they were.
func checkMaster(master string) error {
	switch _, err := os.Stat(master); {
	case err == nil:
		return errors.New("it's the path of a file: set MASTER_FILE to that")
	case strings.HasPrefix(master, "MASTER"):
		return errors.New("it's a line of a script: leave out what comes before the value")
	case strings.ContainsAny(master, "${}<>"):
		return errors.New("it has a character of a placeholder, $ { } < or >: fill it in")
	}
	return nil
}

// setting returns the value of an environment variable, or the text of the file that the variable
// with _FILE names. It's empty only if neither is set.
func (lookup environment) setting(name string) (value string, err error) {
	path, isFile := lookup(name + "_FILE")
	value, isSet := lookup(name)
	switch {
	case isFile:
		name += "_FILE"
		if strings.TrimSpace(path) == "" {
			err = errors.New("it's empty: give it a value, or unset it")
		} else if value, err = textfile.Read(path); err == nil && strings.TrimSpace(value) == "" {
			err = fmt.Errorf("%s is empty", path)
		}
	case isSet && strings.TrimSpace(value) == "":
		err = errors.New("it's empty: give it a value, or unset it")
	case isSet:
		err = textfile.Check(value)
	}
	if err != nil {
		return "", fmt.Errorf("environment variable %s: %w", name, err)
	}
	return strings.TrimSpace(value), nil
}

// run runs a command until it's complete or ctx ends.
func run(ctx context.Context, args []string, lookup environment, stdout, stderr io.Writer) (err error) {
	cfg, err := parse(args, lookup, stderr)
	if err != nil {
		return err
	}
	logger := newLogger(stderr)
	migrates := cfg.migrate || cfg.dev || cfg.command == "migrate"
	d, err := openDatabase(cfg.store, migrates, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if migrates {
		if err := d.migrate(ctx); err != nil {
			return err
		}
	}
	if err := d.ready(ctx, logger); err != nil {
		return err
	}
	switch cfg.command {
	case "migrate":
		return nil
	case "add":
		return d.addSecret(ctx, cfg.client, cmp.Or(cfg.name, time.Now().Format(time.DateOnly)), stdout)
	case "secrets":
		return d.printSecrets(ctx, cfg.client, stdout)
	case "retire":
		return d.retireSecrets(ctx, cfg.client, cfg.name)
	case "given-up":
		return d.printGivenUp(ctx, cfg, stdout)
	case "replay":
		return d.replay(ctx, cfg, stdout)
	}
	s, err := newService(d, cfg, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.serve(ctx, stdout)
}

func newLogger(out io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(out, nil)) }
