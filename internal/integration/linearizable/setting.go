package linearizable

import "example.com/go-webhookcfg/webhookcfg"

// Store is one handle, such as one replica of a service has, on the state that
// all the handles of a check share.
type Store interface {
	webhookcfg.Store
	webhookcfg.Lister
}

// Setting says what the histories are like. [Hot] and [Spread] are where to begin;
// each of their fields can be changed.
type Setting struct {
	// Clients is how many clients the operations of a history are about. Each
	// history has clients that none had before.
	Clients int

	// Goroutines is how many goroutines a history has: the first number holds for
	// the first one, and so on in turn. Neighbours use different handles.
	Goroutines []int

	// Operations is how many operations a goroutine plays one after the other.
	Operations int

	// Rounds is how many histories are played.
	Rounds int

	// Disturb, if not nil, is called once in the middle of each history, beside its
	// operations, for instance to kill a server and start it again. Operations may
	// fail then: after a failure a goroutine waits until Disturb has returned. Its
	// error fails the test.
	Disturb func() error
}

// Hot is a few goroutines that contend for one client.
func Hot() Setting {
	return Setting{Clients: 1, Goroutines: []int{2, 3, 4, 6, 8}, Operations: 25, Rounds: 60}
}

// Spread is 32 goroutines and 12 clients, which between them keep every connection
// of a store busy.
func Spread() Setting {
	return Setting{Clients: 12, Goroutines: []int{32}, Operations: 20, Rounds: 30}
}
