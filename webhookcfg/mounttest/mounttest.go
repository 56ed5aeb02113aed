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
// [Check] sends a few hundred requests, one after another. Each of them names one entity,
// or names one wrongly: with dots, slashes, semicolons, backslashes, "#", "?", NUL and
// other controls, plain, escaped once and escaped twice; in absolute form; with a query or
// a body that names the entity; with an identifier that is null. They are sent over
// connections of their own byte for byte as HTTP/1.1 and HTTP/1.0, since clients clean
// what they send, and as HTTP/2 by the client of net/http, if the server supports it.
// Malformed frames of HTTP/2 are not sent.
//
// After each request the effect is read. The check fails for a request that reached all
// entities, for one that was redirected, since clients repeat DELETE and POST at the new
// location, and for one without any response in time. A refusal with any status, and a
// connection that is closed without a response, are correct.
//
// # The client
//
// The check needs a client of its own, for which no notification is sent: it sets and
// unsets [Target.WebhookURL] many times, and on a mount that widens requests every
// webhook of the client is lost. At the end none of its two entities has a webhook.
// The limits of sign-ins and of probes must allow a few hundred correct requests.
package mounttest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
// check could not be completed.
func Run(t testing.TB, target Target) {
	t.Helper()
	report, err := Check(t.Context(), target)
	if len(report.Failures) > 0 {
		t.Error(report)
	}
	if err != nil {
		t.Error(err)
	}
}

// Check checks a target. The error is not nil if the check could not be completed: the
// target is invalid or is not reached, does not serve correct requests, or does not show
// their effect, ctx has ended, or three requests had no response. The report then holds
// what was found before. A complete check without [Report.Failures] has passed.
//
// Neither the report nor the error holds the secret, or the part of the webhook URL after
// its port. Check takes at most three times Target.Timeout per request, and leaves no
// connection and no goroutine.
func Check(ctx context.Context, target Target) (Report, error) {
	base, err := target.complete()
	if err != nil {
		return Report{}, err
	}
	c := newChecker(target, base)
	defer c.close()
	err = c.run(ctx)
	if err != nil {
		err = errors.New("mounttest: " + c.redact(err.Error()))
	}
	return c.report, err
}

// maxNoResponse is the number of requests without a response that end the check.
const maxNoResponse = 3

// checker is one run of Check.
type checker struct {
	Target
	wire
	report     Report
	noResponse int
	set        bool // the witness has a webhook
}

func newChecker(target Target, base *url.URL) *checker {
	return &checker{Target: target, wire: newWire(target, base)}
}

func (c *checker) run(ctx context.Context) error {
	defer c.restore(ctx)
	if err := c.checkValid(ctx); err != nil {
		return err
	}
	for _, a := range attempts(c.wire, c.Entity) {
		if a.version == http2 && !c.report.HTTP2 {
			continue
		}
		if err := c.try(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// restore unsets both entities, also if ctx has ended.
func (c *checker) restore(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, entity := range []string{c.Entity, c.Witness} {
		_ = c.unset(ctx, entity) // at worst they keep their webhooks
	}
}

// checkValid checks that the mount serves correct requests and that their effect is seen:
// one that refuses everything would pass.
func (c *checker) checkValid(ctx context.Context) error {
	steps := []struct {
		do     func(ctx context.Context, entity string) error
		entity string
		want   map[string]bool // entities with a webhook
	}{
		{c.unset, c.Entity, map[string]bool{c.Entity: false}},
		{c.unset, c.Witness, map[string]bool{c.Witness: false}},
		{c.setOne, c.Witness, map[string]bool{c.Witness: true, c.Entity: false}},
		{c.setOne, c.Entity, map[string]bool{c.Witness: true, c.Entity: true}},
		{c.unset, c.Entity, map[string]bool{c.Witness: true, c.Entity: false}},
	}
	for _, step := range steps {
		if err := step.do(ctx, step.entity); err != nil {
			return err
		}
		for entity, want := range step.want {
			got, err := c.resolve(ctx, entity)
			if err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("a correct request for %s was acknowledged; entity %s has a webhook: %t, want %t",
					step.entity, entity, got, want)
			}
		}
	}
	c.set = true
	c.report.HTTP2 = c.major == 2
	return nil
}

// try sends one request and reads its effect. A request that reaches all entities unsets
// the witness, if it is set, or sets it.
func (c *checker) try(ctx context.Context, a attempt) error {
	if wantSet := a.method != "POST"; c.set != wantSet {
		do := c.unset
		if wantSet {
			do = c.setOne
		}
		if err := do(ctx, c.Witness); err != nil {
			return err
		}
		c.set = wantSet
	}
	if c.Received != nil {
		c.Received()
	}
	resp, err := c.send(ctx, a)
	if err != nil {
		return err
	}
	c.report.Requests++
	f := Failure{Class: a.class, Status: resp.status, Location: c.redact(resp.location)}
	if c.Received != nil {
		f.Received = c.redact(strings.Join(c.Received(), ", "))
	}
	set, err := c.resolve(ctx, c.Witness)
	if err != nil {
		return err
	}
	switch {
	case set != c.set:
		f.Outcome, f.Advice = Widened, a.advice
		c.set = set
	case resp.status >= 300 && resp.status < 400:
		f.Outcome, f.Advice = Redirected, adviceRedirect
	case resp.late:
		f.Outcome, f.Advice = NoResponse, adviceNoResponse
		c.noResponse++
	default:
		return nil
	}
	f.Request = fmt.Sprintf("%q", c.redact(c.text(a, "[credentials]", c.shown)))
	c.report.Failures = append(c.report.Failures, f)
	if c.noResponse == maxNoResponse {
		return fmt.Errorf("%d requests had no response within %v", c.noResponse, c.Timeout)
	}
	return nil
}

// resolve reports whether an entity has the webhook of the check.
func (c *checker) resolve(ctx context.Context, entity string) (bool, error) {
	resolve := c.Resolve
	if resolve == nil {
		resolve = c.read
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	got, err := resolve(ctx, entity)
	if err != nil {
		return false, fmt.Errorf("reading the effect: %w", err)
	}
	if got != "" && got != c.WebhookURL {
		return false, fmt.Errorf("entity %s has another webhook URL: the client of the check must be its own", entity)
	}
	return got != "", nil
}
