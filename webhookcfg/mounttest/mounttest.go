// Package mounttest checks from outside that a deployed mount of the handler, with
// every proxy, mux and middleware in front of it, never treats a request for one entity
// as a request for all of them.
//
// The interface means all entities where an identifier is absent. The handler refuses
// what merely looks absent, but it cannot see what something in front of it did to the
// request: a proxy that cleans "…/configure-webhook/e1/.." forwards a correct request
// for all entities. Whether a proxy does depends on one character of its configuration,
// so test the deployment, not the manual:
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
// # What is sent
//
// [Check] sends several hundred requests, one after another. Each of them names one entity,
// or names one wrongly: with dots, slashes, semicolons, backslashes, "#", "?", NUL and
// other controls, plain, escaped once and escaped twice; with a query, a body or a header
// field that says something else; with an identifier that is null, blank, long or unknown.
// They are sent byte for byte over HTTP/1.1, in some part also over HTTP/1.0, in absolute form
// and as the second request over a connection, since clients clean what they send. The client
// of net/http sends them over HTTP/2. Malformed frames of HTTP/2 are not sent.
//
// A refusal says nothing where correct requests are refused as well. So a correct request for
// one entity, which is otherwise the same byte for byte, must have its effect before and after
// the others. Where it has none, [Report.NotChecked] says so. For HTTP/1.1, that is an error.
//
// After each request the effect is read. The check fails for a request that reached all
// entities, and for one that was redirected to the path of all, since clients repeat DELETE
// and POST at the new location. A refusal with any status, a redirect elsewhere, and no
// response at all are correct, as long as correct requests pass.
//
// # The client
//
// The check needs a client of its own, for which no notification is sent: it sets and
// unsets [Target.WebhookURL] many times, and on a mount that widens requests every
// webhook of the client is lost. At the end none of its two entities has a webhook.
// The limit of sign-ins must allow a few hundred correct requests, and the limit of probes
// sixty. If your mount drops requests without a response, the check takes a few minutes.
//
// # If correct requests fail
//
// The error has the status of the response. If it is 404 and the handler logged nothing, the
// request did not reach the handler: a proxy that strips the prefix sends it past
// [webhookcfg.Options.BasePath], and your mux responds. Let the proxy pass the path on.
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
)

// Target is the mount to check, and the means to check it.
type Target struct {
	// BaseURL is the URL of the mount as its clients know it, http or https, without
	// "/api/v1/configure/configure-webhook". It has no userinfo, query or fragment.
	BaseURL string

	// ClientID and Secret are the credentials of a client of its own.
	ClientID, Secret string

	// WebhookURL is a URL that the policy and the probe of the handler accept.
	WebhookURL string

	// Entity and Witness are two different identifiers that are valid for the client, of
	// letters, digits, "-" and "_". Requests name Entity, and an effect on Witness shows
	// that one reached all. "" means "mounttest-entity" and "mounttest-witness".
	Entity, Witness string

	// Resolve returns the URL in effect for an entity of the client, "" for none. It must
	// see every change that was acknowledged, so it must not use a copy that may be stale.
	// If nil, the URL is read with GET, which the handler serves with Options.Reads.
	Resolve func(ctx context.Context, entity string) (webhookURL string, err error)

	// Received returns the request lines that reached the application since it was last
	// called, for example from a middleware around the handler; failures quote them. It is
	// called from one goroutine. It may be nil.
	Received func() []string

	// TLSConfig is used for https; nil means the defaults. It is not changed.
	TLSConfig *tls.Config

	// Timeout bounds each request; zero means 10 seconds.
	Timeout time.Duration
}

const defaultTimeout = 10 * time.Second

// complete sets the defaults and refuses an unusable target. It returns the base.
func (t *Target) complete() (*url.URL, error) {
	base, err := url.Parse(t.BaseURL)
	if err != nil {
		return nil, errors.New("mounttest: invalid BaseURL") // err would quote its userinfo
	}
	isHTTP := base.Scheme == "http" || base.Scheme == "https"
	if !isHTTP || base.Host == "" || base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" {
		return nil, errors.New("mounttest: BaseURL is not an http or https URL without userinfo, query and fragment")
	}
	if t.ClientID == "" || t.Secret == "" || t.WebhookURL == "" {
		return nil, errors.New("mounttest: Target without ClientID, Secret or WebhookURL")
	}
	t.Entity = cmp.Or(t.Entity, "mounttest-entity")
	t.Witness = cmp.Or(t.Witness, "mounttest-witness")
	if t.Entity == t.Witness || !isPlain(t.Entity) || !isPlain(t.Witness) {
		return nil, errors.New("mounttest: Entity and Witness are not two identifiers of letters, digits, - and _")
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

// Run checks a target and fails the test with the report, if there is a failure or the
// check could not be completed. It logs the ways to send a request that were not checked.
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

// Check checks a target. The error is not nil if the check could not be completed: the
// target is invalid or is not reached, does not serve correct requests, or does not show
// their effect, or ctx has ended. The report then holds what was found before. A complete
// check without [Report.Failures] has passed, for all but [Report.NotChecked].
//
// Neither the report nor the error holds the secret, or the part of the webhook URL after
// its port. Each request of a check takes at most Target.Timeout, and Check leaves no
// connection and no goroutine.
func Check(ctx context.Context, target Target) (Report, error) {
	base, err := target.complete()
	if err != nil {
		return Report{}, err
	}
	c := newChecker(target, base)
	defer c.close()
	err = c.run(ctx, attempts(c.wire, c.Entity, c.unknown))
	if err != nil {
		err = errors.New("mounttest: " + c.redact(err.Error()))
	}
	return c.report, err
}
