package enginetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestFailedClaims: while the database refuses to give lines to a process, it forgets none of the clients that
// have something new, however many there are.
func TestFailedClaims(t *testing.T) {
	inSite(t, func(s *site) {
		const held, others = 16, 10
		for i := range held + others {
			s.set(fmt.Sprint("c", i), "", s.peer(i, &peer{}))
		}
		for i := range held {
			s.enqueue(fmt.Sprint("c", i), "e", fmt.Sprint("m", i))
		}
		n := s.run(outbox.Options{Clients: held}, deliver.Options{})
		var commits atomic.Int64
		var isHealed atomic.Bool
		n.faults.mu.Lock()
		n.faults.commit = func() (bool, error) {
			switch i := commits.Add(1); {
			case i == 1, isHealed.Load():
				return true, nil
			case i == 2: // the claim was made, and its response is lost
				return true, errCut
			default:
				return false, errCut
			}
		}
		n.faults.mu.Unlock()
		s.await("a lost claim", 10*time.Second, func() bool { return commits.Load() >= 2 })
		for i := range others {
			s.enqueue(fmt.Sprint("c", held+i), "e", fmt.Sprint("m", held+i))
		}
		time.Sleep(2 * time.Second)
		isHealed.Store(true)
		s.awaitEnds(held+others, 10*time.Second)
	})
}
