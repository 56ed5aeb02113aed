// Package mounttest checks your deployed mount of the handler from outside, with every proxy,
// mux and middleware in front of it. It finds out whether a request for one entity can ever
// turn into a request for all of them.
//
//	func TestStaging(t *testing.T) {
//		mounttest.Run(t, mounttest.Target{
//			BaseURL:    "https://staging.example.com/hooks",
//			ClientID:   "mounttest",
//			Secret:     os.Getenv("MOUNTTEST_SECRET"),
//			WebhookURL: "https://hooks.example.com/",
//		})
//	}
//
// In this interface, a request without an identifier means all entities. The handler rejects
// anything that only looks like a missing identifier, but it can't see what happened to a
// request on its way: a proxy that cleans "…/configure-webhook/e1/.." forwards a correct
// request for all entities. That can depend on one character of the proxy's configuration. So
// test your deployment instead of trusting the proxy's manual.
//
// The check also finds a part that adds credentials to requests, or remembers them from others.
//
// # Give the check its own client
//
// Use a client that nothing else uses, and send it no notifications. The check sets and
// unsets [Target.WebhookURL] many times, and if your mount fails the check, the client loses
// all its webhooks. At the end neither of its two entities has a webhook.
//
// Your limits must allow the client more than a thousand sign-ins, five wrong secrets and
// eighty probes. If your mount drops requests without a response, the check takes a few
// minutes.
//
// # Read the report
//
// After each request the check reads its effect. A request fails if it reached all entities,
// if it was carried out without valid credentials, or if it was redirected to the path for all
// entities, because clients repeat DELETE and POST at the new location. Your mount can refuse
// a request with any status, redirect it elsewhere, or not respond at all, as long as it serves
// correct requests. [Failure.Advice] says what to change.
//
// If your mount refused everything, it would pass. So before and after the other requests,
// the check sends a correct one in the same form and expects an effect. If there is none,
// [Report.NotChecked] lists that form. For HTTP/1.1 it's an error.
//
// # If correct requests fail
//
// The error has the status of the response. If it's 404 and the handler logged nothing, the
// request didn't reach the handler. Probably a proxy strips the prefix, so the path isn't under
// [example.com/go-webhookcfg/webhookcfg.Options.BasePath] any more, and your mux responds. Let
// the proxy pass the path on.
//
// # Requests
//
// [Check] sends more than a thousand requests, one after another. Each names one entity, most
// of them wrongly: with dots, slashes, semicolons, backslashes, "#", "?", NUL and other
// controls, plain, escaped once and escaped twice, or with a suffix that a router strips. In
// others, a query, a body or a header field contradicts the path, the method is an unusual
// one, or the identifier is null, blank, unknown or up to 64 KiB long. Some are correct, but
// have no credentials, or wrong ones.
//
// All are sent byte for byte over HTTP/1.1, since clients clean their requests. Some are also
// sent over HTTP/1.0, in absolute form, and as the second request over a connection. The
// client of net/http sends them over HTTP/2. It can't send malformed frames of HTTP/2, so
// these aren't checked.
package mounttest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/redact"
)

// Target is the mount to check, with the credentials and names to use.
type Target struct {
	// BaseURL is the URL of the mount as its clients know it, http or https, without
	// "/api/v1/configure/configure-webhook". It has no userinfo, query or fragment.
	BaseURL string

	// ClientID and Secret are the credentials of the check's own client.
	ClientID, Secret string

	// WebhookURL is a URL that the handler's policy and probe accept.
	WebhookURL string

	// Entity and Witness are two different identifiers that are valid for the client, of
	// letters, digits, "-" and "_". Requests name Entity. If Witness changes too, a request
	// reached all entities. Empty means "mounttest-entity" and "mounttest-witness".
	Entity, Witness string

	// Resolve returns the URL in effect for an entity of the client, or "" if there is none. It
	// must see every acknowledged change, so don't read from a cache. If nil, the check reads
	// with GET, and the handler needs [example.com/go-webhookcfg/webhookcfg.Options.Reads].
	Resolve func(ctx context.Context, entity string) (webhookURL string, err error)

	// Received returns the request lines that reached your application since the last call.
	// Failures quote them. You can collect them in a middleware around the handler. Received
	// is called from one goroutine. It can be nil.
	Received func() []string

	// TLSConfig is used for https, and isn't changed. Nil means the defaults.
	TLSConfig *tls.Config

	// Timeout bounds each request. Zero means 10 seconds.
	Timeout time.Duration
}

const defaultTimeout = 10 * time.Second

// complete sets the defaults and returns the base, or an error if the target can't be used.
func (t *Target) complete() (*url.URL, error) {
	base, err := url.Parse(t.BaseURL)
	if err != nil {
		return nil, errors.New("mounttest: invalid BaseURL") // err would quote its userinfo
	}
	isHTTP := base.Scheme == "http" || base.Scheme == "https"
	if !isHTTP || base.Host == "" || base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" {
		return nil, errors.New("mounttest: BaseURL must be an http or https URL without userinfo, query and fragment")
	}
	if t.ClientID == "" || t.Secret == "" || t.WebhookURL == "" {
		return nil, errors.New("mounttest: set ClientID, Secret and WebhookURL of the Target")
	}
	t.Entity = cmp.Or(t.Entity, "mounttest-entity")
	t.Witness = cmp.Or(t.Witness, "mounttest-witness")
	if t.Entity == t.Witness || !isPlain(t.Entity) || !isPlain(t.Witness) {
		return nil, errors.New("mounttest: Entity and Witness must be two different identifiers of letters, digits, - and _")
	}
	if t.Timeout < 0 {
		return nil, errors.New("mounttest: negative Timeout")
	}
	t.Timeout = cmp.Or(t.Timeout, defaultTimeout)
	return base, nil
}

func isPlain(id string) bool {
	return id != "" && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// Run checks a target. If there is a failure, or if it couldn't complete the check, it fails
// the test with the report. It logs the forms of request that it couldn't check, so you only see them with
// go test -v. To fail a test because of them, use [Check].
func Run(t testing.TB, target Target) {
	t.Helper()
	report, err := Check(t.Context(), target)
	if len(report.Failures) > 0 {
		t.Error(report)
	} else if len(report.NotChecked) > 0 {
		t.Log(report)
	}
	if err != nil {
		t.Error(err)
	}
}

// Check checks a target. The mount passes if the error is nil and there are no
// [Report.Failures]. [Report.NotChecked] lists the forms of request that couldn't be checked.
//
// The error isn't nil if the check couldn't be completed: the target is invalid or can't be
// reached, it doesn't serve correct requests, you can't see their effect, or ctx has ended.
// The report then has everything that was found so far.
//
// Neither the report nor the error contains the secret, or the part of the webhook URL after its
// port. Each request takes at most [Target.Timeout], and Check leaves no connection or goroutine
// behind.
func Check(ctx context.Context, target Target) (Report, error) {
	base, err := target.complete()
	if err != nil {
		return Report{}, err
	}
	c := newChecker(target, base)
	defer c.close()
	err = c.run(ctx, attempts(c.wire, c.Target, c.unknown))
	if err != nil {
		err = errors.New("mounttest: " + redact.Printable(c.redact(err.Error())))
	}
	return c.report, err
}
