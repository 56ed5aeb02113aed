package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// states returns the changes that lead to every state of a client with a base or without, and
// with two entities that have an override, are off, or neither. Some differ in a time alone.
func states() (all [][]webhookcfg.Change) {
	again := hooktest.SetAll("acme", 1)
	again.Time = again.Time.Add(time.Microsecond)
	bases := [][]webhookcfg.Change{nil, {hooktest.SetAll("acme", 1)}, {again}, {hooktest.SetAll("acme", 2)}}
	overrides := func(entity string) [][]webhookcfg.Change {
		return [][]webhookcfg.Change{nil, {hooktest.Set("acme", entity, 3)}, {hooktest.Set("acme", entity, 4)}, {hooktest.Unset("acme", entity, 3)}, {hooktest.Unset("acme", entity, 4)}}
	}
	for _, base := range bases {
		for _, e1 := range overrides("e1") {
			for _, e2 := range overrides("e2") {
				all = append(all, slices.Concat(base, e1, e2))
			}
		}
	}
	return all
}

func memoryWith(t testing.TB, changes ...webhookcfg.Change) *store.Memory {
	st := store.NewMemory()
	hooktest.Apply(t, st, changes...)
	return st
}

// dump returns all that a store has, a line per webhook.
func dump(t testing.TB, st webhookcfg.Store) (lines []string) {
	t.Helper()
	for client, err := range admin.Clients(t.Context(), st) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range admin.Webhooks(t.Context(), st, client) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%q %v %s", client, e.Scope, hooktest.Describe(e.Webhook)))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestCopyStates copies every state of a client over every other one. The two are equal
// then, and Verify reports exactly the differences that the dumps have.
func TestCopyStates(t *testing.T) {
	replace := &admin.CopyOptions{Replace: true}
	for n, from := range states() {
		src := memoryWith(t, from...)
		want := dump(t, src)
		for m, over := range states() {
			dst := memoryWith(t, over...)
			before, err := admin.Verify(t.Context(), dst, src, nil)
			if err != nil || (before.Different == 0) != slices.Equal(dump(t, dst), want) || len(before.Differences) != before.Different {
				t.Fatalf("%d over %d: Verify reports %v, %v", n, m, before.Differences, err)
			}
			report, err := admin.Copy(t.Context(), dst, src, replace)
			if err != nil || report.Different != 0 || report.Webhooks != len(want) || len(report.Partial) != 0 {
				t.Fatalf("%d over %d: %+v, %v", n, m, report, err)
			}
			if diff := cmp.Diff(want, dump(t, dst)); diff != "" {
				t.Fatalf("%d over %d: -want +got\n%s", n, m, diff)
			}
			if report.Changes > len(want)+1 || (report.Changes == 0) != (before.Different == 0) {
				t.Errorf("%d over %d: %d changes", n, m, report.Changes)
			}
			again, err := admin.Copy(t.Context(), dst, src, replace)
			after, errVerify := admin.Verify(t.Context(), dst, src, nil)
			if err := errors.Join(err, errVerify); err != nil || again.Changes != 0 || after.Different != 0 || after.Webhooks != len(want) {
				t.Errorf("%d over %d: repeated with %d changes, %d differences, %v", n, m, again.Changes, after.Different, err)
			}
		}
	}
}

// crowd returns the changes of many clients, some of which have more than two pages.
func crowd() (all []webhookcfg.Change) {
	for c := range 300 {
		client := fmt.Sprintf("client %d", c)
		if c%3 > 0 {
			all = append(all, hooktest.SetAll(client, c))
		}
		count := c % 5
		if c%150 == 7 {
			count = 2100
		}
		for e := range count {
			entity := fmt.Sprintf("e%d", e)
			all = append(all, hooktest.Set(client, entity, c+e))
			if e%4 == 1 {
				all = append(all, hooktest.Unset(client, entity, c+e+1))
			}
		}
	}
	return all
}

// TestCopy copies many clients, and replaces what the destination has.
func TestCopy(t *testing.T) {
	src, dst := memoryWith(t, crowd()...), store.NewMemory()
	hooktest.Apply(t, dst, hooktest.SetAll("emptied", 1), hooktest.UnsetAll("emptied", 2)) // counts as nothing
	want := dump(t, src)
	report, err := admin.Copy(t.Context(), dst, src, nil)
	if err != nil || report.Changes != len(want) || report.Webhooks != len(want) || report.Different > 0 || report.Partial != nil {
		t.Errorf("%+v, %v; want %d webhooks", report, err, len(want))
	}
	if diff := cmp.Diff(want, dump(t, dst)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	hooktest.Apply(t, dst, hooktest.SetAll("extra", 1), hooktest.Set("extra", "e1", 2), hooktest.Set("client 1", "extra", 3))
	if report, err := admin.Copy(t.Context(), dst, src, nil); !errors.Is(err, admin.ErrNotEmpty) || report.Changes > 0 {
		t.Errorf("to a store with webhooks: %+v, %v", report, err)
	}
	verified, err := admin.Verify(t.Context(), dst, src, nil)
	if err != nil || verified.Different != 3 {
		t.Errorf("verify: %v, %v, want 3 differences", verified.Differences, err)
	}
	const only = 3 // unset of all, base and one override again
	report, err = admin.Copy(t.Context(), dst, src, &admin.CopyOptions{Replace: true})
	if err != nil || report.Changes != only {
		t.Errorf("%d changes, %v; want %d", report.Changes, err, only)
	}
	if diff := cmp.Diff(want, dump(t, dst)); diff != "" {
		t.Errorf("replaced: -want +got\n%s", diff)
	}
}

// TestCopyClients copies some clients, one of which the source doesn't have.
func TestCopyClients(t *testing.T) {
	src := memoryWith(t, hooktest.SetAll("a", 1), hooktest.SetAll("b", 1))
	for _, test := range []struct {
		clients []string
		want    []string // have the webhook of time 1 then
	}{
		{nil, []string{"a", "b"}},
		{[]string{}, nil},
		{[]string{"b", "extra", "unknown"}, []string{"b"}},
	} {
		dst := memoryWith(t, hooktest.SetAll("a", 9), hooktest.SetAll("b", 9), hooktest.Set("extra", "e1", 9))
		options := &admin.CopyOptions{Replace: true, Clients: test.clients}
		before, errBefore := admin.Verify(t.Context(), dst, src, options)
		report, err := admin.Copy(t.Context(), dst, src, options)
		after, errAfter := admin.Verify(t.Context(), dst, src, options)
		if err := errors.Join(errBefore, err, errAfter); err != nil || before.Different != report.Changes || after.Different > 0 {
			t.Errorf("%q: %d differences, %d changes, then %d, %v", test.clients, before.Different, report.Changes, after.Different, err)
		}
		for _, client := range []string{"a", "b"} {
			got := hooktest.Describe(resolve(t, dst, client, "e1"))
			if want := hooktest.Describe(resolve(t, src, client, "e1")); (got == want) != slices.Contains(test.want, client) {
				t.Errorf("%q: %s has %s", test.clients, client, got)
			}
		}
		if extra := resolve(t, dst, "extra", "e1"); (extra.Source == webhookcfg.SourceNone) != (test.clients == nil || len(test.clients) > 0) {
			t.Errorf("%q: extra has %s", test.clients, hooktest.Describe(extra))
		}
	}
}

func resolve(t testing.TB, st webhookcfg.Store, client, entity string) webhookcfg.Webhook {
	t.Helper()
	hook, err := st.Resolve(t.Context(), client, entity)
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// wrapped is a Memory with hooks in front of its methods.
type wrapped struct {
	*store.Memory
	apply func(c webhookcfg.Change) error
	list  func(client string) error
	names func() error
}

func (w wrapped) Apply(ctx context.Context, c webhookcfg.Change) error {
	if w.apply != nil {
		if err := w.apply(c); err != nil {
			return err
		}
	}
	return w.Memory.Apply(ctx, c)
}

func (w wrapped) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if w.list != nil {
		if err := w.list(client); err != nil {
			return webhookcfg.Page{}, err
		}
	}
	return w.Memory.List(ctx, client, after, limit)
}

func (w wrapped) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	if w.names != nil {
		if err := w.names(); err != nil {
			return admin.ClientPage{}, err
		}
	}
	return w.Memory.ListClients(ctx, cursor, limit)
}

// TestCopyFails: regardless of which change fails, the report names the clients that are
// partly copied. All others are complete or unchanged, and a second copy completes the rest.
func TestCopyFails(t *testing.T) {
	var changes []webhookcfg.Change
	for n := range 6 {
		client := fmt.Sprintf("client %d", n)
		changes = append(changes, hooktest.SetAll(client, 1), hooktest.Set(client, "e1", 2), hooktest.Unset(client, "e2", 3))
	}
	src := memoryWith(t, changes...)
	for fails := range len(changes) {
		var mu sync.Mutex
		allowed := fails
		dst := wrapped{Memory: store.NewMemory(), apply: func(webhookcfg.Change) error {
			mu.Lock()
			defer mu.Unlock()
			if allowed--; allowed < 0 {
				return errBroken
			}
			return nil
		}}
		report, err := admin.Copy(t.Context(), dst, src, &admin.CopyOptions{Workers: 4})
		if !errors.Is(err, errBroken) || report.Changes > fails || len(report.Partial) == 0 || !strings.Contains(err.Error(), `"client `) {
			t.Fatalf("change %d fails: %+v, %v", fails, report, err)
		}
		for n := range 6 {
			client := fmt.Sprintf("client %d", n)
			verified, err := admin.Verify(t.Context(), dst, src, &admin.CopyOptions{Clients: []string{client}})
			if err != nil {
				t.Fatal(err)
			}
			const all = 3
			if isPartial := verified.Different%all != 0; isPartial && !slices.Contains(report.Partial, client) {
				t.Errorf("change %d fails: %q lack %q, of which %d webhooks differ", fails, report.Partial, client, verified.Different)
			}
		}
		left := len(changes) - report.Changes
		report, err = admin.Copy(t.Context(), dst.Memory, src, &admin.CopyOptions{Replace: true})
		if err != nil || report.Changes != left || report.Partial != nil {
			t.Errorf("completed after %d changes: %+v, %v", fails, report, err)
		}
		if diff := cmp.Diff(dump(t, src), dump(t, dst.Memory)); diff != "" {
			t.Errorf("completed after %d changes: -want +got\n%s", fails, diff)
		}
	}
}

// TestCopyCannotRead: a store that can't be read ends a copy and a comparison.
func TestCopyCannotRead(t *testing.T) {
	sound := func() *store.Memory {
		return memoryWith(t, hooktest.SetAll("acme", 1), hooktest.Set("globex", "e1", 2))
	}
	broken := func() error { return errBroken }
	noGlobex := func(client string) error {
		if client == "globex" {
			return errBroken
		}
		return nil
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx      context.Context
		dst, src webhookcfg.Store
		options  *admin.CopyOptions
		want     error
	}{
		"clients of src":   {t.Context(), sound(), wrapped{Memory: sound(), names: broken}, nil, errBroken},
		"clients of dst":   {t.Context(), wrapped{Memory: sound(), names: broken}, sound(), nil, errBroken},
		"overrides of src": {t.Context(), sound(), wrapped{Memory: sound(), list: noGlobex}, nil, errBroken},
		"overrides of dst": {t.Context(), wrapped{Memory: sound(), list: noGlobex}, sound(), nil, errBroken},
		"ended context":    {ended, sound(), sound(), nil, context.Canceled},
		"workers":          {t.Context(), sound(), sound(), &admin.CopyOptions{Workers: -1}, webhookcfg.ErrInvalidArgument},
		"empty client":     {t.Context(), sound(), wrapped{Memory: sound(), list: func(string) error { return errBroken }}, &admin.CopyOptions{Clients: []string{"x"}}, errBroken},
		"src lists none":   {t.Context(), sound(), struct{ webhookcfg.Store }{sound()}, nil, errors.ErrUnsupported},
		"dst lists none":   {t.Context(), struct{ webhookcfg.Store }{sound()}, sound(), nil, errors.ErrUnsupported},
	} {
		options := admin.CopyOptions{Replace: true}
		if test.options != nil {
			options = *test.options
			options.Replace = true
		}
		if _, err := admin.Copy(test.ctx, test.dst, test.src, &options); !errors.Is(err, test.want) {
			t.Errorf("%s: copy: %v", name, err)
		}
		if _, err := admin.Verify(test.ctx, test.dst, test.src, &options); !errors.Is(err, test.want) {
			t.Errorf("%s: verify: %v", name, err)
		}
	}
}

// TestCopyRefused: if the destination refuses a webhook, the report has it, and the rest is
// copied.
func TestCopyRefused(t *testing.T) {
	src := memoryWith(t,
		hooktest.SetAll("acme", 1), hooktest.Set("acme", "\xff", 2), hooktest.Set("acme", "e1", 3),
		hooktest.SetAll("\xff", 4), hooktest.Set("\xff", "e1", 5),
		hooktest.Set("\xfe", "e1", 6),
		hooktest.SetAll("globex", 7))
	refuse := func(c webhookcfg.Change) error {
		if c.Client >= "\xfe" || c.Scope.Entity() >= "\xfe" {
			return fmt.Errorf("%w: not UTF-8", webhookcfg.ErrInvalidArgument)
		}
		return nil
	}
	dst := wrapped{Memory: store.NewMemory(), apply: refuse, list: func(client string) error {
		return refuse(webhookcfg.UnsetChange(client, webhookcfg.All()))
	}}
	report, err := admin.Copy(t.Context(), dst, src, nil)
	if err != nil || report.Changes != 3 || report.Different != 3 || report.Partial != nil || report.Clients != 4 {
		t.Errorf("%+v, %v", report, err)
	}
	var got []string
	for _, d := range report.Differences {
		if !errors.Is(d.Err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("refused for %v", d.Err)
		}
		got = append(got, fmt.Sprintf("%q %v", d.Client, d.Scope))
	}
	slices.Sort(got)
	want := []string{`"\xfe" entity e1`, `"\xff" all`, `"acme" entity ` + "\xff"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	wantDump := dump(t, memoryWith(t, hooktest.SetAll("acme", 1), hooktest.Set("acme", "e1", 3), hooktest.SetAll("globex", 7)))
	if diff := cmp.Diff(wantDump, dump(t, dst.Memory)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	verified, err := admin.Verify(t.Context(), dst, src, nil)
	if err != nil || verified.Different != 4 {
		t.Errorf("verified: %v, %v", verified.Differences, err)
	}
	for _, r := range []admin.Report{report, verified} {
		if text := hooktest.Prints(r); strings.Contains(text, "xxx") {
			t.Errorf("the report shows a path: %s", text)
		}
	}
}

// TestReportIsBounded: a report has the first 100 differences and the number of all.
func TestReportIsBounded(t *testing.T) {
	src := store.NewMemory()
	for n := range 250 {
		hooktest.Apply(t, src, hooktest.Set("acme", fmt.Sprint("e", n), n))
	}
	report, err := admin.Verify(t.Context(), store.NewMemory(), src, nil)
	if err != nil || report.Different != 250 || len(report.Differences) != 100 {
		t.Errorf("%d differences, %d listed, %v", report.Different, len(report.Differences), err)
	}
	const want = `"acme", entity "e0": want override https://hooks.example.com since 2027-01-15T08:00:00.000000Z, got none`
	if got := report.Differences[0].String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCopyConcurrently: Copy makes as many changes at a time as there are workers, for many
// clients and for one, and a base always before the overrides. It calls Progress every
// second.
func TestCopyConcurrently(t *testing.T) {
	const changes = 64
	for name, src := range map[string]*store.Memory{"one client": store.NewMemory(), "many clients": store.NewMemory()} {
		for _, workers := range []int{0, 1, 16} {
			synctest.Test(t, func(t *testing.T) {
				for n := range changes - 1 {
					client := "acme"
					if name != "one client" {
						client = fmt.Sprint("client ", n)
					}
					hooktest.Apply(t, src, hooktest.Set(client, fmt.Sprint("e", n), n))
				}
				hooktest.Apply(t, src, hooktest.SetAll("base", 1))
				var reports []admin.Report
				dst := wrapped{Memory: store.NewMemory(), apply: func(webhookcfg.Change) error {
					time.Sleep(time.Second)
					return nil
				}}
				started := time.Now()
				report, err := admin.Copy(t.Context(), dst, src, &admin.CopyOptions{
					Workers:  workers,
					Progress: func(r admin.Report) { reports = append(reports, r) },
				})
				rounds := changes / 16
				if workers == 1 {
					rounds = changes
				}
				elapsed := time.Duration(rounds) * time.Second
				if got := time.Since(started); err != nil || got != elapsed || report.Elapsed != elapsed || report.Changes != changes {
					t.Errorf("%s, %d workers: %d changes in %v, want %v; %v", name, workers, report.Changes, got, elapsed, err)
				}
				if len(reports) < rounds-1 || len(reports) > rounds {
					t.Errorf("%s, %d workers: %d reports in %d seconds", name, workers, len(reports), rounds)
				}
				for n, r := range reports {
					if want := (n + 1) * changes / rounds; r.Changes > want || r.Changes < want-changes/rounds || r.Elapsed != time.Duration(n+1)*time.Second {
						t.Errorf("%s, %d workers: report %d has %d changes, elapsed %v", name, workers, n, r.Changes, r.Elapsed)
					}
				}
			})
		}
	}
}

// TestCopyBaseFirst: a client never has overrides of the new state with the old base, or off
// without one.
func TestCopyBaseFirst(t *testing.T) {
	src, dst := store.NewMemory(), store.NewMemory()
	for n := range 40 {
		client := fmt.Sprint("client ", n)
		hooktest.Apply(t, src, hooktest.SetAll(client, 1), hooktest.Set(client, "e1", 2), hooktest.Unset(client, "e2", 2))
		hooktest.Apply(t, dst, hooktest.SetAll(client, 9), hooktest.Set(client, "e1", 9), hooktest.Set(client, "e3", 9))
	}
	var mu sync.Mutex
	has := make(map[string]bool)
	witness := wrapped{Memory: dst, apply: func(c webhookcfg.Change) error {
		mu.Lock()
		defer mu.Unlock()
		if has[c.Client] == c.Scope.IsAll() {
			return fmt.Errorf("%v of %q before its base, or the base again", c.Scope, c.Client)
		}
		has[c.Client] = true
		return nil
	}}
	if report, err := admin.Copy(t.Context(), witness, src, &admin.CopyOptions{Replace: true}); err != nil || report.Changes != 3*40 {
		t.Errorf("%d changes, %v", report.Changes, err)
	}
}

// TestCopyEnds: a copy to a store that doesn't keep the times ends, and Verify reports them.
func TestCopyEnds(t *testing.T) {
	src, memory := memoryWith(t, hooktest.SetAll("acme", 1), hooktest.Set("acme", "e1", 2)), store.NewMemory()
	dst := forgetful{memory}
	if report, err := admin.Copy(t.Context(), dst, src, nil); err != nil || report.Changes != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	if report, err := admin.Verify(t.Context(), dst, src, nil); err != nil || report.Different != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// forgetful is a Memory that keeps no times.
type forgetful struct{ *store.Memory }

func (f forgetful) Apply(ctx context.Context, c webhookcfg.Change) error {
	c.Time = time.Time{}
	return f.Memory.Apply(ctx, c)
}

// TestCopyWaits: when Copy returns, even with an error, none of its changes and no call of
// Progress is in progress.
func TestCopyWaits(t *testing.T) {
	for _, isBroken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			src := store.NewMemory()
			for n := range 64 {
				hooktest.Apply(t, src, hooktest.Set("acme", fmt.Sprint("e", n), n))
			}
			var mu sync.Mutex
			begun, running, showing := 0, 0, 0
			count := func(of *int, by int) int {
				mu.Lock()
				defer mu.Unlock()
				*of += by
				return *of
			}
			dst := wrapped{Memory: store.NewMemory(), apply: func(webhookcfg.Change) error {
				if count(&begun, 1) == 1 && isBroken {
					return errBroken
				}
				count(&running, 1)
				defer count(&running, -1)
				time.Sleep(time.Minute)
				return nil
			}}
			_, err := admin.Copy(t.Context(), dst, src, &admin.CopyOptions{Progress: func(admin.Report) {
				count(&showing, 1)
				defer count(&showing, -1)
				time.Sleep(time.Hour)
			}})
			if errors.Is(err, errBroken) != isBroken || count(&running, 0) != 0 || count(&showing, 0) != 0 {
				t.Errorf("%v with %d changes and %d calls of Progress in progress", err, running, showing)
			}
		})
	}
}
