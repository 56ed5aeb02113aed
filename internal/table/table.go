// Package table is the configuration of all clients in memory, and the rules by
// which a change turns one state into the next.
//
// It does no I/O, reads no clock and takes no lock. No call does work in proportion
// to the size of the table: Go maps grow by at most a thousand slots at a time, the
// order of their keys by a span, and the overrides that a change of all entities
// drops are left to the garbage collector.
package table

import (
	"iter"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Table is the configuration of every client. The zero value is an empty table.
//
// A table must not be used while it is changed, but may be read by any number of
// goroutines at once. It keeps none of the strings that are passed in, only URLs.
type Table struct {
	clients ordered[*client]
	records int
	bytes   int64
	urls    urlInterner // nil while the table is small
}

// Apply makes a change, which must be valid: see [webhookcfg.Change.Validate]. It keeps the
// microseconds of the change's time.
func (t *Table) Apply(change webhookcfg.Change) {
	c := t.clients.values[change.Client]
	if c == nil {
		if change.URL.IsZero() {
			return // nothing is set that could be unset
		}
		c = new(client)
		t.clients.set(change.Client, c)
	}
	change.URL = t.intern(change.URL)
	records, bytes := c.records(), c.bytes
	c.apply(change)
	t.records += c.records() - records
	t.bytes += c.bytes - bytes
	switch {
	case t.records == 0:
		*t = Table{}
	case c.records() == 0:
		t.clients.delete(change.Client)
	}
}

// minInterned is the number of records from which on equal URLs share memory.
const minInterned = 1024

func (t *Table) intern(u egress.URL) egress.URL {
	if u.IsZero() || t.records < minInterned {
		return u
	}
	if t.urls == nil {
		t.urls = make(urlInterner)
	}
	return t.urls.intern(u)
}

// maxInterned is the most URLs that an urlInterner remembers.
const maxInterned = 4096

// urlInterner remembers URLs that were set recently, so that equal ones share memory.
// When it is full it starts again from scratch, which costs memory only: a forgotten
// URL is stored once more. It is bounded because a table may hold millions of URLs
// that are all different; package unique, which remembers each of them, takes four
// times as long to fill such a table and twice the memory.
type urlInterner map[string]egress.URL

// intern returns a URL equal to u, an earlier one if that is remembered.
func (in urlInterner) intern(u egress.URL) egress.URL {
	if known, ok := in[u.Reveal()]; ok {
		return known
	}
	if len(in) == maxInterned {
		clear(in)
	}
	in[u.Reveal()] = u
	return u
}

// Resolve returns the webhook that is in effect for an entity of a client.
func (t *Table) Resolve(client, entity string) webhookcfg.Webhook {
	c := t.clients.values[client]
	if c == nil {
		return webhookcfg.Webhook{}
	}
	return c.resolve(entity)
}

// Page returns the first limit overrides of a client whose entities come after
// the given one, as specified in [webhookcfg.Lister]. The limit is at least 1.
func (t *Table) Page(client, after string, limit int) webhookcfg.Page {
	c := t.clients.values[client]
	if c == nil {
		return webhookcfg.Page{}
	}
	return c.page(after, limit)
}

// Clients walks the names after the given one, in byte order, of the clients for
// which anything is set. The table must not change during the walk; to let changes
// in, end it and start another after the last name.
func (t *Table) Clients(after string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range t.clients.after(after) {
			if !yield(name) {
				return
			}
		}
	}
}

// Len returns the number of records, bases and overrides together: the number of
// changes that it takes to make such a table.
func (t *Table) Len() int { return t.records }

// Bytes returns the sum of the lengths of the names and URLs of these changes.
func (t *Table) Bytes() int64 { return t.bytes }
