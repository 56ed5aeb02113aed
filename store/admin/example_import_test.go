package admin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// row is a row of the table that your service has kept webhooks in, for example from
//
//	SELECT client, coalesce(entity, ''), url, changed_at FROM hooks
type row struct {
	client, entity string // entity is empty for the URL of all entities
	url            string
	changed        time.Time
}

// table is a store that you can only read: the rows of each client, in byte order of their
// entities. It has what Copy, Verify and AuditAll need.
type table map[string][]row

func (table) Apply(context.Context, webhookcfg.Change) error { return errors.ErrUnsupported }

func (table) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{}, errors.ErrUnsupported
}

func (t table) List(_ context.Context, client, after string, limit int) (page webhookcfg.Page, err error) {
	for _, r := range t[client] {
		hook := webhookcfg.Webhook{URL: egress.NewURL(r.url), Source: webhookcfg.SourceOverride, Since: r.changed}
		switch {
		case r.entity == "":
			hook.Source = webhookcfg.SourceBase
			page.Base = hook
		case r.entity <= after:
		case len(page.Overrides) == limit:
			page.Next = page.Overrides[limit-1].Entity
			return page, nil
		default:
			page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: r.entity, Webhook: hook})
		}
	}
	return page, nil
}

func (t table) ListClients(_ context.Context, cursor string, limit int) (page admin.ClientPage, err error) {
	for _, client := range slices.Sorted(maps.Keys(t)) {
		switch {
		case client <= cursor:
		case len(page.Clients) == limit:
			page.Next = page.Clients[limit-1]
			return page, nil
		default:
			page.Clients = append(page.Clients, client)
		}
	}
	return page, nil
}

// bringIn copies rows to an empty store, once, before your handler serves clients. It returns
// the rows that no client could have set: the wrong URLs, the malformed ids and the second
// rows of an entity. If there are any, it copies nothing, unless you ask it to skip them.
//
// Don't set Replace, or a second run would undo what clients have changed since the first.
// Without it, Copy refuses the store. Only if the first run was interrupted, set it once.
func bringIn(ctx context.Context, dst webhookcfg.Store, rows []row, policy *egress.Policy, skip bool) (invalid []string, err error) {
	// A handler for nobody has the checks of your clients' requests.
	h, err := webhookcfg.NewHandler(store.NewMemory(), nobody{}, &webhookcfg.Options{
		Policy: policy, ProbeMode: webhookcfg.ProbeOff, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	old, seen := table{}, map[[2]string]bool{}
	for _, r := range rows {
		scope, key := webhookcfg.All(), [2]string{r.client, r.entity}
		if r.entity != "" {
			scope = webhookcfg.Entity(r.entity)
		}
		err := h.Set(ctx, r.client, scope, r.url)
		if seen[key] {
			err = errors.New("the entity has a row already")
		}
		if err != nil {
			invalid = append(invalid, fmt.Sprintf("client %q, entity %q: %v", r.client, r.entity, err))
			continue
		}
		seen[key] = true
		r.changed = r.changed.UTC().Truncate(time.Microsecond)
		old[r.client] = append(old[r.client], r)
	}
	if len(invalid) > 0 && !skip {
		return invalid, fmt.Errorf("%d of %d rows are invalid, so nothing was copied", len(invalid), len(rows))
	}
	for _, of := range old {
		slices.SortFunc(of, func(a, b row) int { return cmp.Compare(a.entity, b.entity) })
	}
	if _, err := admin.Copy(ctx, dst, old, nil); err != nil {
		return invalid, err
	}
	report, err := admin.Verify(ctx, dst, old, nil)
	if err == nil && report.Different > 0 {
		err = fmt.Errorf("%d of %d webhooks differ: %v", report.Different, report.Webhooks, report.Differences)
	}
	return invalid, err
}

// nobody signs nobody in.
type nobody struct{}

func (nobody) Verify(context.Context, string, string) (webhookcfg.Client, error) {
	return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
}

// Bring in the URLs that your service has in a table of its own.
func Example_import() {
	ctx := context.Background()
	changed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rows := []row{
		{"acme", "", "https://hooks.example.com/acme", changed},
		{"acme", "e1", "https://hooks.example.com/acme/e1", changed},
		{"initech", "e1", "hooks.example.com", changed},
	}
	policy := new(egress.Policy) // the policy of your handler
	webhooks := store.NewMemory()

	invalid, err := bringIn(ctx, webhooks, rows, policy, false)
	fmt.Println(err)
	fmt.Println(invalid)
	_, err = bringIn(ctx, webhooks, rows, policy, true)
	fmt.Println("skipping them:", err)

	// Later, when your policy is stricter: which of them would you no longer call?
	for v, err := range admin.AuditAll(ctx, webhooks, &egress.Policy{Ports: []uint16{8443}}) {
		fmt.Println(v.Client, v.Scope, v.Err, err)
	}

	_, err = bringIn(ctx, webhooks, rows, policy, true)
	fmt.Println("again:", err)
	// Output:
	// 1 of 3 rows are invalid, so nothing was copied
	// [client "initech", entity "e1": webhookcfg: invalid_webhook_url: The URL must be absolute with the scheme https]
	// skipping them: <nil>
	// acme all the port is not allowed <nil>
	// acme entity e1 the port is not allowed <nil>
	// again: admin: copy: the store has webhooks already: set CopyOptions.Replace to make it equal to the source
}
