package deliver

// Check returns the error for which Send refuses the message.
func (m Message) Check() error { return m.check() }

// Signatures is the value of the field webhook-signature.
var Signatures = signatures

// Hostport is the key of the limits of a receiver.
var Hostport = hostport

// UnderWay returns the number of clients and receivers with attempts under way.
func (s *Sender) UnderWay() int {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	return len(s.limiter.clients) + len(s.limiter.receivers)
}
