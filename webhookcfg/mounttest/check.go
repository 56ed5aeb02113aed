package mounttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/redact"
)

const (
	// betweenControls is the number of attempts after which we check again that correct
	// requests pass.
	betweenControls = 60
	// maxWaits is how many attempts without a response get the whole timeout. Otherwise a
	// mount that drops requests could hold up the check for hours.
	maxWaits = 3
	// The others get minWait, or waitFactor times as long as the last correct request took if
	// that's more.
	minWait    = 20 * time.Millisecond
	waitFactor = 5
)

// checker is a run of Check.
type checker struct {
	Target
	wire
	report  Report
	unknown string // an identifier that the host doesn't know
	set     bool   // the witness has a webhook

	refused map[form]bool        // forms that aren't checked, or no longer
	waits   int                  // attempts that got the whole timeout
	took    time.Duration        // by the last correct request
	dropped []Failure            // without a response since the last correct request
	widened map[[3]string]string // the advice for form, method and target without further fields
	settled bool                 // dropped requests can't have an effect any more
}

func newChecker(target Target, base *url.URL) *checker {
	return &checker{
		Target: target, wire: newWire(target, base), unknown: target.Entity + "-" + target.Witness + "-unknown",
		refused: make(map[form]bool), settled: true, widened: make(map[[3]string]string),
	}
}

// run makes the attempts. It takes the ones together that have the same form and the same
// effect.
func (c *checker) run(ctx context.Context, all []attempt) error {
	defer c.restore(ctx)
	if err := c.checkValid(ctx); err != nil {
		return err
	}
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].form == all[0].form && all[n].sets == all[0].sets {
			n++
		}
		if err := c.checkForm(ctx, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return c.settle(ctx)
}

// restore unsets every entity that the check names, even if ctx has ended.
func (c *checker) restore(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, entity := range append([]string{c.Entity, c.Witness, c.unknown}, names...) {
		_ = c.unset(ctx, entity) // at worst they keep their webhooks
	}
}

// checkValid checks that the mount serves correct requests and that we see their effect.
// Otherwise a mount that refuses everything would pass.
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
				return fmt.Errorf("after a correct request for %s, entity %s has a webhook: %t, want %t",
					step.entity, entity, got, want)
			}
		}
	}
	c.set = true
	return nil
}

// checkForm makes the attempts in one form that set webhooks, or that unset them. Before and
// after them, a correct request in that form must have its effect. If nothing gets through, a
// refusal means nothing.
func (c *checker) checkForm(ctx context.Context, all []attempt) error {
	if c.refused[all[0].form] {
		return nil
	}
	if err := c.arrange(ctx, !all[0].sets); err != nil {
		return err
	}
	for i, a := range all {
		if i%betweenControls == 0 {
			if passes, err := c.control(ctx, a); !passes {
				return err
			}
		}
		if err := c.try(ctx, a); err != nil {
			return err
		}
	}
	_, err := c.control(ctx, all[0])
	return err
}

// arrange gives the witness a webhook before attempts to unset, and takes it away before
// attempts to set. So we notice a request that reaches all entities.
func (c *checker) arrange(ctx context.Context, set bool) error {
	if c.set == set {
		return nil
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	do := c.unset
	if set {
		do = c.setOne
	}
	if err := do(ctx, c.Witness); err != nil {
		return err
	}
	c.set = set
	return nil
}

// correct returns a correct request for the entity that otherwise looks like an attempt.
func (c *checker) correct(like attempt) attempt {
	a := attempt{class: "correct", advice: advicePath, form: like.form, method: http.MethodDelete, target: c.base + configure + "/" + c.Entity, sets: like.sets}
	if like.sets {
		a.method, a.target, a.body = http.MethodPost, c.base+configure, `{"endpoint_id":"`+c.Entity+`","webhook_url":"{url}"}`
	}
	return a
}

// control reports whether a correct request in the form of an attempt has its effect. If it
// hasn't, it stops checking that form.
func (c *checker) control(ctx context.Context, like attempt) (passes bool, err error) {
	a := c.correct(like)
	prepare := c.setOne
	if a.sets {
		prepare = c.unset
	}
	got := "no effect"
	conn, openErr := c.open(ctx, a.form)
	if openErr == nil {
		defer conn.close()
		if err := prepare(ctx, c.Entity); err != nil {
			return false, err
		}
		start := time.Now()
		resp, err := c.exchange(ctx, conn, a, c.Timeout)
		if err != nil {
			return false, err
		}
		c.took = time.Since(start)
		set, err := c.resolve(ctx, c.Entity)
		if err != nil {
			return false, err
		}
		if passes = set == a.sets; passes {
			c.dropped = nil // they were all refused
			if a.form == http2 {
				c.report.HTTP2 = true
			}
			return true, nil
		}
		got = resp.String()
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if openErr != nil {
		got = openErr.Error()
	}
	c.refused[a.form] = true
	c.report.Failures = append(c.report.Failures, c.dropped...)
	c.dropped = nil
	c.report.NotChecked = append(c.report.NotChecked, NotChecked{Form: string(a.form), Method: a.method, Reason: redact.Printable(c.redact(got))})
	if a.form == http11 {
		return false, fmt.Errorf("%s %s, a correct request sent byte for byte, had no effect: %s", a.method, a.target, got)
	}
	return false, nil
}

// open connects for a request in a form.
func (c *checker) open(ctx context.Context, f form) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return c.wire.open(ctx, f, c.correct(attempt{form: f}))
}

// try makes one attempt.
func (c *checker) try(ctx context.Context, a attempt) error {
	if err := c.arrange(ctx, !a.sets); err != nil {
		return err
	}
	conn, err := c.open(ctx, a.form)
	if err != nil {
		return fmt.Errorf("connecting (%s): %w", a.form, err)
	}
	defer conn.close()
	if a.stranger && a.method == http.MethodGet {
		_, _ = c.read(ctx, c.Witness) // for a part that remembers the response
	}
	wait := c.Timeout
	if c.waits >= maxWaits {
		wait = min(wait, max(minWait, waitFactor*c.took))
	}
	resp, err := c.exchange(ctx, conn, a, wait)
	if err != nil || resp.unsent {
		return err
	}
	c.report.Requests++
	if resp.late { // the next control decides
		c.dropped = append(c.dropped, c.failure(a, resp, NoResponse, adviceNoResponse))
		c.waits++
	}
	if resp.status == http.StatusTooManyRequests && !a.stranger {
		return errors.New("response 429: raise your limits, the check sends a thousand requests")
	}
	return nil
}

// exchange sends a request and reads its effect on the witness.
func (c *checker) exchange(ctx context.Context, conn *conn, a attempt, wait time.Duration) (response, error) {
	if c.Received != nil {
		c.Received()
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	resp := conn.send(bounded, a)
	if err := ctx.Err(); err != nil {
		return resp, err
	}
	if c.Received != nil {
		resp.received = strings.Join(c.Received(), ", ")
	}
	set, err := c.resolve(ctx, c.Witness)
	if err != nil {
		return resp, err
	}
	switch {
	case set != c.set:
		c.set = set
		outcome := Widened
		if a.stranger {
			outcome = SignedIn
		}
		c.report.Failures = append(c.report.Failures, c.failure(a, resp, outcome, c.advice(a)))
	case resp.shows:
		c.report.Failures = append(c.report.Failures, c.failure(a, resp, SignedIn, a.advice))
	case resp.status >= 300 && resp.status < 400 && reachesAll(resp.location, a.target):
		c.report.Failures = append(c.report.Failures, c.failure(a, resp, Redirected, adviceRedirect))
	}
	if resp.late {
		c.settled = false
	}
	return resp, nil
}

// advice returns the advice for an attempt that reached all entities. If it did that without
// its fields, they aren't to blame.
func (c *checker) advice(a attempt) string {
	key := [3]string{string(a.form), a.method, a.target}
	if len(a.fields) == 0 {
		c.widened[key] = a.advice
	}
	return cmp.Or(c.widened[key], a.advice)
}

func (c *checker) failure(a attempt, resp response, o Outcome, advice string) Failure {
	if a.near != "" {
		a.authorization = "[" + a.near + "]"
	}
	return Failure{
		Outcome: o, Class: a.class, Form: string(a.form), Status: resp.status, Location: c.redact(resp.location), Advice: advice,
		Request: fmt.Sprintf("%q", shortened(c.redact(c.text(a, "[credentials]", c.shown)))), Received: shortened(c.redact(resp.received)),
	}
}

// shortened leaves out the middle of a long text.
func shortened(text string) string {
	const end = 1000
	if len(text) <= 3*end {
		return text
	}
	return fmt.Sprintf("%s … %d bytes … %s", text[:end], len(text)-2*end, text[len(text)-end:])
}

// settle waits until dropped requests can't have an effect any more, and then reads it.
func (c *checker) settle(ctx context.Context) error {
	if c.settled {
		return nil
	}
	c.settled = true
	timer := time.NewTimer(c.Timeout)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	set, err := c.resolve(ctx, c.Witness)
	if err == nil && set != c.set {
		c.set = set
		c.report.Failures = append(c.report.Failures, Failure{
			Outcome: Widened, Class: "late", Request: "one of the requests without a response", Advice: adviceNoResponse,
		})
	}
	return err
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
		return false, fmt.Errorf("entity %s has another webhook URL: use a client that nothing else uses", entity)
	}
	return got != "", nil
}
