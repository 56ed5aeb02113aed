package sqlstore

import "context"

// fairLock is a mutex that goroutines acquire in the order in which they called lock.
// Waiting ends with the context. A nil fairLock is never held.
type fairLock chan struct{}

func newFairLock() fairLock { return make(fairLock, 1) }

func (l fairLock) lock(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l fairLock) unlock() {
	if l != nil {
		<-l
	}
}
