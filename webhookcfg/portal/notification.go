package portal

import (
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// notificationPage shows one notification.
type notificationPage struct {
	*frame
	One      sent.Notification
	Why      string // the key of the text for its reason
	Attempts []attempt
	Body     string
	IsCut    bool // the body
	Obstacle obstacle
}

// showNotification shows one notification.
func showNotification(v *visit) (any, error) {
	const shownBody = 16 << 10
	if v.Options.Notifications == nil {
		return nil, notFound
	}
	n, err := v.view.Notification(v.ctx, v.Client, v.asked("message"))
	if err != nil {
		return nil, missing(err)
	}
	return &notificationPage{
		frame: v.about("notification", "one.notification", ""),
		One:   n, Why: whyKey(n.Reason), Attempts: attempts(n),
		Body: string(n.Body[:min(len(n.Body), shownBody)]), IsCut: len(n.Body) > shownBody,
		Obstacle: readObstacle(v, n.Entity),
	}, nil
}

// sendOneAgain sends one notification again.
func sendOneAgain(v *visit) error {
	if v.Options.Notifications == nil {
		return notFound
	}
	if v.typed("message") == "" {
		return noNotification
	}
	return sendSelected(v, sent.Selection{ID: v.typed("message")})
}

// notificationTexts are the words of the page of a notification, and of its form.
var notificationTexts = map[string]string{
	"one.notification":      "Notification",
	"one.again":             "Send again",
	"one.again-what":        "It's sent to the webhook that is set now, under the same message ID, with a new series of attempts.",
	"done.send-again":       "It's queued again. Reload the page to see what comes of it.",
	"error.no_notification": "There is no such notification. It may have been removed by now.",
}
