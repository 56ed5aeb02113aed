package outbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// world has a database, receivers in memory, the webhooks of all clients, and processes. It
// belongs into a bubble.
type world struct {
	t        *testing.T
	db       *memory
	start    time.Time
	resolver deliver.Resolver // the world, unless a test sets it
	keys     deliver.Keys

	mu        sync.Mutex
	webhooks  map[string]webhookcfg.Webhook // by client, and by client and entity
	receivers map[string]*peer              // by host and port
	arrivals  []arrival
	delivered int
	attempts  map[string]int // by identifier
	ok        map[string]int
	requests  map[string]int // under way, by client and host
	most      map[string]int

	starts func(n *node, id, address string) // if set, called when a request arrives
}

// peer is a receiver.
type peer struct {
	takes   time.Duration
	respond func(id string) int // the status; 0: none, until the sender gives up
}

type arrival struct {
	id, host string
	at       time.Duration // since the start of the world
}

func newWorld(t *testing.T) *world {
	w := &world{
		keys: testKeys{deliver.GenerateKey()},
		t:    t, db: newMemory(), start: time.Now(), webhooks: make(map[string]webhookcfg.Webhook),
		receivers: make(map[string]*peer), requests: make(map[string]int), most: make(map[string]int),
		attempts: make(map[string]int), ok: make(map[string]int),
	}
	w.resolver = w
	return w
}

// host returns the address of receiver n, which responds after a time.
func (w *world) host(n int, p *peer) string {
	address := fmt.Sprintf("93.184.%d.%d:80", n/250, n%250+1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receivers[address] = p
	return address
}

// set sets a webhook for an entity, or for all if that's empty.
func (w *world) set(client, entity, host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hook := webhookcfg.Webhook{Source: webhookcfg.SourceBase, Since: time.Now()}
	if host != "" {
		hook.URL = egress.NewURL("http://" + host + "/")
	}
	w.webhooks[client+"/"+entity] = hook
}

// setFor sets a webhook that's the override of an entity, also for the keys.
func (w *world) setFor(client, entity, host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.webhooks[client+"/"+entity] = webhookcfg.Webhook{Source: webhookcfg.SourceOverride, Since: time.Now(), URL: egress.NewURL("http://" + host + "/")}
}

// Resolve implements [deliver.Resolver].
func (w *world) Resolve(_ context.Context, client, entity string) (webhookcfg.Webhook, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if hook, ok := w.webhooks[client+"/"+entity]; ok {
		return hook, nil
	}
	return w.webhooks[client+"/"], nil
}

func (w *world) dial(n *node, address string) (net.Conn, error) {
	sender, receiver := net.Pipe()
	go func() {
		defer receiver.Close()
		reader := bufio.NewReader(receiver)
		for {
			req, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			id := req.Header.Get("Webhook-Id")
			w.mu.Lock()
			p := w.receivers[address]
			w.arrivals = append(w.arrivals, arrival{id, address, time.Since(w.start)})
			w.requests[address]++
			w.most[address] = max(w.most[address], w.requests[address])
			w.mu.Unlock()
			if w.starts != nil {
				w.starts(n, id, address)
			}
			status := 204
			if p.respond != nil {
				status = p.respond(id)
			}
			if status == 0 {
				_, _ = io.Copy(io.Discard, receiver)
			} else {
				time.Sleep(p.takes)
			}
			w.mu.Lock()
			w.requests[address]--
			w.mu.Unlock()
			if _, err := fmt.Fprintf(receiver, "HTTP/1.1 %d \r\nContent-Length: 0\r\n\r\n", status); err != nil {
				return
			}
		}
	}()
	return sender, nil
}

// node is a process.
type node struct {
	box     *Outbox
	session *session
	stop    func()           // as at a SIGTERM
	kill    func()           // it writes nothing more
	hang    func(hangs bool) // its calls of the database do, until it ends
}

type testKeys struct{ key deliver.Key }

func (k testKeys) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) {
	return []deliver.Key{k.key}, nil
}

// run starts a process.
func (w *world) run(opts Options, senderOpts deliver.Options) *node {
	w.t.Helper()
	n := &node{session: &session{memory: w.db}}
	senderOpts.Policy = &egress.Policy{
		AllowHTTP: true, Dial: func(_ context.Context, _, address string) (net.Conn, error) { return w.dial(n, address) },
		LocalAddrs: func(context.Context) ([]netip.Addr, error) { return nil, nil },
	}
	sender, err := deliver.New(w.resolver, w.keys, &senderOpts)
	if err != nil {
		w.t.Fatal(err)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}
	if err := opts.complete(); err != nil {
		w.t.Fatal(err)
	}
	n.box = newOutbox(n.session, sender, opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.box.Run(ctx); err != nil {
			w.t.Error(err)
		}
		sender.CloseIdleConnections()
	}()
	n.stop = sync.OnceFunc(func() { cancel(); <-done })
	n.hang = func(hangs bool) {
		w.db.mu.Lock()
		if n.session.hang = nil; hangs {
			n.session.hang = func(string) bool { return true }
		}
		w.db.mu.Unlock()
	}
	n.kill = func() {
		w.db.mu.Lock()
		n.session.cut = true
		w.db.mu.Unlock()
		n.stop()
	}
	return n
}

// stopWithin stops a process, and fails the test if that takes longer than it may.
func (n *node) stopWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	start := time.Now()
	n.stop()
	if took := time.Since(start); took > limit {
		t.Errorf("stopped after %v", took)
	}
}

// has reports whether a process has a client's line.
func (n *node) has(client string) bool {
	n.box.mu.Lock()
	p := n.box.process
	n.box.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[client] != nil
}

// await waits until n notifications have arrived, and returns when the first and the last one
// did.
func (w *world) await(n int, within time.Duration) (first, last time.Duration) {
	w.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		all := w.arrivals
		w.mu.Unlock()
		if len(all) >= n {
			return all[0].at, all[n-1].at
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d of %d arrived within %v", len(all), n, within)
		}
	}
}

func (w *world) deliveries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.delivered
}

// since returns how long notifications took to arrive, sorted.
func (w *world) since(sent map[string]time.Duration) (took []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.arrivals {
		if at, ok := sent[a.id]; ok {
			took = append(took, a.at-at)
		}
	}
	slices.Sort(took)
	return took
}

func (w *world) arrived() int { return len(w.all()) }

// all returns the arrivals so far.
func (w *world) all() []arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.arrivals)
}

// mostAt returns how many requests a receiver had at a time.
func (w *world) mostAt(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most[address]
}
