package admin

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
)

// Erase unsets all webhooks of a client, and then removes everything else that the store can
// remove. Call it when you delete a client. Otherwise its webhooks stay, and a client that
// gets the same identifier later inherits them.
//
// First revoke the client's credentials, of all ids that it signs in with, and wait. A webhook that the client sets after Erase has
// started can stay, and Erase still returns nil. That's possible until every process has noticed the
// revocation (see package auth), and then for [webhookcfg.Options.Timeout] more: a request that
// signed in before can hold back its body for so long. If you can't wait, call Erase again
// afterwards.
//
// A backup that you restore brings the client back, so erase it again then. Each store's
// documentation says what remains, where, and for how long. If the store isn't an [Eraser], Erase only
// unsets the webhooks, and returns nil. So a store that wraps another one must pass its Erase through.
func Erase(ctx context.Context, st webhookcfg.Store, client string) error {
	change := webhookcfg.UnsetChange(client, webhookcfg.All())
	change.Time = now()
	if err := st.Apply(ctx, change); err != nil {
		return fmt.Errorf("admin: erase: %w", err)
	}
	eraser, ok := st.(Eraser)
	if !ok {
		return nil
	}
	if err := eraser.Erase(ctx, client); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("admin: erase: %w", err)
	}
	return nil
}
