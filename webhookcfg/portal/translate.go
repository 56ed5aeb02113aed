package portal

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// Texts returns the English texts by their keys, for [Options.Text]. When you translate a
// text, keep its verbs, such as %d. You can change their order with an index, as in %[1]d.
func Texts() map[string]string { return maps.Clone(texts) }

// format fills in the verbs of a text. Without arguments, the text isn't a format.
func format(text string, args []any) string {
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// texts are those of all pages.
var texts = merged(textsOfPages)

// textsOfPages stand next to the pages. No two have the same key.
var textsOfPages = []map[string]string{
	frameTexts,
	gateTexts,
	sessionTexts,
	overviewTexts,
	entityTexts,
	allTexts,
	testTexts,
	webhookTexts,
	deliveriesTexts,
	keyTexts,
	sampleTexts,
	notificationsTexts,
	notificationTexts,
	againTexts,
	problemTexts,
}

func merged(groups []map[string]string) map[string]string {
	all := make(map[string]string)
	for _, group := range groups {
		maps.Copy(all, group)
	}
	return all
}

// words are the texts of a page, in the language of its person.
type words struct {
	*host
	text      func(r *http.Request, key string) string // Options.Text
	isEnglish bool                                     // since the host's function has failed
}

// T returns a text in the person's language.
func (w *words) T(key string, args ...any) string { return format(w.translated(key, texts[key]), args) }

// translated returns the host's text, or the English one. If the host's function fails once,
// the rest of the page is English, and so is what comes after the time for the page is over.
func (w *words) translated(key, english string) string {
	text := ""
	if w.text != nil && !w.isEnglish && w.r.Context().Err() == nil {
		w.isEnglish = w.call("Options.Text", func() error {
			text = w.text(w.r, key)
			return nil
		}) != nil
	}
	return cmp.Or(text, english)
}

// Second is like Time, with seconds.
func (*words) Second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Upcoming is Second for an attempt that's still to come. One that's due waits for others.
func (w *words) Upcoming(due time.Time) string {
	if due.Before(time.Now()) {
		return w.T("sent.turn")
	}
	return w.Second(due)
}

// Time formats a time so that people can read it in any language.
func (*words) Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
