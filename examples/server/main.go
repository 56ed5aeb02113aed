// Command server is a service of one process: the handler, the page for people and the file
// store on a server of its own. It ends gracefully on SIGTERM. For many processes, proxies,
// drains and deployments, see examples/service.
//
//	go run ./examples/server
//
// Its first line of output is the address that it listens on. If you don't give it
// -credentials, it creates a client and prints curl commands that you can try. At /portal/ you
// can sign in with the client's id and secret, set webhooks, send a test, and see how that went.
// With -dev it also prints a URL that responds 410, so that you can see deliveries stop.
//
// It sends nothing else, and makes up the key of the tests at each start. To deliver notifications
// and keep the keys, see examples/service.
//
// With -store file:PATH, it writes a backup when examples/admin asks for one, through the
// socket PATH.sock. Only the user of the process can use that:
//
//	admin backup file:PATH file:COPY
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/examples/internal/backup"
	"example.com/go-webhookcfg/examples/internal/filled"
	"example.com/go-webhookcfg/examples/internal/probes"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// config has the values of the flags.
type config struct {
	listen, store, credentials string
	dev                        bool
}

func parse(args []string, stderr io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:8080", "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&cfg.store, "store", "memory", "store of the configurations: memory or file:PATH")
	filled.Var(flags, &cfg.credentials, "credentials", "credential `file`; without it, the program creates a client")
	flags.BoolVar(&cfg.dev, "dev", false, "for development: allow http, loopback addresses, and URLs that can't be reached")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() > 0 {
		return cfg, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if cfg.listen == "" || strings.HasSuffix(cfg.listen, ":") { // which would mean all addresses, or any port
		return cfg, errors.New("-listen is empty, or has no port, perhaps because a variable isn't set: want an address like 127.0.0.1:8080")
	}
	return cfg, nil
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	cfg, err := parse(args, stderr)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	var opened closers
	defer func() { err = errors.Join(err, opened.close()) }()
	p := probes.New(logger)
	service, usage, err := open(cfg, logger, p, &opened)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return err
	}
	p.Start(service)
	at := listener.Addr()
	text := fmt.Sprintf("%v\n%s# page for people: http://%v%s\n", at, usage(at), at, portalPath)
	if cfg.dev {
		text += fmt.Sprintf("# a URL that responds 410, to set, test and see deliveries stop: http://%v%s\n", at, gonePath)
	}
	fmt.Fprint(stdout, text)
	return serve(ctx, listener, p, logger)
}

// open opens the parts of the service and connects them. Usage returns commands that you can
// try.
func open(cfg config, logger *slog.Logger, p *probes.Probes, opened *closers) (service http.Handler, usage func(net.Addr) string, err error) {
	configurations, err := openStore(cfg, logger, opened)
	if err != nil {
		return nil, nil, err
	}
	clients, usage, err := openClients(cfg, logger, opened)
	if err != nil {
		return nil, nil, err
	}
	p.Watch("store", configurations)
	p.Watch("credentials", clients)
	verifier, err := limit(clients)
	if err != nil {
		return nil, nil, err
	}
	health, err := deliver.NewHealth(nil, &deliver.HealthOptions{Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	o := &webhookcfg.Options{Reads: true, DeliveryStatus: health.Status, Logger: logger, OmitPresentedID: true}
	if cfg.dev {
		o.Policy, o.ProbeMode = egress.Development(), webhookcfg.ProbeOff
	}
	h, err := webhookcfg.NewHandler(configurations, verifier, o)
	if err != nil {
		return nil, nil, err
	}
	pages, err := openPages(h, configurations, &deliver.Options{Policy: o.Policy, Health: health}, opened)
	if err != nil {
		return nil, nil, err
	}
	withSource, err := auth.WithSource(logger)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(portalPath, pages)
	if cfg.dev {
		mux.HandleFunc(gonePath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	}
	mux.Handle("/", h)
	return withSource(h.Before(mux)), usage, nil
}

const (
	portalPath = "/portal/"
	gonePath   = "/gone" // of a receiver, in development
)

// openPages opens the pages for people, and what sends their tests.
func openPages(h *webhookcfg.Handler, configurations webhookcfg.Store, o *deliver.Options, opened *closers) (http.Handler, error) {
	keys, err := deliver.DerivedKeys([]byte(rand.Text() + rand.Text()))
	if err != nil {
		return nil, err
	}
	sender, err := deliver.New(configurations, keys, o)
	if err != nil {
		return nil, err
	}
	*opened = append(*opened, idle{sender})
	test := deliver.Message{Body: []byte(`{"type":"test"}`)}
	return portal.New(h, &portal.Options{
		SignIn:     &portal.SignIn{},
		Test:       sender.Tester(test),
		Try:        sender.Trier(test),
		SigningKey: deliver.SigningKey(keys),
	})
}

// idle closes the connections of a sender.
type idle struct{ *deliver.Sender }

// Close implements [io.Closer].
func (i idle) Close() error { i.CloseIdleConnections(); return nil }

// limit limits failed sign-ins, but spares clients that have signed in.
func limit(clients webhookcfg.CredentialVerifier) (webhookcfg.CredentialVerifier, error) {
	throttled, err := auth.NewThrottle(clients, nil)
	if err != nil {
		return nil, err
	}
	return auth.NewCache(throttled, nil)
}

// closers are the parts that run has opened. It closes them in reverse order.
type closers []io.Closer

func (all closers) close() (err error) {
	for _, one := range slices.Backward(all) {
		err = errors.Join(err, one.Close())
	}
	return err
}

// openStore opens the store that -store specifies.
func openStore(cfg config, logger *slog.Logger, opened *closers) (webhookcfg.Store, error) {
	if cfg.store == "memory" {
		return store.NewMemory(), nil
	}
	path, ok := strings.CutPrefix(cfg.store, "file:")
	if !ok || path == "" {
		return nil, fmt.Errorf("-store %q: want memory or file:PATH", cfg.store)
	}
	file, err := store.OpenFile(path, &store.FileOptions{Logger: logger})
	if err != nil {
		return nil, err
	}
	*opened = append(*opened, file)
	requests, err := backup.Listen(path+backup.Suffix, file.Backup, logger)
	if err != nil { // some volumes have no sockets
		logger.Warn("nobody can ask this process for a backup", "error", err)
		return file, nil
	}
	*opened = append(*opened, requests)
	return file, nil
}

// openClients reads the credential file. Without -credentials it creates a client, and returns
// the commands that you can try it with.
func openClients(cfg config, logger *slog.Logger, opened *closers) (webhookcfg.CredentialVerifier, func(net.Addr) string, error) {
	if cfg.credentials == "" {
		id, secret := "client-"+rand.Text()[:8], auth.GenerateSecret()
		created, err := auth.NewStatic(auth.Credential{ID: id, Secrets: []auth.Secret{secret}})
		return created, func(at net.Addr) string { return commands(at, id, secret) }, err
	}
	file, err := auth.OpenFile(cfg.credentials, &auth.FileOptions{Poll: 2 * time.Second, Logger: logger})
	if err == nil {
		*opened = append(*opened, file)
	}
	return file, func(net.Addr) string { return "" }, err
}

// commands returns shell commands for each operation.
func commands(at net.Addr, id string, secret auth.Secret) string {
	const path = "/api/v1/configure/configure-webhook"
	return fmt.Sprintf(`export CLIENT=%[1]s:%[2]s HOOKS=http://%[3]s%[4]s
curl -u "$CLIENT" "$HOOKS" -H 'Content-Type: application/json' \
  -d '{"webhook_url":"https://example.com/all"}'
curl -u "$CLIENT" "$HOOKS" -H 'Content-Type: application/json' \
  -d '{"endpoint_id":"e1","webhook_url":"https://example.com/e1"}'
curl -u "$CLIENT" "$HOOKS/e1"
curl -u "$CLIENT" -X DELETE "$HOOKS/e1"
`, id, secret.Reveal(), at, path)
}

// serve serves until ctx ends, and then waits for the requests under way.
func serve(ctx context.Context, listener net.Listener, p *probes.Probes, logger *slog.Logger) error {
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener); stop() }()
	p.CheckEvery(ctx, 5*time.Second)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	err := server.Shutdown(grace)
	if cause := <-failed; !errors.Is(cause, http.ErrServerClosed) {
		return cause
	}
	return err
}
