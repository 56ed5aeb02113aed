package portal

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
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

var texts = map[string]string{
	"lang":          "en",
	"title":         "Webhooks",
	"back":          "All webhooks",
	"signed-in":     "Signed in as",
	"signed-in.for": "for",
	"sign-out":      "Sign out",
	"url":           "URL",
	"since":         "Since",
	"deliveries":    "Deliveries",
	"hidden":        "the rest is hidden",
	"show":          "Show the full URL",
	"hide":          "Hide it",
	"never":         "never",
	"success":       "Last success:",
	"failure":       "Last failure:",
	"set":           "Set webhook",
	"hint":          "Starts with https://. It's checked before it replaces the present one.",
	"hint.http":     "Starts with https:// or http://. It's checked before it replaces the present one.",

	"base.title":  "Default",
	"base.what":   "Where notifications go for every entity that has no setting of its own.",
	"base.none":   "There is no default. Entities without a setting of their own get no notifications.",
	"base.change": "Change",
	"base.set":    "Set a default",

	"list.title":  "Entities with a setting of their own",
	"list.find":   "Find an entity by its ID, or the start of it",
	"list.button": "Find",
	"list.id":     "Entity ID",
	"list.none":   "No entity has a setting of its own.",
	"list.no":     "No entity with a setting of its own has an ID that starts like this.",
	"list.open":   "Open the entity with exactly this ID",
	"list.next":   "Next page",
	"list.first":  "First page",
	"one.title":   "Set the webhook of one entity",

	"gate.sign-in":  "Sign in",
	"gate.id":       "Client ID",
	"gate.secret":   "Secret",
	"gate.link":     "Go to the sign-in",
	"gate.kept":     "What you typed is kept, and nothing was changed:",
	"gate.unsure":   "What you typed is kept:",
	"gate.then":     "What you typed comes back after you sign in.",
	"gate.again":    "Send it again",
	"gate.overview": "Go to the webhooks",

	"source.override": "This entity has a webhook of its own. The default doesn't apply to it.",
	"source.off":      "This entity is turned off: it gets no notifications, whatever the default is.",
	"source.base":     "This entity has no setting of its own, so the default applies.",
	"source.none":     "Nothing is set for this entity, and there is no default. It gets no notifications.",
	"entity.change":   "Change",
	"entity.own":      "The default no longer applies to an entity that has a webhook of its own. The only way back is to set all entities again.",
	"entity.off":      "No notifications are sent for this entity from then on, until you set a webhook for it, or for all, again. It doesn't go back to the default.",
	"entity.turn-off": "Turn off",
	"off":             "Off",

	"test":      "Send a test",
	"try":       "Try it",
	"try.what":  "Sends a test to this URL, and changes nothing.",
	"test.what": "If your server accepts it, stopped deliveries resume.",

	"all.title":      "Default for all entities",
	"all.set":        "Set for all entities",
	"all.remove":     "Remove everything",
	"all.remove-why": "Removes the default and the settings of single entities. From then on, no notifications are sent at all.",
	"all.count":      "This also removes the settings of single entities: %d have their own. There is no way back.",
	"all.more":       "This also removes the settings of single entities: at least %d have their own. There is no way back.",
	"all.maybe":      "This also removes the settings of single entities, if any have their own. There is no way back.",
	"all.others":     "and %d more",
	"all.at-least":   "and at least %d more",
	"all.word":       "Type the word all to confirm",

	"key.title": "Signing key",
	"key.what":  "Verify with this key that a notification comes from us. Treat it like a password.",
	"key.none":  "There is no webhook. Its key is here once you have set one.",
	"key.show":  "Show the signing key",

	"sample.title": "Verify notifications",
	"sample.what":  "Put this into your server, and call it for each notification before you read it. Respond with a status from 200 to 299 once you have it, and use webhook-id to recognize one that you've had. Until your signing key is in it, it refuses every notification.",
	"sample.show":  "Put the signing key in",
	"sample.hide":  "Hide the key",
	"sample.open":  "How to verify notifications",

	"state.ok":       "Delivered",
	"state.failing":  "Failing",
	"state.stopped":  "Stopped",
	"state.none":     "No deliveries known",
	"state.unknown":  "Not known right now",
	"remedy.failing": "Check your server. We try again, with the next notification at the latest.",
	"remedy.stopped": "Nothing is sent now. Repair your server, then set the webhook again, to the same or another URL. For the default, that drops the webhooks that entities have of their own.",
	"remedy.test":    "Nothing is sent now. Repair your server, then send a test.",
	"remedy.refused": "Nothing is sent to this address. Set another URL, or ask us why.",

	"reason.unreachable": "Your server couldn't be reached, or sent no valid response in time.",
	"reason.redirect":    "Your server redirected us. Redirects aren't followed.",
	"reason.throttled":   "Your server asked us to slow down.",
	"reason.status":      "Your server responded with an error.",
	"reason.gone":        "Your server responded that the webhook is gone (410).",
	"reason.refused":     "Our rules no longer allow this address.",
	"reason.expired":     "Deliveries failed for too long.",

	"sent.title":       "Notifications",
	"sent.recent":      "Recent notifications",
	"sent.more":        "All notifications",
	"sent.none":        "There are none here.",
	"sent.search":      "None so far. Go on with the next page.",
	"sent.unknown":     "We can't show notifications right now. Try again in a moment.",
	"sent.id":          "Message ID",
	"sent.entity":      "Entity",
	"sent.made":        "Made",
	"sent.state":       "State",
	"sent.any":         "All states",
	"sent.waiting":     "Waiting",
	"sent.delivered":   "Delivered",
	"sent.given_up":    "Given up",
	"sent.dropped":     "Dropped",
	"sent.no_webhook":  "No webhook was in effect, so it was sent nowhere.",
	"sent.off":         "The entity was turned off, so it was sent nowhere.",
	"sent.stopped":     "Deliveries were stopped, so it wasn't sent.",
	"sent.due":         "Next attempt",
	"sent.attempts":    "Last attempts",
	"sent.count":       "Attempts:",
	"sent.last":        "Last attempt:",
	"sent.next":        "Next attempt:",
	"sent.no-attempts": "None.",
	"sent.started":     "Started",
	"sent.outcome":     "Outcome",
	"sent.body":        "Contents",
	"sent.cut":         "Only the start is shown.",
	"one.notification": "Notification",
	"one.again":        "Send again",
	"one.again-what":   "It's sent to the webhook that is set now, under the same message ID, with a new series of attempts.",

	"trouble.title": "What is wrong",
	"trouble.base":  "Default",
	"trouble.open":  "Repair it",
	"trouble.sent":  "Not delivered: %d (given up, dropped, or waiting for a further attempt).",
	"trouble.rows":  "Others in the list below: %d.",
	"trouble.page":  "This is about the default and the webhooks on this page.",
	"trouble.none":  "No failing deliveries are known for the default and the webhooks on this page.",
	"trouble.more":  "Not delivered: at least %d (given up, dropped, or waiting for a further attempt).",

	"again.title":      "Send again",
	"again.what":       "They're sent to the webhooks that are set now, under the same message IDs, each with a new series of attempts, as fast as your server takes them. If your server fails, they wait like new ones.",
	"again.except":     "Those of an entity without a webhook, or with one that was stopped, aren't sent: they're dropped again.",
	"again.count":      "Selected: %d notifications that were given up or dropped, or wait for a further attempt.",
	"again.more":       "Selected: at least %d notifications that were given up or dropped, or wait for a further attempt.",
	"again.maybe":      "There are too many notifications to count those that this selects.",
	"again.stopped":    "Deliveries for this entity are stopped.",
	"again.first":      "So nothing would be sent now. Repair that first.",
	"again.wait":       "You can send more again once that has ended.",
	"again.none":       "There is nothing to send again.",
	"again.all":        "Send all again",
	"again.send":       "Send them again",
	"again.since":      "How far back:",
	"again.any":        "All of them",
	"again.day":        "The last day",
	"again.hour":       "The last hour",
	"again.everything": "All entities",
	"again.from":       "(made since %s)",
	"again.going":      "Since %s, notifications are being queued again: %d so far. Reload the page to see how it goes on.",
	"again.last":       "Last time, at %s: %d were queued again. The list of notifications shows what came of them.",
	"again.progress":   "Sending again",

	"done.try":        "Your server accepted the test. Nothing was changed: set the webhook now.",
	"done.try-all":    "Your server accepted the test. Nothing was changed: set the webhook now.",
	"done.send-again": "It's queued again. Reload the page to see what comes of it.",
	"done.again":      "They're being queued again. Reload the page to see how it goes on.",
	"done.again-all":  "They're being queued again. Reload the page to see how it goes on.",

	"done.set":       "The webhook is set.",
	"done.unset":     "This entity has no webhook now.",
	"done.all":       "The default is set for all entities.",
	"done.unset-all": "The webhooks of all entities are removed.",
	"done.test":      "The test was accepted by your server.",
	"done.test-all":  "The test was accepted by your server.",
	"done.sign-in":   "You're signed in again. What you typed is still here: check it, and send it again.",

	"session.none":    "You're not signed in. Sign in to go on.",
	"session.ended":   "Your session has ended. Sign in again.",
	"session.revoked": "The secret that you signed in with is no longer valid. Sign in with the present one.",
	"session.cookie":  "Your browser didn't keep the session. Use https, allow cookies for this site, and sign in again.",
	"session.long":    "This ID and secret are too long to sign in with here. Ask for a shorter secret.",

	"test.failed":                   "The test failed.",
	"test.late":                     "Your server didn't respond within the time that a test has, so we can't tell whether it accepted the test. Notifications wait longer for a response.",
	"error.no_notification":         "There is no such notification. It may have been removed by now.",
	"error.again_wait":              "Notifications were sent again a moment ago, or still are.",
	"error.test_wait":               "A test was sent a moment ago, or your server asked for a pause.",
	"error.no_webhook":              "No webhook is set, so no test was sent. Set one first.",
	"error.off":                     "This entity is turned off, so no test was sent. Set a webhook for it first.",
	"error.wait":                    "Try again in %d s.",
	"error.confirm":                 "Nothing was changed. To reach all entities, type the word all.",
	"error.unsure":                  "We can't tell whether the change was made. Send it again, or look at the webhooks first.",
	"error.secret":                  "Nothing was changed, and nothing was kept: that's your secret, and neither the ID of an entity nor the name of a host.",
	"error.no_id":                   "Nothing was changed. Type the ID of an entity.",
	"error.other_client":            "Nothing was changed: this form was made for another client than the one that you're signed in for now. Check everything, and send it again if it's meant for this client.",
	"error.odd_form":                "This form isn't one of ours, so nothing was changed: it has a field too many or too few, or the same field twice. Go to the webhooks, and use the form there.",
	"error.odd_address":             "The address of this page has a part that belongs to another page, or the same part twice. Go to the webhooks.",
	"error.cross_origin":            "This form was sent from another site, so nothing was changed. Open the page here, and try again.",
	"error.invalid_request":         "That isn't possible as it was typed. Correct it, and try again.",
	"error.invalid_webhook_url":     "This URL isn't allowed. Nothing was changed. Correct the URL, and try again.",
	"error.webhook_unreachable":     "Your server couldn't be reached at this URL, or didn't pass our check in time. Nothing was changed. Check that it runs, has a valid certificate, and can be reached from the internet.",
	"error.invalid_client":          "The ID or the secret is wrong. Check both, and try again.",
	"error.all_refused":             "All entities at once can't be changed here. Nothing was changed. Set each entity by itself.",
	"error.refused":                 "This change was refused. Nothing was changed.",
	"error.not_found":               "There is no such page. Go to the webhooks.",
	"error.unknown_entity":          "There is no entity with this ID. Check the ID.",
	"error.method_not_allowed":      "This page can't be used like this. Go to the webhooks.",
	"error.request_too_large":       "That is too long. Go back, and shorten it.",
	"error.lost_form":               "What you typed didn't arrive whole and in time. Nothing was changed. Go back, and send it again.",
	"error.long_address":            "The address of this page is too long. Go to the webhooks.",
	"error.unsupported_media_type":  "This form can't be read. Go to the webhooks, and use the form there.",
	"error.too_many_requests":       "Too many attempts. Wait a moment, then try again.",
	"error.server_error":            "Something went wrong on our side. Try again later, or tell us.",
	"error.temporarily_unavailable": "We can't do this right now. Try again in a moment.",
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
		w.isEnglish = w.call("Options.Text", egress.URL{}, func() error {
			text = w.text(w.r, key)
			return nil
		}) != nil
	}
	return cmp.Or(text, english)
}

// Second is like Time, with seconds.
func (*words) Second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Time formats a time so that people can read it in any language.
func (*words) Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
