// Command admin operates a store of webhooks. It lists, changes, copies, compares, audits and
// erases what your clients have set, in the stores of this library. Start with README.md. For
// the commands and their flags, run
//
//	admin -h
//	admin COMMAND -h
//
// The exit code is 0 on success, 1 after an error, 2 for wrong arguments, and 3 if a command
// found something: damage, differences, refused webhooks, or settings to change.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"example.com/go-webhookcfg/examples/internal/filled"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Exit codes.
const (
	success = iota
	failure
	wrongUsage
	found
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is one of the commands. If its action returns no error, code is the exit code.
type command struct {
	name, arguments, summary string
	flags                    func(*session, *flag.FlagSet)
	action                   func(context.Context, *session) (code int, err error)
}

// commands are in the order of the help text.
var commands = []command{
	{"clients", "STORE", "list the clients", nil, listClients},
	{"list", "STORE CLIENT", "list the webhooks that a client has set", revealing, list},
	{"show", "STORE CLIENT ENTITY", "show the webhook in effect for an entity, how deliveries go, and what waits for the client", showFlags, show},
	{"set", "STORE CLIENT [ENTITY]", "set a webhook to the URL on the standard input, with the checks of the handler", setFlags, set},
	{"unset", "STORE CLIENT [ENTITY]", "leave an entity, or all of a client, without a webhook", unsetFlags, unset},
	{"copy", "FROM TO", "make TO equal to FROM; a copy to a file is an export", copyFlags, copyAll},
	{"verify", "FROM TO", "compare two stores", pairFlags, verify},
	{"audit", "STORE [CLIENT]", "list the webhooks that a policy refuses", auditFlags, audit},
	{"queue", "STORE", "show how much is in the queue, how long it has been due, and the clients that wait longest", queueFlags, showQueue},
	{"erase", "STORE CLIENT", "unset all webhooks of a client, and remove its other data and its notifications, as far as the store can (see README.md)", queueFlags, erase},
	{"health", "STORE", "find out whether the store works; only a change shows that a database's disk is full", nil, health},
	{"check", "STORE", "read all of a file or an SQLite database, or the webhooks of another store, and report damage, missing tables or settings of the database to change; it doesn't look for missing indexes, and can't see the settings of your service's connections", nil, check},
	{"backup", "STORE COPY", "write a copy of a file store to a new one, also while a service has it open", nil, backup},
	{"salvage", "STORE NEW", "copy the intact changes of a damaged file store to a new one", nil, salvage},
}

// session is a run of a command.
type session struct {
	command string // its name
	args    []string
	// keyboard is the standard input without the buffer of stdin.
	keyboard io.Reader
	stdin    *bufio.Reader
	// Both streams escape what a terminal could interpret. flush writes what stdout buffers.
	stdout, stderr io.Writer
	flush          func() error
	// screen is the standard error stream without escapes, for progress on a terminal.
	screen io.Writer
	// Values of flags.
	prefix, toPrefix   string
	queuePrefix        string
	keyFile            string
	keys               sealed.Keys // nil without a file
	json, urls, shared bool
	allowPlain         bool
	migrate, replace   bool
	all, unprobed      bool
	actor              string
	policy             egress.Policy
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] {
				out := bufio.NewWriter(stdout)
				s := &session{command: c.name, keyboard: stdin, stdin: bufio.NewReader(stdin), stdout: escaper{out}, flush: out.Flush, stderr: escaper{stderr}, screen: stderr}
				return s.run(ctx, c, args[1:])
			}
		}
	}
	fmt.Fprint(stderr, "usage: admin COMMAND [FLAGS] ARGUMENTS\n\n")
	for _, c := range commands {
		fmt.Fprintf(stderr, "  %-8s %-22s %s\n", c.name, c.arguments, c.summary)
	}
	fmt.Fprintf(stderr, "\n%s\nadmin COMMAND -h lists the flags of a command.\n", addresses)
	return wrongUsage
}

func (s *session) run(ctx context.Context, c command, args []string) int {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(s.stderr)
	flags.BoolVar(&s.json, "json", false, "write JSON, one object per line")
	flags.BoolVar(&s.shared, "shared", false, "accept files and directories that other users can change or read")
	filled.Var(flags, &s.prefix, "prefix", "the `prefix` of tables or keys, if it isn't the default")
	filled.Var(flags, &s.keyFile, "sealed-keys", "the `FILE` with the keys, if the service encrypts URLs (see README.md)")
	flags.BoolVar(&s.allowPlain, "allow-plain", false, "with -sealed-keys, also accept URLs of the first STORE that aren't encrypted: for the first time that you encrypt; set then also takes a first key that encrypts no URL yet")
	if c.flags != nil {
		c.flags(s, flags)
	}
	flags.Usage = func() {
		fmt.Fprintf(s.stderr, "usage: admin %s [FLAGS] %s\n%s\n\n%s\n", c.name, c.arguments, c.summary, addresses)
		flags.PrintDefaults()
	}
	if flags.Parse(args) != nil {
		return wrongUsage
	}
	if err := filled.Args(flags, args); err != nil {
		fmt.Fprintf(s.stderr, "admin: %s: %v: want %s\n", c.name, err, c.arguments)
		return wrongUsage
	}
	if s.args = flags.Args(); !c.takes(len(s.args)) {
		flags.Usage()
		return wrongUsage
	}
	if s.allowPlain && s.keyFile == "" {
		fmt.Fprintln(s.stderr, "admin: -allow-plain is for a store with encrypted URLs: give -sealed-keys too, or leave it out")
		return wrongUsage
	}
	code, err := s.act(ctx, c)
	err = errors.Join(err, s.flush())
	switch {
	case err == nil:
		return code
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("%w; stop the service first", err)
		if c.onlyReads() {
			err = fmt.Errorf("%w, or work with a copy by admin backup, if the service listens for that as examples/server does", err)
		}
	case errors.Is(err, store.ErrDamaged) || isDamaged(err):
		code = found
	}
	fmt.Fprintln(s.stderr, "admin:", remedy(strings.TrimPrefix(err.Error(), "admin: ")))
	return max(code, failure)
}

// act reads the keys, if there are any, and calls the action of a command.
func (s *session) act(ctx context.Context, c command) (code int, err error) {
	if s.keyFile != "" {
		if s.keys, err = readKeys(s.keyFile, s.shared); err != nil {
			return failure, err
		}
	}
	return c.action(ctx, s)
}

// remedy returns an error's text with what this program has for functions and options of the
// library. It can create the tables of the webhooks, but not those of a queue. What's more than a
// call, as after the loss of a table, is for the service.
func remedy(text string) string {
	if !strings.Contains(text, "outbox: ") {
		text = strings.ReplaceAll(text, ": call Migrate", ": check the address and -prefix, or create the tables with admin copy -migrate")
	}
	return remedies.Replace(text)
}

var remedies = strings.NewReplacer(
	"store.SalvageFile", "admin salvage",
	"call Migrate", "let the service migrate",
	"another Options.Prefix", "another -prefix",
	"see Options.AllowPlain", "give -allow-plain",
)

// onlyReads reports whether the command does as well with a copy of the store. A change of a copy would
// have no effect on the service, and a copy or a rescue of one lacks what clients set meanwhile.
func (c command) onlyReads() bool {
	return slices.Contains([]string{"clients", "list", "show", "verify", "audit", "queue", "check"}, c.name)
}

// takes reports whether the command accepts n arguments. Arguments in brackets are optional.
func (c command) takes(n int) bool {
	names := strings.Fields(c.arguments)
	return n <= len(names) && n >= len(names)-strings.Count(c.arguments, "[")
}

// logger logs to the standard error stream.
func (s *session) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: level}))
}

func (s *session) openOptions() openOptions {
	return openOptions{logger: s.logger(slog.LevelWarn), shared: s.shared}
}

// use opens the store at an address, calls do with it, and closes it.
// If the URLs are encrypted, it decrypts them, and allowPlain accepts others.
func (s *session) use(ctx context.Context, text, prefix string, o openOptions, allowPlain bool, do func(*opened) error) (err error) {
	at, err := parseAddress(text, prefix)
	if err != nil {
		return err
	}
	st, err := at.open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	if s.keys != nil {
		if err := st.unseal(s.keys, allowPlain); err != nil {
			return err
		}
	}
	if err := st.probe(ctx); err != nil {
		return err
	}
	return do(st)
}

// useFirst calls do with the store of the first argument. Only set can be the first to put something
// there.
func (s *session) useFirst(ctx context.Context, do func(*opened) error) error {
	return s.use(ctx, s.args[0], s.prefix, s.openOptions(), s.allowPlain, func(st *opened) error {
		if s.command != "set" {
			if err := st.mustHaveSomething(ctx); err != nil {
				return err
			}
		}
		return do(st)
	})
}
