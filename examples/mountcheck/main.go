// Command mountcheck checks your deployed mount of the handler from outside, with every proxy
// in front of it:
//
//	MOUNTCHECK_SECRET=… go run ./examples/mountcheck \
//		-url https://staging.example.com/hooks -client mountcheck -webhook https://hooks.example.com/
//
// It sends more than a thousand malformed and ambiguous requests for one entity. If one of them
// reaches all entities, or is redirected there, your mount fails. A form of HTTP can't be
// checked if even correct requests in that form have no effect: mountcheck prints these forms.
//
// Give it a client that nothing else uses, since it sets and unsets the client's webhooks.
// The handler must serve reads. Package mounttest describes the check.
//
// If a correct request gets a 404 and the handler logs nothing, a proxy probably strips the
// prefix. The path then isn't under the handler's base path, and your mux responds.
//
// The exit code is 0 if the mount passed, 1 if the check couldn't be completed, 2 for wrong
// arguments, and 3 if the mount failed, even if the check couldn't be completed. If a script
// reads it, build the program: go run turns every failure into 1.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"example.com/go-webhookcfg/examples/internal/filled"
	"example.com/go-webhookcfg/examples/internal/textfile"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// Exit codes.
const (
	passed = iota
	incomplete
	wrongUsage
	failed
)

// secretEnv names the environment variable with the secret. A flag would show it in process
// lists.
const secretEnv = "MOUNTCHECK_SECRET"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	target, limit, err := parse(args, stderr)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "mountcheck:", err)
		}
		return wrongUsage
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	report, err := mounttest.Check(ctx, target)
	if report.Requests > 0 {
		fmt.Fprint(stdout, report)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	switch {
	case len(report.Failures) > 0: // even if the check didn't end
		return failed
	case err != nil:
		return incomplete
	}
	return passed
}

func parse(args []string, stderr io.Writer) (target mounttest.Target, limit time.Duration, err error) {
	flags := flag.NewFlagSet("mountcheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&target.BaseURL, "url", "", "`URL` of the mount, without /api/v1/configure")
	flags.StringVar(&target.ClientID, "client", "", "`id` of a client that nothing else uses; put its secret into the environment variable "+secretEnv)
	flags.StringVar(&target.WebhookURL, "webhook", "", "`URL` of a webhook that the service accepts")
	filled.Var(flags, &target.Entity, "entity", "`id` that requests name; by default mounttest-entity")
	filled.Var(flags, &target.Witness, "witness", "another `id`, which changes only if a request reaches all entities; by default mounttest-witness")
	flags.DurationVar(&limit, "limit", 10*time.Minute, "time limit of the whole check")
	roots := ""
	filled.Var(flags, &roots, "roots", "`file` with the PEM certificates to trust, instead of the system's")
	if err := flags.Parse(args); err != nil {
		return target, limit, err
	}
	if flags.NArg() > 0 {
		return target, limit, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if target.BaseURL == "" || target.ClientID == "" || target.WebhookURL == "" {
		return target, limit, errors.New("-url, -client and -webhook are required")
	}
	if target.Secret = os.Getenv(secretEnv); target.Secret == "" {
		return target, limit, errors.New(secretEnv + " is not set")
	}
	if err := textfile.Check(target.Secret); err != nil { // perhaps it comes from a file
		return target, limit, fmt.Errorf("%s: %w", secretEnv, err)
	}
	if roots != "" {
		target.TLSConfig, err = trusting(roots)
	}
	return target, limit, err
}

func trusting(file string) (*tls.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := textfile.CheckEncoding(string(data)); err != nil { // the first certificate would be skipped
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("no certificate in %s", file)
	}
	return &tls.Config{RootCAs: pool}, nil
}
