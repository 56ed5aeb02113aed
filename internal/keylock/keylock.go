// Package keylock has a mutex for each key. Stores use it to make one change of each client
// at a time, so that one busy client can't use up the connections that all clients share.
package keylock

import (
	"context"
	"sync"
)

// Locks is a set of mutexes, one for each key. You can use its zero value. It forgets a key
// when nobody has locked it or waits for it.
type Locks struct {
	mu   sync.Mutex
	keys map[string]*keyLock
}

type keyLock struct {
	held  chan struct{} // holds a value while the key is locked
	users int           // calls that hold the lock or wait for it
}

// Lock locks a key, and returns the function that unlocks it. Calls for the same key get the
// lock in the order of their arrival, because the Go runtime serves a channel's senders first
// come, first served. A test guards this. If ctx ends first, Lock returns its error.
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
