package portal

import (
	"net/http"
	"time"
)

// problem says why a person doesn't get the page that they asked for.
type problem struct {
	status int
	key    string // of the text
	detail string
	wait   time.Duration
}

func (p problem) Error() string { return p.key }

var (
	notFound    = problem{status: http.StatusNotFound, key: "error.not_found"}
	unavailable = problem{status: http.StatusServiceUnavailable, key: "error.temporarily_unavailable"}
)

// problemTexts say why a request was refused.
var problemTexts = map[string]string{
	"error.wait":                    "Try again in %d s.",
	"error.unsure":                  "We can't tell whether the change was made. Send it again, or look at the webhooks first.",
	"error.invalid_request":         "That isn't possible as it was typed. Correct it, and try again.",
	"error.invalid_webhook_url":     "This URL isn't allowed. Nothing was changed. Correct the URL, and try again.",
	"error.webhook_unreachable":     "Your server couldn't be reached at this URL, or didn't pass our check in time. Nothing was changed. Check that it runs, has a valid certificate, and can be reached from the internet.",
	"error.invalid_client":          "The ID or the secret is wrong. Check both, and try again.",
	"error.refused":                 "This change was refused. Nothing was changed.",
	"error.not_found":               "There is no such page. Go to the webhooks.",
	"error.unknown_entity":          "There is no entity with this ID. Check the ID.",
	"error.method_not_allowed":      "This page can't be used like this. Go to the webhooks.",
	"error.request_too_large":       "That is too long. Go back, and shorten it.",
	"error.too_many_requests":       "Too many attempts. Wait a moment, then try again.",
	"error.server_error":            "Something went wrong on our side. Try again later, or tell us.",
	"error.temporarily_unavailable": "We can't do this right now. Try again in a moment.",
	"error.other_client":            "Nothing was changed: this form was made for another client than the one that you're signed in for now. Check everything, and send it again if it's meant for this client.",
	"error.cross_origin":            "This form was sent from another site, so nothing was changed. Open the page here, and try again.",
	"error.lost_form":               "What you typed didn't arrive whole and in time. Nothing was changed. Go back, and send it again.",
	"error.unsupported_media_type":  "This form can't be read. Go to the webhooks, and use the form there.",
	"error.odd_form":                "This form isn't one of ours, so nothing was changed: it has a field too many or too few, or the same field twice. Go to the webhooks, and use the form there.",
	"error.odd_address":             "The address of this page has a part that belongs to another page, or the same part twice. Go to the webhooks.",
	"error.long_address":            "The address of this page is too long. Go to the webhooks.",
}
