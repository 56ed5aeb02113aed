package admin

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
)

// Difference is a webhook that differs between two stores.
type Difference struct {
	// Client is the owner of the webhook.
	Client string
	// Scope is All for the base, else the entity of an override.
	Scope webhookcfg.Scope
	// Want is the webhook in the source, and Got the webhook in the other store. If one of
	// them has no webhook there, its source is SourceNone.
	Want, Got webhookcfg.Webhook
	// Err says why the destination of a [Copy] refused the change. It wraps
	// [webhookcfg.ErrInvalidArgument]. [Verify] leaves it nil.
	Err error
}

// String returns d in one line, with the names quoted. It shows URLs up to the port only, and
// calls the base the default, as people do.
func (d Difference) String() string {
	text := fmt.Sprintf("%q, %s: want %s, got %s", d.Client, quoted(d.Scope), describe(d.Want), describe(d.Got))
	if d.Err != nil {
		text += ": " + d.Err.Error()
	}
	return text
}

// quoted names the webhook of a scope. A terminal or a log can't mistake the entity for anything
// else.
func quoted(scope webhookcfg.Scope) string {
	if scope.IsAll() {
		return people(webhookcfg.SourceBase)
	}
	return "entity " + strconv.Quote(scope.Entity())
}

// people returns the word that people use for a source.
func people(source webhookcfg.Source) string {
	if source == webhookcfg.SourceBase {
		return "default"
	}
	return source.String()
}

func describe(w webhookcfg.Webhook) string {
	var b strings.Builder
	b.WriteString(people(w.Source))
	if !w.URL.IsZero() {
		b.WriteString(" " + w.URL.String())
	}
	if w.Source != webhookcfg.SourceNone {
		b.WriteString(" since " + w.Since.UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	return b.String()
}

// differences yields the differences of one client, the base first, without the client's
// name. It adds the number of the client's webhooks in want to total.
func differences(ctx context.Context, want, got *walk, total *int) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		if want.base.Source != webhookcfg.SourceNone {
			*total++
		}
		if !same(want.base, got.base) && !yield(Difference{Scope: webhookcfg.All(), Want: want.base, Got: got.base}, nil) {
			return
		}
		for len(want.next) > 0 || len(got.next) > 0 {
			var d Difference
			var err error
			if isFirst(want, got) {
				d.Scope, d.Want = webhookcfg.Entity(want.next[0].Entity), want.next[0].Webhook
			}
			if isFirst(got, want) {
				d.Scope, d.Got = webhookcfg.Entity(got.next[0].Entity), got.next[0].Webhook
			}
			if d.Want.Source != webhookcfg.SourceNone {
				*total++
				err = want.skip(ctx)
			}
			if err == nil && d.Got.Source != webhookcfg.SourceNone {
				err = got.skip(ctx)
			}
			if !same(d.Want, d.Got) && !yield(d, nil) {
				return
			}
			if err != nil {
				yield(Difference{}, err)
				return
			}
		}
	}
}

// isFirst reports whether no override of b comes before the first override of a.
func isFirst(a, b *walk) bool {
	return len(a.next) > 0 && (len(b.next) == 0 || a.next[0].Entity <= b.next[0].Entity)
}

// same compares times to the microsecond, because not every store keeps more.
func same(a, b webhookcfg.Webhook) bool {
	return a.Source == b.Source && a.URL.Equal(b.URL) && a.Since.UnixMicro() == b.Since.UnixMicro()
}
