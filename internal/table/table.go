// Package table holds the configuration of all clients in memory, and applies changes to it.
//
// It does no I/O, reads no clock and takes no lock. No call takes time in proportion to the
// size of the table. Go maps grow by at most a thousand slots at a time, and the order of the
// keys by a span. If a change of all entities drops overrides, the garbage collector cleans
// them up.
package table

import (
	"iter"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Table is the configuration of every client. The zero value is an empty table.
//
// Any number of goroutines can read a table at once, but none while you change it. The table
// copies the names that it needs. It keeps the URLs that you pass.
type Table struct {
	clients ordered[*client]
	records int
	bytes   int64
	urls    urlInterner // nil while the table is small
}

// Apply makes a change. The change must be valid, see [webhookcfg.Change.Validate]. The table
// keeps its time in microseconds.
func (t *Table) Apply(change webhookcfg.Change) {
	c := t.clients.values[change.Client]
	if c == nil {
		if change.URL.IsZero() {
			return // there's nothing to unset
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

// From minInterned records on, equal URLs share memory.
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

// maxInterned is how many URLs an urlInterner can remember.
const maxInterned = 4096

// urlInterner remembers recent URLs, so that equal ones share memory. When it's full, it
// starts again from scratch. That only costs memory, because a forgotten URL is stored once
// more. It's bounded because a table can hold millions of different URLs. Package unique
// would remember all of them. It takes four times as long to fill such a table, and twice the
// memory.
type urlInterner map[string]egress.URL

// intern returns a URL that equals u. If it remembers an earlier one, it returns that.
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

// Resolve returns the webhook in effect for a client's entity.
func (t *Table) Resolve(client, entity string) webhookcfg.Webhook {
	c := t.clients.values[client]
	if c == nil {
		return webhookcfg.Webhook{}
	}
	return c.resolve(entity)
}

// Page returns a client's first limit overrides with entities after the given one. See
// [webhookcfg.Lister]. The limit must be at least 1.
func (t *Table) Page(client, after string, limit int) webhookcfg.Page {
	c := t.clients.values[client]
	if c == nil {
		return webhookcfg.Page{}
	}
	return c.page(after, limit)
}

// Clients walks the names of all clients that have anything set, in byte order, starting
// after the given name. Don't change the table during the walk. If you want to let changes
// in, end it and start another one after the last name.
func (t *Table) Clients(after string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range t.clients.after(after) {
			if !yield(name) {
				return
			}
		}
	}
}

// Len counts the bases and overrides. It's also the number of changes that you'd need to make
// this table.
func (t *Table) Len() int { return t.records }

// Bytes returns the total length of the names and URLs in these changes.
func (t *Table) Bytes() int64 { return t.bytes }
