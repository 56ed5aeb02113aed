package store

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

var (
	_ webhookcfg.Feed  = (*File)(nil)
	_ webhookcfg.Waker = (*File)(nil)
)

// Changes implements [webhookcfg.Feed], as [Memory.Changes] does. A store that was
// opened again does not know the cursors from before, and gives a Reset.
func (f *File) Changes(ctx context.Context, since string) (webhookcfg.Changes, error) {
	if f.closed.Load() {
		return webhookcfg.Changes{}, ErrClosed
	}
	f.log.Barrier()
	return f.state.Changes(ctx, since)
}

// Wake implements [webhookcfg.Waker], as [Memory.Wake] does.
func (f *File) Wake(ctx context.Context) <-chan struct{} { return f.state.Wake(ctx) }
