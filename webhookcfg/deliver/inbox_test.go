package deliver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// inbox is a receiver in a bubble that takes a time for each request. Its responses are "200
// OK\r\n", unless respond returns others.
type inbox struct {
	takes   time.Duration
	respond func(n int) string // n counts the requests

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

// policy returns a policy under which every name is called at the inbox.
func (in *inbox) policy() *egress.Policy {
	p := policyInMemory(dialTo(func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			in.mu.Lock()
			in.requests, in.bodies = append(in.requests, req), append(in.bodies, string(body))
			n := len(in.requests)
			in.mu.Unlock()
			time.Sleep(in.takes)
			response := "200 OK\r\n"
			if in.respond != nil {
				response = in.respond(n)
			}
			fmt.Fprint(conn, "HTTP/1.1 "+response+"Content-Length: 0\r\n\r\n")
		}
	}))
	addr := []netip.Addr{netip.MustParseAddr("93.184.216.34")}
	p.Resolver = names{"example.com": addr, "example.org": addr}
	return p
}

// ids returns the identifiers of the messages in the order in which they arrived.
func (in *inbox) ids() (ids []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, r := range in.requests {
		ids = append(ids, r.Header.Get("Webhook-Id"))
	}
	return ids
}

// sends collects the results of concurrent calls of Send.
type sends struct {
	sender  *deliver.Sender
	wg      sync.WaitGroup
	mu      sync.Mutex
	results map[string]deliver.Result
}

// start starts a Send, and returns when it waits for something.
func (s *sends) start(ctx context.Context, entity, id string) {
	s.wg.Go(func() {
		m := message
		m.ID = id
		r := s.sender.Send(ctx, "acme", entity, m)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.results == nil {
			s.results = map[string]deliver.Result{}
		}
		s.results[id] = r
	})
	synctest.Wait()
}

// wait returns the results, by the identifier of the message.
func (s *sends) wait() map[string]deliver.Result {
	s.wg.Wait()
	s.sender.CloseIdleConnections()
	return s.results
}
