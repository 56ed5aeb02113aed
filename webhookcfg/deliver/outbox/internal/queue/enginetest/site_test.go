package enginetest

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// site is a host of the package: a database, processes that send with a real sender, the webhooks of
// clients, and receivers at the other ends of pipes. It belongs into a bubble.
type site struct {
	t        *testing.T
	path     string
	db       *sql.DB
	box      *outbox.Outbox // of a process that only enqueues
	webhooks *store.Memory
	resolver deliver.Resolver
	keys     deliver.Keys
	start    time.Time
	nodes    []*node
	writing  chan struct{} // see [faultyConn]

	mu       sync.Mutex
	lastSet  time.Time
	peers    map[string]*peer // by host and port
	requests []request
	attempts map[string]int // by identifier
	underWay map[string]int // by host and port
	most     map[string]int
	ends     []outbox.End
}

// peer is a receiver.
type peer struct {
	takes   time.Duration
	respond func(r request) int // the status; 0: none, until the sender gives up. The site is locked
	refuses bool                // connections
	asks    time.Duration       // for a pause, if the status isn't a success; zero: it doesn't
}

// request is one that arrived.
type request struct {
	id, host, path string
	at             time.Duration // since the start of the site
	of             *node
	nth            int // of this notification
}

// fixedKeys are the same for all.
type fixedKeys []deliver.Key

func (k fixedKeys) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) { return k, nil }

// inSite runs a test in a site in virtual time. When it ends, so do all processes.
func inSite(t *testing.T, test func(s *site)) {
	t.Helper()
	t.Parallel()
	bubble(t, func(_ *testing.T, s *site) { test(s) })
}

// bubble is inSite for a test that has several, one after another.
func bubble(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &site{
			t: t, path: filepath.Join(t.TempDir(), "q.db"), webhooks: store.NewMemory(), keys: fixedKeys{deliver.GenerateKey()}, start: time.Now(),
			peers: make(map[string]*peer), attempts: make(map[string]int), underWay: make(map[string]int), most: make(map[string]int),
			writing: make(chan struct{}, 1),
		}
		s.resolver = s.webhooks
		s.db = s.open(2, new(faults))
		defer s.db.Close()
		s.box = s.outbox(s.db, nil, outbox.Options{})
		if err := s.box.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, n := range s.nodes {
				n.stop()
			}
		}()
		test(t, s)
	})
}

func (s *site) open(pool int, f *faults) *sql.DB {
	db, err := openWith("file:"+s.path+"?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)", f, s.writing)
	if err != nil {
		s.t.Fatal(err)
	}
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	return db
}

func (s *site) outbox(db *sql.DB, sender *deliver.Sender, o outbox.Options) *outbox.Outbox {
	s.t.Helper()
	box, err := outbox.New(db, sqlstore.SQLite(), sender, &o)
	if err != nil {
		s.t.Fatal(err)
	}
	return box
}

// peer returns the host and port of receiver n.
func (s *site) peer(n int, p *peer) string {
	host := fmt.Sprintf("93.184.%d.%d:80", n/250, n%250+1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[host] = p
	return host
}

// set sets the webhook of an entity, or of all if that's "". It's at a host and port and a path.
func (s *site) set(client, entity, place string) {
	s.t.Helper()
	c := webhookcfg.SetChange(client, scope(entity), egress.NewURL("http://"+place))
	c.Time = s.setTime()
	s.apply(c)
}

func (s *site) unset(client, entity string) {
	s.t.Helper()
	c := webhookcfg.UnsetChange(client, scope(entity))
	c.Time = s.setTime()
	s.apply(c)
}

func (s *site) apply(c webhookcfg.Change) {
	s.t.Helper()
	if err := s.webhooks.Apply(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
}

// setTime returns a time that no setting has had.
func (s *site) setTime() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().Truncate(time.Microsecond)
	if !now.After(s.lastSet) {
		now = s.lastSet.Add(time.Microsecond)
	}
	s.lastSet = now
	return now
}

func scope(entity string) webhookcfg.Scope {
	if entity == "" {
		return webhookcfg.All()
	}
	return webhookcfg.Entity(entity)
}

// enqueue enqueues notifications of an entity in a transaction.
func (s *site) enqueue(client, entity string, ids ...string) {
	s.t.Helper()
	s.enqueueAll(client, ids, func(string) string { return entity })
}

// enqueueEach enqueues n notifications, each of an entity of its own.
func (s *site) enqueueEach(client, name string, n int) {
	s.t.Helper()
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprint(name, i))
	}
	s.enqueueAll(client, ids, func(id string) string { return id })
}

func (s *site) enqueueAll(client string, ids []string, entity func(id string) string) {
	s.t.Helper()
	tx, err := s.db.Begin()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range ids {
		n := outbox.Notification{Client: client, Entity: entity(id), Message: deliver.Message{ID: id, Body: []byte("{}")}}
		if err := s.box.Enqueue(s.t.Context(), tx, n); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		s.t.Fatal(err)
	}
}

// node is a process.
type node struct {
	*outbox.Outbox
	site   *site
	faults *faults
	log    *journal
	stop   func() // as at a SIGTERM

	mu     sync.Mutex
	killed bool
	conns  []net.Conn
}

// run starts a process.
func (s *site) run(o outbox.Options, so deliver.Options) *node {
	s.t.Helper()
	n := &node{site: s, faults: new(faults), log: new(journal)}
	so.Policy = &egress.Policy{
		AllowHTTP: true, Dial: func(_ context.Context, _, address string) (net.Conn, error) { return n.dial(address) },
		LocalAddrs: func(context.Context) ([]netip.Addr, error) { return nil, nil },
	}
	sender, err := deliver.New(s.resolver, s.keys, &so)
	if err != nil {
		s.t.Fatal(err)
	}
	o.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(n.log, s.t.Output()), nil))
	onEnd := o.OnEnd
	o.OnEnd = func(e outbox.End) {
		s.mu.Lock()
		s.ends = append(s.ends, e)
		s.mu.Unlock()
		if onEnd != nil {
			onEnd(e)
		}
	}
	db := s.open(3, n.faults)
	n.Outbox = s.outbox(db, sender, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.Run(ctx); err != nil {
			s.t.Error(err)
		}
		sender.CloseIdleConnections()
		db.Close()
	}()
	n.stop = sync.OnceFunc(func() { cancel(); <-done })
	s.nodes = append(s.nodes, n)
	return n
}

// stopWithin stops a process, and fails the test if that takes longer.
func (n *node) stopWithin(limit time.Duration) {
	n.site.t.Helper()
	start := time.Now()
	n.stop()
	if took := time.Since(start); took > limit {
		n.site.t.Errorf("stopped after %v, want %v", took, limit)
	}
}

// kill ends a process as kill -9 does: it writes nothing more, and sends nothing.
func (n *node) kill() {
	n.mu.Lock()
	n.killed = true
	conns := n.conns
	n.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	n.faults.cut()
	n.stop()
}

// changed says to a process that a webhook has changed.
func (n *node) changed(client, entity string) { n.Changed(client, scope(entity)) }

// dial connects a process to a receiver.
func (n *node) dial(host string) (net.Conn, error) {
	n.site.mu.Lock()
	p := n.site.peers[host]
	isRefused := p == nil || p.refuses
	n.site.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if isRefused || n.killed {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	n.conns = append(n.conns, ours)
	go n.serve(theirs, host, p)
	return ours, nil
}

// serve is a receiver's end of a connection.
func (n *node) serve(conn net.Conn, host string, p *peer) {
	defer conn.Close()
	s, reader := n.site, bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		status, takes := s.arrives(request{id: req.Header.Get("Webhook-Id"), host: host, path: req.URL.Path, of: n}, p)
		if status == 0 {
			_, _ = io.Copy(io.Discard, conn)
		} else {
			time.Sleep(takes)
		}
		s.mu.Lock()
		s.underWay[host]--
		s.mu.Unlock()
		more := ""
		if p.asks > 0 && status >= 300 {
			more = fmt.Sprintf("Retry-After: %.0f\r\n", p.asks.Seconds())
		}
		if _, err := fmt.Fprintf(conn, "HTTP/1.1 %d \r\n%sContent-Length: 0\r\n\r\n", status, more); err != nil {
			return
		}
	}
}

// arrives records a request, and returns the response.
func (s *site) arrives(r request, p *peer) (status int, takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[r.id]++
	r.at, r.nth = time.Since(s.start), s.attempts[r.id]
	s.requests = append(s.requests, r)
	s.underWay[r.host]++
	s.most[r.host] = max(s.most[r.host], s.underWay[r.host])
	if status = http.StatusNoContent; p.respond != nil {
		status = p.respond(r)
	}
	return status, p.takes
}

// does returns a response that's always the same.
func does(status int) func(request) int { return func(request) int { return status } }

// change changes what receivers do.
func (s *site) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// all returns the requests for which a function holds.
func (s *site) all(is func(r request) bool) (found []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if is(r) {
			found = append(found, r)
		}
	}
	return found
}

// count returns how many requests there were for which a function holds.
func (s *site) count(is func(r request) bool) int { return len(s.all(is)) }

func every(request) bool { return true }

// named holds for requests whose notification's identifier starts with a name.
func named(name string) func(r request) bool {
	return func(r request) bool { return strings.HasPrefix(r.id, name) }
}

// since holds for requests from now on.
func (s *site) since() func(r request) bool {
	from := time.Since(s.start)
	return func(r request) bool { return r.at >= from }
}

// ended returns those that have ended, for which a function holds.
func (s *site) ended(is func(e outbox.End) bool) (found []outbox.End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		if is(e) {
			found = append(found, e)
		}
	}
	return found
}

func isDelivered(e outbox.End) bool { return e.State == outbox.Delivered }

// deliveries returns how many were delivered.
func (s *site) deliveries() int { return len(s.ended(isDelivered)) }

// await waits until something holds, and returns how long that took.
func (s *site) await(what string, within time.Duration, holds func() bool) time.Duration {
	s.t.Helper()
	for start := time.Now(); ; time.Sleep(max(5*time.Millisecond, min(time.Since(start)/50, 100*time.Millisecond))) {
		switch took := time.Since(start); {
		case holds():
			return took
		case took > within:
			s.t.Fatalf("%s: not within %v: %d requests, %d ended, %d wait", what, within, s.count(every), len(s.ended(func(outbox.End) bool { return true })), s.waiting())
		}
	}
}

// awaitRequests waits until n requests have arrived for which a function holds.
func (s *site) awaitRequests(n int, within time.Duration, is func(r request) bool) time.Duration {
	s.t.Helper()
	return s.await(fmt.Sprint(n, " requests"), within, func() bool { return s.count(is) >= n })
}

// awaitEnds waits until n notifications have ended.
func (s *site) awaitEnds(n int, within time.Duration) time.Duration {
	s.t.Helper()
	return s.await(fmt.Sprint(n, " ends"), within, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.ends) >= n
	})
}

// took returns how long notifications took to arrive that were enqueued at a time, sorted.
func (s *site) took(sent map[string]time.Duration) (took []time.Duration) {
	for _, r := range s.all(func(r request) bool { _, ok := sent[r.id]; return ok && r.nth == 1 }) {
		took = append(took, r.at-sent[r.id])
	}
	slices.Sort(took)
	return took
}

// waiting returns how many notifications wait.
func (s *site) waiting() (n int) {
	s.t.Helper()
	if err := s.db.QueryRow(`SELECT COUNT(*) FROM wh_outbox_message WHERE state = 0`).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// exec changes what's in the tables.
func (s *site) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(query, args...); err != nil {
		s.t.Fatal(err)
	}
}

// lookups is a resolver that calls a function first. The entity is "" for the base.
type lookups struct {
	*store.Memory
	before func(ctx context.Context, client, entity string) error
}

// Resolve implements [deliver.Resolver].
func (l lookups) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if err := l.before(ctx, client, entity); err != nil {
		return webhookcfg.Webhook{}, err
	}
	return l.Memory.Resolve(ctx, client, entity)
}

// List implements [webhookcfg.Lister].
func (l lookups) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if err := l.before(ctx, client, ""); err != nil {
		return webhookcfg.Page{}, err
	}
	return l.Memory.List(ctx, client, after, limit)
}

// loads are keys that call a function first.
type loads struct {
	others deliver.Keys
	before func(ctx context.Context, to deliver.Recipient) error
}

func (l loads) Keys(ctx context.Context, to deliver.Recipient) ([]deliver.Key, error) {
	if err := l.before(ctx, to); err != nil {
		return nil, err
	}
	return l.others.Keys(ctx, to)
}

var errFault = errors.New("a fault")

// journal is a log that can be read while it's written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// take returns what was logged since the last call.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.b.Reset()
	return j.b.String()
}
