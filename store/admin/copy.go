package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"golang.org/x/sync/errgroup"
)

// ErrNotEmpty is the error of a [Copy] to a store that has webhooks already.
var ErrNotEmpty = errors.New("the store has webhooks already: set CopyOptions.Replace to make it equal to the source")

// CopyOptions are the options of [Copy] and [Verify]. You can use nil or the zero value.
type CopyOptions struct {
	// Workers is how many changes Copy makes, and how many clients Copy and Verify compare,
	// at the same time. Zero means 16.
	Workers int
	// Replace lets Copy change a store that has webhooks already. Copy then unsets everything
	// there that the source doesn't have.
	Replace bool
	// Clients are the clients to copy or to verify. Nil means all clients of both stores, and
	// an empty slice means none.
	Clients []string
	// Progress is called about once a second with the report so far, one call at a time. Copy
	// and Verify return after the last one. It can be nil.
	Progress func(Report)
}

// Report counts the work of a [Copy] or a [Verify].
type Report struct {
	// Clients is how many clients were compared, and Webhooks how many bases and overrides
	// they have in the source.
	Clients, Webhooks int
	// Changes is how many changes Copy made. Divide it by Elapsed for the rate.
	Changes int
	// Elapsed is the time since the start.
	Elapsed time.Duration
	// Partial are the clients, in byte order, that a Copy has changed but not completed when
	// it ended early. Copy again, with Replace, to complete them.
	Partial []string
	// Different is how many differences are left: all that Verify found, or those that the
	// destination refused during a Copy. Differences has the first 100 of them.
	Different   int
	Differences []Difference
}

// maxDifferences is the length of [Report.Differences].
const maxDifferences = 100

// Copy makes dst equal to src: every base and override, including those that are off, with their
// times. It doesn't copy records of deliveries. Both stores must be a [webhookcfg.Lister] and a
// [ClientLister]. If dst is a [example.com/go-webhookcfg/store.File], you get an export, and if
// src is one, you import it.
//
// If dst has webhooks already, set [CopyOptions.Replace]. Copy then also unsets what src
// doesn't have. It changes only what differs, so you can repeat a copy that failed or was
// killed. A copy that finds no difference changes nothing.
//
// Don't resolve from dst until Copy has returned without an error and with no [Report.Different].
// Before that, a client can have a base without its overrides, and a sender would call URLs that
// the client has turned off. You can use the stores otherwise, but Copy can miss changes that are
// made to src meanwhile. The example of a migration shows how to move while your service makes changes.
//
// If dst refuses a webhook, for example because of its name, you find it in
// [Report.Differences], and Copy goes on. If it's a base, Copy also leaves out the client's
// overrides. After any other error, Copy stops, and the report says how far it got.
func Copy(ctx context.Context, dst, src webhookcfg.Store, o *CopyOptions) (Report, error) {
	c, err := newComparison(dst, src, o)
	if err == nil && !c.options.Replace {
		err = c.requireEmpty(ctx)
	}
	if err == nil {
		err = c.run(ctx, c.copyClient)
	}
	if err != nil {
		err = fmt.Errorf("admin: copy: %w", err)
	}
	return c.reported(), err
}

// Verify compares dst with src, webhook by webhook, with times to the microsecond. It reports
// the differences and changes nothing. If the stores change meanwhile, Verify can report
// differences that have gone by now. It ignores [CopyOptions.Replace].
func Verify(ctx context.Context, dst, src webhookcfg.Store, o *CopyOptions) (Report, error) {
	c, err := newComparison(dst, src, o)
	if err == nil {
		err = c.run(ctx, c.verifyClient)
	}
	if err != nil {
		err = fmt.Errorf("admin: verify: %w", err)
	}
	return c.reported(), err
}

// comparison is a Copy or a Verify.
type comparison struct {
	dst, src webhookcfg.Store
	// got and want list the overrides of dst and src.
	got, want webhookcfg.Lister
	options   CopyOptions
	started   time.Time
	// slots holds a token for each change in progress.
	slots chan struct{}

	mu     sync.Mutex
	report Report
	// begun are the clients that this copy has changed but not completed.
	begun map[string]bool
}

// newComparison never returns nil.
func newComparison(dst, src webhookcfg.Store, o *CopyOptions) (*comparison, error) {
	c := &comparison{dst: dst, src: src, started: time.Now(), begun: make(map[string]bool)}
	if o != nil {
		c.options = *o
	}
	if c.options.Workers < 0 {
		return c, fmt.Errorf("%w: %d workers", webhookcfg.ErrInvalidArgument, c.options.Workers)
	}
	c.options.Workers = cmp.Or(c.options.Workers, 16)
	c.slots = make(chan struct{}, c.options.Workers)
	var errs [4]error
	c.got, errs[0] = lister(dst)
	c.want, errs[1] = lister(src)
	_, errs[2] = clientLister(dst)
	_, errs[3] = clientLister(src)
	return c, errors.Join(errs[:]...)
}

// requireEmpty returns ErrNotEmpty if dst has a webhook.
func (c *comparison) requireEmpty(ctx context.Context) error {
	for client, err := range Clients(ctx, c.dst) {
		if err != nil {
			return err
		}
		w, err := startWalk(ctx, c.got, client)
		if err != nil {
			return err
		}
		if !w.isEmpty() {
			return ErrNotEmpty
		}
	}
	return nil
}

// run calls do for every client, several at a time, and Progress meanwhile.
func (c *comparison) run(ctx context.Context, do func(ctx context.Context, client string) error) error {
	defer c.showProgress()()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.options.Workers)
	for client, err := range c.clients(ctx) {
		if err != nil {
			group.Go(func() error { return err })
			break
		}
		group.Go(func() error {
			if err := cmp.Or(ctx.Err(), do(ctx, client)); err != nil {
				return fmt.Errorf("client %q: %w", client, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// clients yields the clients to compare: first the clients of src, then others that dst has.
func (c *comparison) clients(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if c.options.Clients != nil {
			for _, client := range c.options.Clients {
				if !yield(client, nil) {
					return
				}
			}
			return
		}
		for client, err := range Clients(ctx, c.src) {
			if !yield(client, err) {
				return
			}
		}
		for client, err := range Clients(ctx, c.dst) {
			if err == nil {
				var inSource *walk
				if inSource, err = startAnyWalk(ctx, c.want, client); err == nil && !inSource.isEmpty() {
					continue
				}
			}
			if !yield(client, err) {
				return
			}
		}
	}
}

// showProgress calls Progress until the function that it returns is called.
func (c *comparison) showProgress() (stop func()) {
	if c.options.Progress == nil {
		return func() {}
	}
	ticker, done := time.NewTicker(time.Second), make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.options.Progress(c.reported())
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		showing.Wait()
	}
}

// reported returns the report so far.
func (c *comparison) reported() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Elapsed = time.Since(c.started)
	r.Partial = slices.Sorted(maps.Keys(c.begun))
	return r
}

// walks starts walks over a client in src and in dst.
func (c *comparison) walks(ctx context.Context, client string, lister webhookcfg.Lister) (want, got *walk, err error) {
	if want, err = startAnyWalk(ctx, c.want, client); err == nil {
		got, err = startAnyWalk(ctx, lister, client)
	}
	return want, got, err
}

// compared adds a client to the report, with the number of its webhooks.
func (c *comparison) compared(client string, webhooks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Clients++
	c.report.Webhooks += webhooks
	delete(c.begun, client)
}

// remains adds a difference to the report.
func (c *comparison) remains(d Difference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Different++
	if len(c.report.Differences) < maxDifferences {
		c.report.Differences = append(c.report.Differences, d)
	}
}

func (c *comparison) verifyClient(ctx context.Context, client string) error {
	want, got, err := c.walks(ctx, client, c.got)
	if err != nil {
		return err
	}
	webhooks := 0
	for d, err := range differences(ctx, want, got, &webhooks) {
		if err != nil {
			return err
		}
		d.Client = client
		c.remains(d)
	}
	c.compared(client, webhooks)
	return nil
}

// copyClient makes a client in dst equal to the one in src.
//
// To drop an override of a client with a base, you have to set or unset all, because
// unsetting the override turns it off. So if dst has an override too many, or another base,
// copyClient sets the base again, and then every override.
func (c *comparison) copyClient(ctx context.Context, client string) error {
	got := c.got
	for {
		base, isDue, err := c.copyOverrides(ctx, client, got)
		if err != nil || !isDue {
			return err
		}
		if err := c.waitForTurn(ctx); err != nil {
			return err
		}
		isRefused, err := c.apply(ctx, base)
		if isRefused {
			c.compared(client, 0)
		}
		if err != nil || isRefused {
			return err
		}
		got = cleared{base.Want}
	}
}

// cleared lists a client after its base was set. Reading it again would cost a request and,
// with a store that doesn't keep what you set, never end.
type cleared struct{ base webhookcfg.Webhook }

func (c cleared) List(context.Context, string, string, int) (webhookcfg.Page, error) {
	return webhookcfg.Page{Base: c.base}, nil
}

// copyOverrides makes the overrides of a client in dst equal. If it has to set or unset all
// first, it returns that change.
func (c *comparison) copyOverrides(ctx context.Context, client string, lister webhookcfg.Lister) (base Difference, isDue bool, err error) {
	want, got, err := c.walks(ctx, client, lister)
	if err != nil {
		return base, false, err
	}
	base = Difference{Client: client, Scope: webhookcfg.All(), Want: want.base, Got: got.base}
	if want.isEmpty() && !got.isEmpty() {
		return base, true, nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	defer func() { err = cmp.Or(group.Wait(), err) }()
	webhooks := 0
	for d, err := range differences(groupCtx, want, got, &webhooks) {
		if err == nil {
			isOverride := d.Want.Source != webhookcfg.SourceNone
			if d.Scope.IsAll() || !isOverride && want.base.Source != webhookcfg.SourceNone {
				return base, true, nil
			}
			err = c.waitForTurn(groupCtx)
		}
		if err != nil {
			return base, false, err
		}
		d.Client = client
		group.Go(func() error {
			_, err := c.apply(groupCtx, d)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return base, false, err
	}
	c.compared(client, webhooks)
	return base, false, nil
}

// waitForTurn waits until there's a free slot. The next call of apply uses it.
func (c *comparison) waitForTurn(ctx context.Context) error {
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// apply makes the change that removes a difference, and reports the difference if dst refuses
// it.
func (c *comparison) apply(ctx context.Context, d Difference) (isRefused bool, err error) {
	defer func() { <-c.slots }()
	c.mu.Lock()
	c.begun[d.Client] = true
	c.mu.Unlock()
	err = c.dst.Apply(ctx, d.change())
	if errors.Is(err, webhookcfg.ErrInvalidArgument) {
		d.Err = err
		c.remains(d)
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", quoted(d.Scope), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Changes++
	return false, nil
}

// now returns the time for a change. Like a handler's, it's in whole microseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// change returns the change that puts Want in the place of Got.
func (d Difference) change() webhookcfg.Change {
	change := webhookcfg.SetChange(d.Client, d.Scope, d.Want.URL)
	if d.Want.URL.IsZero() {
		change = webhookcfg.UnsetChange(d.Client, d.Scope)
	}
	change.Time = d.Want.Since
	if d.Want.Source == webhookcfg.SourceNone {
		change.Time = now()
	}
	return change
}
