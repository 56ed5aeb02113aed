// Command mountcheck checks a deployed mount of the handler, with every proxy in front of
// it, from outside:
//
//	MOUNTCHECK_SECRET=… go run ./examples/mountcheck \
//		-url https://staging.example.com/hooks -client mountcheck -webhook https://hooks.example.com/
//
// It sends several hundred malformed and ambiguous requests for one entity, and fails if one of
// them reaches all entities or is redirected there. It prints which forms of HTTP it could not
// check, since correct requests had no effect either. The client must be its own, since the
// check sets and unsets its webhooks. The handler must serve reads. Package mounttest has the
// details.
//
// If the check ends with a 404 for a correct request and the handler logs nothing, a proxy
// strips the prefix: the request goes past the handler's base path, and the mux responds.
//
// The exit code is 0 if the mount passed, 1 if the check could not be completed, 2 for wrong
// arguments, and 3 if the mount failed, even if the check could not be completed.
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

	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// Exit codes.
const (
	passed = iota
	incomplete
	wrongUsage
	failed
)

// secretEnv names the environment variable with the secret, which no process list shows.
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
	case len(report.Failures) > 0: // also if the check did not end
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
	flags.StringVar(&target.ClientID, "client", "", "`id` of a client of its own; its secret is in the environment, as "+secretEnv)
	flags.StringVar(&target.WebhookURL, "webhook", "", "`URL` of a webhook that the service accepts")
	flags.StringVar(&target.Entity, "entity", "", "`id` that requests name; by default mounttest-entity")
	flags.StringVar(&target.Witness, "witness", "", "another `id`, which only a request for all reaches; by default mounttest-witness")
	flags.DurationVar(&limit, "limit", 10*time.Minute, "time limit of the whole check")
	roots := flags.String("roots", "", "`file` with the PEM certificates to trust, instead of the system's")
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
	if *roots != "" {
		target.TLSConfig, err = trusting(*roots)
	}
	return target, limit, err
}

func trusting(file string) (*tls.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("no certificate in %s", file)
	}
	return &tls.Config{RootCAs: pool}, nil
}
