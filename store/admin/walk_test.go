package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// halting is a Memory whose every other page is empty.
type halting struct {
	*store.Memory
	count *int
}

func (h halting) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	page, err := h.Memory.List(ctx, client, after, limit)
	if *h.count++; *h.count%2 == 1 && err == nil && len(page.Overrides) > 0 {
		page.Overrides, page.Next = nil, after+"\x00"
	}
	return page, err
}

func (h halting) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	if *h.count++; *h.count%2 == 1 {
		if cursor == "" {
			cursor = "after \x00"
		}
		return admin.ClientPage{Next: cursor}, nil
	}
	return h.Memory.ListClients(ctx, cursor, min(limit, 10))
}

// TestWalks: the walks cross pages, even short or empty ones, and end when told to.
func TestWalks(t *testing.T) {
	memory := memoryWith(t, hooktest.SetAll("acme", 1), hooktest.Unset("acme", "off", 2), hooktest.Set("globex", "e1", 3))
	var wantEntities, wantClients []string
	for n := range 2500 {
		wantEntities = append(wantEntities, fmt.Sprintf("entity e%04d", n))
		hooktest.Apply(t, memory, hooktest.Set("acme", fmt.Sprintf("e%04d", n), n))
		if n%25 == 0 {
			wantClients = append(wantClients, fmt.Sprintf("client %04d", n))
			hooktest.Apply(t, memory, hooktest.Set(wantClients[n/25], "e1", n))
		}
	}
	wantEntities = slices.Concat([]string{"all"}, wantEntities, []string{"entity off"})
	wantClients = slices.Concat([]string{"acme"}, wantClients, []string{"globex"})
	for name, st := range map[string]webhookcfg.Store{"memory": memory, "halting": halting{memory, new(int)}} {
		for _, enough := range []int{1, 2, 1500, 10_000} {
			var clients, entities []string
			for client, err := range admin.Clients(t.Context(), st) {
				if err != nil {
					t.Fatal(err)
				}
				if clients = append(clients, client); len(clients) == enough {
					break
				}
			}
			for e, err := range admin.Webhooks(t.Context(), st, "acme") {
				if err != nil {
					t.Fatal(err)
				}
				if entities = append(entities, e.Scope.String()); len(entities) == enough {
					break
				}
			}
			if !slices.Equal(clients, wantClients[:min(enough, len(wantClients))]) {
				t.Errorf("%s: %d clients, %.200q", name, len(clients), clients)
			}
			if !slices.Equal(entities, wantEntities[:min(enough, len(wantEntities))]) {
				t.Errorf("%s: %d entities, %.200q", name, len(entities), entities)
			}
		}
	}
	for e, err := range admin.Webhooks(t.Context(), memory, "unknown") {
		t.Errorf("an unknown client has %v, %v", e, err)
	}
}

// TestWalksFail: a walk ends with one error.
func TestWalksFail(t *testing.T) {
	plain := struct{ webhookcfg.Store }{store.NewMemory()}
	broken := wrapped{Memory: memoryWith(t, hooktest.SetAll("acme", 1)), names: func() error { return errBroken }, list: func(string) error { return errBroken }}
	for _, test := range []struct {
		st   webhookcfg.Store
		want error
	}{{plain, errors.ErrUnsupported}, {broken, errBroken}} {
		var all []error
		for client, err := range admin.Clients(t.Context(), test.st) {
			all = append(all, err)
			if client != "" {
				t.Errorf("client %q with an error", client)
			}
		}
		for e, err := range admin.Webhooks(t.Context(), test.st, "acme") {
			all = append(all, err)
			if e.Scope != (webhookcfg.Scope{}) {
				t.Errorf("entry %v with an error", e)
			}
		}
		for _, err := range admin.AuditAll(t.Context(), test.st, nil) {
			all = append(all, err)
		}
		if len(all) != 3 || !slices.EqualFunc(all, []error{test.want, test.want, test.want}, errors.Is) {
			t.Errorf("got %v, want %v, three times", all, test.want)
		}
	}
}
