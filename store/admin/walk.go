package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"example.com/go-webhookcfg/webhookcfg"
)

// pageSize is the number of clients or overrides that are read at a time.
const pageSize = 1000

// Clients yields the clients of a store, each once, in the store's order. The store must be a
// [ClientLister]. Otherwise the error wraps [errors.ErrUnsupported]. The walk ends after an
// error.
//
// If a client has nothing set at some moment of the walk, you may not see it. You may also
// see clients that have nothing set any more.
func Clients(ctx context.Context, st webhookcfg.Store) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lister, err := clientLister(st)
		for cursor := ""; ; {
			var page ClientPage
			if err == nil {
				page, err = lister.ListClients(ctx, cursor, pageSize)
			}
			if err != nil {
				yield("", fmt.Errorf("admin: clients: %w", err))
				return
			}
			for _, client := range page.Clients {
				if !yield(client, nil) {
					return
				}
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}

// Entry is a webhook as the client set it: its base, the default webhook, or an override.
type Entry struct {
	// Scope is All for the base, else the entity of an override.
	Scope webhookcfg.Scope
	// Webhook has the source SourceBase, SourceOverride or SourceOff.
	Webhook webhookcfg.Webhook
}

// Webhooks yields the webhooks that a client has set: the base, if it has one, and then the
// overrides in byte order of their entities. The store must be a [webhookcfg.Lister].
// Otherwise the error wraps [errors.ErrUnsupported]. The walk ends after an error. If the
// client makes changes during the walk, the entries can be from different moments.
func Webhooks(ctx context.Context, st webhookcfg.Store, client string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lister, err := lister(st)
		var w *walk
		if err == nil {
			w, err = startWalk(ctx, lister, client)
		}
		if err == nil && w.base.Source != webhookcfg.SourceNone && !yield(Entry{webhookcfg.All(), w.base}, nil) {
			return
		}
		for err == nil && len(w.next) > 0 {
			if !yield(entry(w.next[0]), nil) {
				return
			}
			err = w.skip(ctx)
		}
		if err != nil {
			yield(Entry{}, fmt.Errorf("admin: webhooks of %q: %w", client, err))
		}
	}
}

func entry(o webhookcfg.Override) Entry { return Entry{webhookcfg.Entity(o.Entity), o.Webhook} }

func lister(st webhookcfg.Store) (webhookcfg.Lister, error) {
	if lister, ok := st.(webhookcfg.Lister); ok {
		return lister, nil
	}
	return nil, fmt.Errorf("the store %T lists no overrides: %w", st, errors.ErrUnsupported)
}

func clientLister(st webhookcfg.Store) (ClientLister, error) {
	if lister, ok := st.(ClientLister); ok {
		return lister, nil
	}
	return nil, fmt.Errorf("the store %T lists no clients: %w", st, errors.ErrUnsupported)
}

// walk is a position in the webhooks of one client.
type walk struct {
	lister webhookcfg.Lister
	client string
	base   webhookcfg.Webhook
	// next are the next overrides. It's empty only if there are no more.
	next  []webhookcfg.Override
	after string // where the next page starts; "" if there's none
}

func startWalk(ctx context.Context, lister webhookcfg.Lister, client string) (*walk, error) {
	w := &walk{lister: lister, client: client}
	page, err := w.read(ctx)
	w.base = page.Base
	return w, err
}

// startAnyWalk is startWalk for a client that the store may refuse because of its name. It
// has no webhooks then.
func startAnyWalk(ctx context.Context, lister webhookcfg.Lister, client string) (*walk, error) {
	w, err := startWalk(ctx, lister, client)
	if errors.Is(err, webhookcfg.ErrInvalidArgument) {
		return new(walk), nil
	}
	return w, err
}

// read reads pages until it finds one with an override.
func (w *walk) read(ctx context.Context) (page webhookcfg.Page, err error) {
	for {
		if page, err = w.lister.List(ctx, w.client, w.after, pageSize); err != nil {
			return page, err
		}
		w.next, w.after = page.Overrides, page.Next
		if len(w.next) > 0 || w.after == "" {
			return page, nil
		}
	}
}

// skip goes on to the override after the first of next.
func (w *walk) skip(ctx context.Context) error {
	if w.next = w.next[1:]; len(w.next) > 0 || w.after == "" {
		return nil
	}
	_, err := w.read(ctx)
	return err
}

// isEmpty reports that the client has no base, and that no overrides are left.
func (w *walk) isEmpty() bool { return w.base.Source == webhookcfg.SourceNone && len(w.next) == 0 }
