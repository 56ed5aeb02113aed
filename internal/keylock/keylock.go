// Package keylock has a mutex for each key. Stores admit one change of each client at a
// time with it, so that the changes of one client do not take what those of all share.
package keylock

import (
	"context"
	"sync"
)

// Locks is a set of mutexes, one for each key. The zero value is ready for use. It has no
// entry for a key that is neither locked nor waited for.
type Locks struct {
	mu   sync.Mutex
	keys map[string]*keyLock
}

type keyLock struct {
	held  chan struct{} // holds a value while the key is locked
	users int           // calls that hold the lock or wait for it
}

// Lock locks a key, and returns the function that unlocks it. Calls for one key acquire
// the lock in their order, since the Go runtime serves the senders of a channel first in,
// first out; a test fails if it ever stops to. Waiting ends with ctx, whose error is then returned.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	k := l.join(key)
	select {
	case k.held <- struct{}{}:
		return func() {
			<-k.held
			l.leave(key, k)
		}, nil
	case <-ctx.Done():
		l.leave(key, k)
		return nil, ctx.Err()
	}
}

func (l *Locks) join(key string) *keyLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.keys[key]
	if k == nil {
		k = &keyLock{held: make(chan struct{}, 1)}
		if l.keys == nil {
			l.keys = make(map[string]*keyLock)
		}
		l.keys[key] = k
	}
	k.users++
	return k
}

func (l *Locks) leave(key string, k *keyLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.keys, key)
	}
}
