package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// patience is how long a store can take for one call. Without it, a command with a lost
// connection would wait forever.
const patience = 30 * time.Second

var errSilent = fmt.Errorf("the store hasn't responded within %v", patience)

// operable is a store that all commands work with. All stores of the library are.
type operable interface {
	webhookcfg.Store
	webhookcfg.Lister
	admin.ClientLister
	admin.Eraser
}

// patient is a store with a time limit for its calls. There's none for Erase, which can
// delete row by row or rewrite a file.
type patient struct{ operable }

func (p patient) Apply(ctx context.Context, c webhookcfg.Change) error {
	_, err := within(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.operable.Apply(ctx, c) })
	return err
}

func (p patient) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	return within(ctx, func(ctx context.Context) (webhookcfg.Webhook, error) { return p.operable.Resolve(ctx, client, entity) })
}

func (p patient) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	return within(ctx, func(ctx context.Context) (webhookcfg.Page, error) { return p.operable.List(ctx, client, after, limit) })
}

func (p patient) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	return within(ctx, func(ctx context.Context) (admin.ClientPage, error) { return p.operable.ListClients(ctx, cursor, limit) })
}

// within calls fn with a context that ends after patience.
func within[T any](ctx context.Context, fn func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	result, err := fn(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		err = errors.Join(errSilent, err)
	}
	return result, err
}
