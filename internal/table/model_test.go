package table_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// model is the state of one client in plain maps.
type model struct {
	base      webhookcfg.Webhook
	overrides map[string]webhookcfg.Webhook
}

func (m *model) apply(c webhookcfg.Change) {
	hook := webhookcfg.Webhook{URL: c.URL, Since: c.Time}
	switch {
	case c.Scope.IsAll():
		*m = model{}
		if !c.URL.IsZero() {
			hook.Source = webhookcfg.SourceBase
			m.base = hook
		}
		return
	case m.overrides == nil:
		m.overrides = map[string]webhookcfg.Webhook{}
	}
	switch {
	case !c.URL.IsZero():
		hook.Source = webhookcfg.SourceOverride
	case m.base.Source == webhookcfg.SourceBase:
		hook.Source = webhookcfg.SourceOff
	default:
		delete(m.overrides, c.Scope.Entity())
		return
	}
	m.overrides[c.Scope.Entity()] = hook
}

func (m *model) resolve(entity string) webhookcfg.Webhook {
	if hook, ok := m.overrides[entity]; ok {
		return hook
	}
	return m.base
}

func (m *model) page(after string, limit int) webhookcfg.Page {
	page := webhookcfg.Page{Base: m.base}
	for _, entity := range slices.Sorted(maps.Keys(m.overrides)) {
		if entity <= after {
			continue
		}
		if len(page.Overrides) == limit {
			page.Next = page.Overrides[limit-1].Entity
			break
		}
		page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: entity, Webhook: m.overrides[entity]})
	}
	return page
}

func (m *model) records() int {
	n := len(m.overrides)
	if m.base.Source == webhookcfg.SourceBase {
		n++
	}
	return n
}

// bytes returns the length of the names and URLs of the records.
func (m *model) bytes(client string) (n int64) {
	if m.base.Source == webhookcfg.SourceBase {
		n += int64(len(client) + len(m.base.URL.Reveal()))
	}
	for entity, hook := range m.overrides {
		n += int64(len(client) + len(entity) + len(hook.URL.Reveal()))
	}
	return n
}

// same reports where a table and the models differ.
func same(t *table.Table, models map[string]*model, entities []string) error {
	records, bytes := 0, int64(0)
	for client, m := range models {
		records += m.records()
		bytes += m.bytes(client)
		for _, entity := range entities {
			if got, want := t.Resolve(client, entity), m.resolve(entity); !sameWebhook(got, want) {
				return fmt.Errorf("resolve %s %s: got %v, want %v", client, entity, got, want)
			}
		}
	}
	if t.Len() != records {
		return fmt.Errorf("%d records, want %d", t.Len(), records)
	}
	if t.Bytes() != bytes {
		return fmt.Errorf("%d bytes, want %d", t.Bytes(), bytes)
	}
	return nil
}

// sameWebhook and samePage do the work of cmp.Equal in a hundredth of the time.
func sameWebhook(x, y webhookcfg.Webhook) bool {
	return x.Source == y.Source && x.Since.Equal(y.Since) && x.URL.Equal(y.URL)
}

func samePage(x, y webhookcfg.Page) bool {
	return sameWebhook(x.Base, y.Base) && x.Next == y.Next &&
		slices.EqualFunc(x.Overrides, y.Overrides, func(x, y webhookcfg.Override) bool {
			return x.Entity == y.Entity && sameWebhook(x.Webhook, y.Webhook)
		})
}

// samePages walks the listing of every client in pages.
func samePages(t *table.Table, models map[string]*model, limit int) error {
	for client, m := range models {
		for after := ""; ; {
			got, want := t.Page(client, after, limit), m.page(after, limit)
			if !samePage(got, want) {
				return fmt.Errorf("page of %s after %q: -want +got:\n%s", client, after, cmp.Diff(want, got))
			}
			if after = got.Next; after == "" {
				break
			}
		}
	}
	return nil
}

// TestEveryHistory runs every history of up to six changes of two entities, and compares
// what is in effect and what is listed after each with the model.
func TestEveryHistory(t *testing.T) {
	u, v := egress.NewURL("https://u.example.com/"), egress.NewURL("https://v.example.com/")
	one, two := webhookcfg.Entity("e1"), webhookcfg.Entity("e2")
	changes := []webhookcfg.Change{
		webhookcfg.SetChange("c", one, u), webhookcfg.SetChange("c", two, v), webhookcfg.SetChange("c", webhookcfg.All(), v),
		webhookcfg.UnsetChange("c", one), webhookcfg.UnsetChange("c", two), webhookcfg.UnsetChange("c", webhookcfg.All()),
	}
	histories := 0
	var extend func(history []webhookcfg.Change)
	extend = func(history []webhookcfg.Change) {
		var tb table.Table
		m := new(model)
		for _, c := range history {
			tb.Apply(c)
			m.apply(c)
		}
		histories++
		models := map[string]*model{"c": m, "unknown": {}}
		if err := same(&tb, models, []string{"e1", "e2", "e3"}); err != nil {
			t.Fatalf("after %v: %v", history, err)
		}
		if err := samePages(&tb, models, 1); err != nil {
			t.Fatalf("after %v: %v", history, err)
		}
		if len(history) == 6 {
			return
		}
		for i, c := range changes {
			c.Time = time.UnixMicro(int64(1000*len(history) + i)).UTC()
			extend(append(history[:len(history):len(history)], c))
		}
	}
	extend(nil)
	t.Logf("%d histories", histories)
}

// names are identifiers that a careless comparison would confuse.
func names(r *rand.Rand, n int) []string {
	long := strings.Repeat("x", 127)
	all := []string{"a", "A", "aa", "a.", "a b", "a\x00", "ä", "\U0001F600", long, long + "1", long + "2"}
	for i := range n {
		switch i % 4 {
		case 0:
			all = append(all, fmt.Sprintf("endpoint-%06d", i))
		case 1:
			all = append(all, fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()))
		case 2:
			all = append(all, fmt.Sprint(i))
		default:
			all = append(all, strings.Repeat("p", i%100)+fmt.Sprint(i))
		}
	}
	return all
}

// TestLongHistories fills and empties clients by the thousand, so that spans
// split and join.
func TestLongHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	entities := names(r, 6000)
	clients := []string{"c1", "c2", "c\x00", strings.Repeat("c", 300)}
	var tb table.Table
	models := map[string]*model{}
	for _, client := range clients {
		models[client] = new(model)
	}
	random := func(unsets int) webhookcfg.Change {
		client := clients[min(r.IntN(8), 3)]
		scope := webhookcfg.Entity(entities[r.IntN(len(entities))])
		if r.IntN(4000) == 0 {
			scope = webhookcfg.All()
		}
		c := webhookcfg.SetChange(client, scope, egress.NewURL(fmt.Sprintf("https://h.example.com/%d", r.IntN(3000))))
		if r.IntN(100) < unsets {
			c = webhookcfg.UnsetChange(client, scope)
		}
		c.Time = time.UnixMicro(r.Int64N(1 << 53)).UTC()
		return c
	}
	for phase, unsets := range []int{10, 95, 30, 98, 50, 100} {
		for range 20_000 {
			c := random(unsets)
			tb.Apply(c)
			models[c.Client].apply(c)
		}
		if err := same(&tb, models, entities); err != nil {
			t.Fatalf("phase %d: %v", phase, err)
		}
		for _, limit := range []int{100, 1000, 100_000} {
			if err := samePages(&tb, models, limit); err != nil {
				t.Fatalf("phase %d: %v", phase, err)
			}
		}
		var want []string
		for client, m := range models {
			if m.records() > 0 {
				want = append(want, client)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Collect(tb.Clients(""))); diff != "" {
			t.Fatalf("phase %d: clients: -want +got:\n%s", phase, diff)
		}
	}
	for _, client := range clients {
		tb.Apply(webhookcfg.UnsetChange(client, webhookcfg.All()))
	}
	if tb.Len() != 0 || tb.Resolve("c1", "a").Source != webhookcfg.SourceNone {
		t.Errorf("%d records are left", tb.Len())
	}
}

// TestManyClients walks the clients, and starts again after every 97th.
func TestManyClients(t *testing.T) {
	var tb table.Table
	var want []string
	for i := range 5000 {
		client := fmt.Sprintf("client-%04d", (i*7919)%5000)
		want = append(want, client)
		tb.Apply(webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://h.example.com/")))
	}
	slices.Sort(want)
	var got []string
	for after, more := "", true; more; {
		more = false
		for client := range tb.Clients(after) {
			if len(got)%97 == 96 && after != got[len(got)-1] {
				after, more = got[len(got)-1], true
				break
			}
			got = append(got, client)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTimes: times are kept in microseconds, and the zero time stays zero.
func TestTimes(t *testing.T) {
	for _, tt := range []struct{ given, want time.Time }{
		{time.Time{}, time.Time{}},
		{time.Unix(1767323045, 1999), time.Unix(1767323045, 1000)},
		{time.Date(2200, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)), time.Date(2199, 12, 31, 23, 0, 0, 0, time.UTC)},
	} {
		var tb table.Table
		c := webhookcfg.SetChange("c", webhookcfg.Entity("e"), egress.NewURL("https://h.example.com/"))
		c.Time = tt.given
		tb.Apply(c)
		if got := tb.Resolve("c", "e").Since; !got.Equal(tt.want) || got.Location() != time.UTC || got.IsZero() != tt.given.IsZero() {
			t.Errorf("%v became %v", tt.given, got)
		}
	}
}

// FuzzTable derives changes from bytes, and compares a table with the model.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07"))
	f.Add([]byte{0, 1, 2, 128, 64, 3, 200, 201, 7, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var tb table.Table
		m := new(model)
		entities := []string{"a", "b", "aa", "ab", "b\x00", strings.Repeat("z", 200)}
		for i, b := range data {
			scope := webhookcfg.All()
			if e := int(b & 7); e < len(entities) {
				scope = webhookcfg.Entity(entities[e])
			}
			c := webhookcfg.UnsetChange("c", scope)
			if b&0x80 != 0 {
				c = webhookcfg.SetChange("c", scope, egress.NewURL(fmt.Sprintf("https://h.example.com/%d", b>>3&15)))
			}
			c.Time = time.Unix(int64(i), 0).UTC()
			tb.Apply(c)
			m.apply(c)
		}
		models := map[string]*model{"c": m}
		if err := same(&tb, models, entities); err != nil {
			t.Fatal(err)
		}
		if err := samePages(&tb, models, 2); err != nil {
			t.Fatal(err)
		}
	})
}
