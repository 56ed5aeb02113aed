package deliver_test

import (
	"io"
	"log"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hostile"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// judgement is the outcome of an attempt at a hostile receiver.
type judgement struct {
	outcome deliver.Outcome
	reason  deliver.Reason
}

var (
	delivered   = judgement{deliver.Delivered, ""}
	redirected  = judgement{deliver.Failed, deliver.ReasonRedirect}
	badStatus   = judgement{deliver.Failed, deliver.ReasonStatus}
	timedOut    = judgement{deliver.Failed, reasonTimeout}
	untrusted   = judgement{deliver.Failed, reasonTLS}
	unreachable = judgement{deliver.Failed, deliver.ReasonUnreachable}
	failed      = judgement{deliver.Failed, ""} // whatever the reason: it depends on which side is faster
)

// judgements are those of all hostile receivers, by the part of their names that is the
// same in every protocol. Those that do not speak TLS where it is expected are below.
var judgements = map[string]judgement{
	"silence":                            timedOut,
	"nothing read":                       timedOut,
	"dripping status":                    timedOut,
	"dripping header":                    timedOut,
	"close":                              unreachable,
	"reset":                              unreachable,
	"noise":                              unreachable,
	"dripping noise":                     failed,
	"SSH":                                unreachable,
	"echo":                               unreachable,
	"echo in a field":                    delivered,
	"frames of HTTP/2":                   unreachable,
	"switched protocols":                 unreachable,
	"switched protocols without upgrade": unreachable,
	"endless header":                     delivered,
	"endless field":                      delivered,
	"dripping early hints":               timedOut,
	"endless early hints":                unreachable,
	"endless processing":                 unreachable,
	"header and silence":                 delivered,
	"dripping body":                      delivered,
	"endless body":                       delivered,
	"terabyte":                           delivered,
	"dripping chunk extension":           delivered,
	"short body":                         delivered,
	"echo in a trailer":                  delivered,
	"more than one response":             delivered,
	"control bytes in the status":        badStatus,
	"broken Location":                    redirected,
	"endless chunk extension":            delivered,
	"endless trailer":                    delivered,
	"noise when idle":                    delivered,
	"endless session tickets":            untrusted,
	"endless key updates":                untrusted,
	"key updates in a field":             delivered,
	"key updates in a body":              delivered,
	"session tickets after a response":   delivered,
	"key updates after a response":       delivered,
}

var judgementsWithoutTLS = map[string]judgement{
	"silence":        timedOut,
	"nothing read":   timedOut,
	"close":          untrusted,
	"noise":          untrusted,
	"dripping noise": untrusted,
	"SSH":            untrusted,
}

func judgementOf(receiver hostile.Receiver) (judgement, bool) {
	protocol, kind, _ := strings.Cut(receiver.Name, ": ")
	if protocol == "TCP instead of TLS" {
		j, ok := judgementsWithoutTLS[kind]
		return j, ok
	}
	j, ok := judgements[kind]
	return j, ok
}

// longest is enough time to meet a hostile receiver on any machine.
const longest = 16 * time.Second

// TestHostileReceivers: whatever a receiver does, an attempt ends, has the outcome of the
// table, and leaves nothing open, and no result contains what was received.
func TestHostileReceivers(t *testing.T) {
	hostile.BoundLog(t)
	before := hostile.Goroutines()
	turns := make(chan struct{}, 16)
	var all sync.WaitGroup
	for _, receiver := range hostile.Receivers(t) {
		want, ok := judgementOf(receiver)
		if !ok {
			t.Errorf("no outcome is expected of %s", receiver.Name)
			continue
		}
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			// On a busy machine, the time may be up before anything happens.
			timeout := time.Second
			for !sendTo(t, receiver, want, timeout) && timeout < longest {
				timeout *= 2
			}
		})
	}
	all.Wait()
	if err := before.Await(); err != nil {
		t.Error(err)
	}
}

// sendTo sends to a hostile receiver, and reports whether the time sufficed to meet what is
// under test. The context has no deadline: only the limits of the sender hold.
func sendTo(t *testing.T, receiver hostile.Receiver, want judgement, timeout time.Duration) bool {
	server := receiver.Start(t)
	defer server.Close()
	guarded := egress.Development()
	guarded.RootCAs = receiver.Roots
	s := newSender(t, configured(t, server.URL), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: guarded, Timeout: timeout, MaxBody: receiver.BodySize})
	m := message
	if receiver.BodySize > 0 {
		m.Body = make([]byte, receiver.BodySize)
	}
	returned := make(chan deliver.Result, 1)
	go func() { returned <- s.Send(t.Context(), "acme", "e1", m) }()
	r, late := hostile.Result(returned, timeout)
	if late != nil {
		t.Errorf("%s: %v", receiver.Name, late)
		return true
	}
	if want == failed {
		want.reason = reasonOf(r)
	}
	tooShort := judgement{r.Outcome, reasonOf(r)} == timedOut && want != timedOut ||
		r.Outcome == deliver.Deferred && want.outcome != deliver.Deferred // our own side took too long
	if tooShort && timeout < longest {
		return false
	}
	if err := server.AwaitClosed(s.CloseIdleConnections); err != nil {
		t.Errorf("%s: %v", receiver.Name, err)
	}
	check(t, receiver.Name, r, want.outcome, want.reason)
	checkHidden(t, r, "secret")
	return server.Reached() > 0
}

// TestUnreachable: no connection, and a certificate that is not trusted.
func TestUnreachable(t *testing.T) {
	s := newSender(t, configured(t, "http://127.0.0.1:1"+secretPath), keyring{deliver.GenerateKey()}, nil)
	check(t, "no listener", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonUnreachable)

	r := newReceiver(t, true, status(200))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	s = newSender(t, configured(t, r.URL+secretPath), keyring{deliver.GenerateKey()}, nil)
	result := s.Send(t.Context(), "acme", "e1", message)
	check(t, "unknown authority", result, deliver.Failed, deliver.ReasonUnreachable)
	if text := result.LogValue().String(); !strings.Contains(text, string(egress.ReasonUnknownAuthority)) || result.Reason.Public() != "unreachable" {
		t.Errorf("logged %s, and public is %q", text, result.Reason.Public())
	}

	s = newSender(t, configured(t, "http://name.invalid"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: &egress.Policy{AllowHTTP: true, Resolver: names{}}})
	check(t, "unknown name", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonUnreachable)
}
