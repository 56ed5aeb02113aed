package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestNew(t *testing.T) {
	keys := keyring{deliver.GenerateKey()}
	for name, err := range map[string]error{
		"no resolver": func() error { _, err := deliver.New(nil, keys, nil); return err }(),
		"no keys":     func() error { _, err := deliver.New(store.NewMemory(), nil, nil); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, opts := range map[string]deliver.Options{
		"timeout":    {Timeout: -1},
		"too long":   {Timeout: 30*time.Second + 1},
		"pause":      {MaxPause: -1},
		"user agent": {UserAgent: "a\r\nX: y"},
		"blank":      {UserAgent: "a "},
		"transport":  {Transport: egress.TransportOptions{MaxIdleConns: -1}},
		"client":     {PerClient: -1},
		"receiver":   {PerHost: -1},
		"pool":       {Transport: egress.TransportOptions{MaxIdleConns: -1}},
		"policy":     {Policy: &egress.Policy{Ports: []uint16{0}}},
	} {
		if _, err := deliver.New(store.NewMemory(), keys, &opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, opts := range []*deliver.Options{nil, {Timeout: 30 * time.Second}} {
		if _, err := deliver.New(store.NewMemory(), keys, opts); err != nil {
			t.Error(err)
		}
	}
}

// TestStrictByDefault: without a policy, receivers on this machine are not called.
func TestStrictByDefault(t *testing.T) {
	r := newReceiver(t, true, status(200))
	s, err := deliver.New(configured(t, r.URL+secretPath), keyring{deliver.GenerateKey()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result := s.Send(t.Context(), "acme", "e1", message)
	check(t, "loopback", result, deliver.Undeliverable, deliver.ReasonPolicy)
	if !errors.Is(result.Err, egress.ErrNotPublic) || r.connections() > 0 {
		t.Errorf("error %v, %d connections", result.Err, r.connections())
	}
}

// TestRequest: a request has the fields of Standard Webhooks, and no others but those of
// HTTP.
func TestRequest(t *testing.T) {
	for _, tls := range []bool{false, true} {
		r := newReceiver(t, tls, status(204))
		key := deliver.GenerateKey()
		s := newSender(t, configured(t, r.URL+secretPath), keyring{key}, &deliver.Options{Policy: policy(r)})
		typed := message
		typed.ContentType = "text/plain; charset=utf-8"
		before := time.Now().Unix()
		check(t, "json", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		check(t, "text", s.Send(t.Context(), "acme", "e1", typed), deliver.Delivered, "")
		after := time.Now().Unix()
		got := r.received()
		if len(got) != 2 {
			t.Fatalf("%d requests", len(got))
		}
		for i, contentType := range []string{"application/json", typed.ContentType} {
			g := got[i]
			if g.method != http.MethodPost || g.target != secretPath || string(g.body) != string(message.Body) {
				t.Errorf("%s %s %q", g.method, g.target, g.body)
			}
			timestamp := g.header.Get("Webhook-Timestamp")
			if at, err := strconv.ParseInt(timestamp, 10, 64); err != nil || at < before || at > after {
				t.Errorf("timestamp %q is not between %d and %d", timestamp, before, after)
			}
			want := http.Header{
				"Content-Length":    {strconv.Itoa(len(message.Body))},
				"Content-Type":      {contentType},
				"User-Agent":        {"go-webhookcfg"},
				"Webhook-Id":        {"msg_1"},
				"Webhook-Timestamp": {timestamp},
				"Webhook-Signature": {deliver.Signatures("msg_1", timestamp, message.Body, []deliver.Key{key})},
			}
			if !maps.EqualFunc(g.header, want, slices.Equal) {
				t.Errorf("header %v, want %v", g.header, want)
			}
		}
	}
}

// TestRetry: a message that's sent again has the same ID and body, and a timestamp and a
// signature of the new attempt.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{respond: func(int) string { return "500 Internal Server Error\r\n" }}
		s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
		start := time.Now()
		s.Send(t.Context(), "acme", "e1", message)
		time.Sleep(5 * time.Second)
		s.Send(t.Context(), "acme", "e1", message)
		s.CloseIdleConnections()
		first, second := in.requests[0].Header, in.requests[1].Header
		if id := first.Get("Webhook-Id"); id != message.ID || second.Get("Webhook-Id") != id || in.bodies[0] != in.bodies[1] {
			t.Errorf("sent %v %s, and then %v %s", first, in.bodies[0], second, in.bodies[1])
		}
		for at, header := range map[time.Time]http.Header{start: first, start.Add(5 * time.Second): second} {
			if got := header.Get("Webhook-Timestamp"); got != strconv.FormatInt(at.Unix(), 10) {
				t.Errorf("timestamp %s at %d", got, at.Unix())
			}
		}
		if first.Get("Webhook-Signature") == second.Get("Webhook-Signature") {
			t.Error("both have the same signature")
		}
	})
}

func TestUserAgent(t *testing.T) {
	r := newReceiver(t, false, status(200))
	s := newSender(t, configured(t, r.URL), keyring{deliver.GenerateKey()}, &deliver.Options{UserAgent: "acme-notify/2 (+https://example.com)"})
	s.Send(t.Context(), "acme", "e1", message)
	if got := r.received()[0].header.Get("User-Agent"); got != "acme-notify/2 (+https://example.com)" {
		t.Errorf("user agent %q", got)
	}
}

func TestNoWebhook(t *testing.T) {
	s := newSender(t, store.NewMemory(), keyring{}, nil)
	check(t, "none", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonNoWebhook)

	st := configured(t, "http://127.0.0.1:1/")
	if err := st.Apply(t.Context(), webhookcfg.UnsetChange("acme", webhookcfg.Entity("e1"))); err != nil {
		t.Fatal(err)
	}
	result := newSender(t, st, keyring{}, nil).Send(t.Context(), "acme", "e1", message)
	check(t, "off", result, deliver.Undeliverable, deliver.ReasonOff)
	if result.Webhook.Source != webhookcfg.SourceOff {
		t.Errorf("source %v", result.Webhook.Source)
	}
}

// TestRefusedMessage: of an invalid message nothing is looked up and nothing sent.
func TestRefusedMessage(t *testing.T) {
	r := newReceiver(t, false, status(200))
	resolved := 0
	counting := resolver(func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
		resolved++
		return configured(t, r.URL).Resolve(ctx, client, entity)
	})
	s := newSender(t, counting, keyring{deliver.GenerateKey()}, nil)
	for _, m := range []deliver.Message{{}, {ID: "a.b"}, {ID: "a", ContentType: "text/plain\r\nX: y"}} {
		result := s.Send(t.Context(), "acme", "e1", m)
		check(t, fmt.Sprintf("%q", m.ID), result, deliver.Undeliverable, deliver.ReasonMessage)
	}
	check(t, "no client", s.Send(t.Context(), "", "e1", message), deliver.Undeliverable, deliver.ReasonMessage)
	check(t, "no entity", s.Send(t.Context(), "acme", "", message), deliver.Undeliverable, deliver.ReasonMessage)
	if resolved > 0 || r.connections() > 0 {
		t.Errorf("%d lookups, %d connections", resolved, r.connections())
	}
}

// TestInvalidName: a message is refused if the store does not accept the name of its client
// or entity, such as one that is too long. Deferred, it would come back for ever.
func TestInvalidName(t *testing.T) {
	webhooks := resolver(func(context.Context, string, string) (webhookcfg.Webhook, error) {
		return webhookcfg.Webhook{}, fmt.Errorf("store: %w", webhookcfg.ErrInvalidArgument)
	})
	s := newSender(t, webhooks, keyring{deliver.GenerateKey()}, nil)
	check(t, "invalid name", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonMessage)
}

// resolver is a function that is a Resolver.
type resolver func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)

func (r resolver) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	return r(ctx, client, entity)
}

// keysFunc is a function that is Keys.
type keysFunc func(ctx context.Context, to deliver.Recipient) ([]deliver.Key, error)

func (k keysFunc) Keys(ctx context.Context, to deliver.Recipient) ([]deliver.Key, error) {
	return k(ctx, to)
}

// TestUnavailable: what the host cannot provide is no failure of the receiver, and nothing
// is sent unsigned.
func TestUnavailable(t *testing.T) {
	r := newReceiver(t, false, status(200))
	st, key, errHost := configured(t, r.URL+secretPath), deliver.GenerateKey(), errors.New("database is down")
	broken := resolver(func(context.Context, string, string) (webhookcfg.Webhook, error) {
		return webhookcfg.Webhook{}, errHost
	})
	result := newSender(t, broken, keyring{key}, nil).Send(t.Context(), "acme", "e1", message)
	check(t, "store", result, deliver.Deferred, deliver.ReasonUnavailable)
	if !errors.Is(result.Err, errHost) || result.Wait < time.Second {
		t.Errorf("error %v, wait %v", result.Err, result.Wait)
	}
	for name, keys := range map[string]deliver.Keys{
		"error":        keysFunc(func(context.Context, deliver.Recipient) ([]deliver.Key, error) { return []deliver.Key{key}, errHost }),
		"none":         keyring{},
		"zero":         keyring{{}},
		"second zero":  keyring{key, {}},
		"fourth zero ": keyring{key, key, key, {}},
		"five":         keyring{key, key, key, key, key},
	} {
		result := newSender(t, st, keys, nil).Send(t.Context(), "acme", "e1", message)
		check(t, name, result, deliver.Deferred, deliver.ReasonUnavailable)
		if result.Wait < time.Second || result.Webhook.URL.IsZero() {
			t.Errorf("%s: wait %v, webhook %v", name, result.Wait, result.Webhook)
		}
	}
	if r.connections() > 0 {
		t.Errorf("%d connections without a signature", r.connections())
	}
}

// TestRotation: during a rotation, receivers with the old key and with the new one verify
// every message.
func TestRotation(t *testing.T) {
	r := newReceiver(t, false, status(200))
	st := configured(t, r.URL)
	before, after := deliver.GenerateKey(), deliver.GenerateKey()
	verified := func(keys ...deliver.Key) (byOld, byNew bool) {
		t.Helper()
		check(t, "send", newSender(t, st, keyring(keys), nil).Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		got := r.received()
		last := got[len(got)-1]
		return verify(last, before), verify(last, after)
	}
	if byOld, byNew := verified(before); !byOld || byNew {
		t.Errorf("the old key alone: %v, %v", byOld, byNew)
	}
	if byOld, byNew := verified(after, before); !byOld || !byNew {
		t.Errorf("both keys: %v, %v", byOld, byNew)
	}
	if byOld, byNew := verified(after); byOld || !byNew {
		t.Errorf("the new key alone: %v, %v", byOld, byNew)
	}
	other := deliver.GenerateKey()
	if byOld, byNew := verified(other, other, after, before); !byOld || !byNew {
		t.Errorf("the third and the fourth key: %v, %v", byNew, byOld)
	}
}

// verify reports whether a request has a signature with the key.
func verify(r request, key deliver.Key) bool {
	h := r.header
	want := deliver.Signatures(h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), r.body, []deliver.Key{key})
	return slices.Contains(strings.Split(h.Get("Webhook-Signature"), " "), want)
}

// TestSenderIsHidden: no print of a sender shows a key or a URL, even if the host's own
// types are values that contain them.
func TestSenderIsHidden(t *testing.T) {
	master := []byte("a master of thirty-two bytes, at least")
	derived, err := deliver.DerivedKeys(master)
	if err != nil {
		t.Fatal(err)
	}
	hook := webhookcfg.Webhook{URL: egress.NewURL("https://example.com" + secretPath)}
	for _, keys := range []deliver.Keys{derived, keyring{mustParse(t, vectorKey)}} {
		s := newSender(t, oneWebhook{hook}, keys, nil)
		checkHidden(t, s, string(master), vectorKey, "t0ken", "s3cret")
	}
}

// oneWebhook is the webhook of every entity.
type oneWebhook struct{ hook webhookcfg.Webhook }

func (o oneWebhook) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return o.hook, nil
}

func TestOnResult(t *testing.T) {
	r := newReceiver(t, false, status(500))
	var got []string
	s := newSender(t, configured(t, r.URL), keyring{deliver.GenerateKey()}, &deliver.Options{
		OnResult: func(_ context.Context, client, entity, id string, r deliver.Result) {
			got = append(got, fmt.Sprint(client, " ", entity, " ", id, " ", r.Outcome, " ", r.Reason, " ", r.Status))
		},
	})
	s.Send(t.Context(), "acme", "e1", message)
	s.Send(t.Context(), "globex", "e2", message)
	s.Send(t.Context(), "acme", "e3", deliver.Message{ID: "."})
	if want := []string{"acme e1 msg_1 failed status 500", "globex e2 msg_1 undeliverable no_webhook 0", "acme e3 . undeliverable message 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestResolverQuotesURL: a Resolver that fails can quote any URL. The result shows none of them
// in full.
func TestResolverQuotesURL(t *testing.T) {
	for cause, reason := range map[error]deliver.Reason{errPanic: deliver.ReasonUnavailable, webhookcfg.ErrInvalidArgument: deliver.ReasonMessage} {
		failing := resolver(func(context.Context, string, string) (webhookcfg.Webhook, error) {
			return webhookcfg.Webhook{}, fmt.Errorf("row with https://hooks.example.com%s: %w", secretPath, cause)
		})
		r := newSender(t, failing, keyring{deliver.GenerateKey()}, nil).Send(t.Context(), "acme", "e1", message)
		if r.Reason != reason || !errors.Is(r.Err, cause) || !strings.Contains(r.Err.Error(), "row with https://hooks.example.com/[path]") {
			t.Errorf("%v: %v", cause, r.Err)
		}
		checkHidden(t, r, "t0ken", "s3cret")
	}
}
