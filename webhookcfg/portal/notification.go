package portal

import (
	"errors"
	"net/http"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
)

// notification shows one notification.
func (v *visit) notification() error {
	const shownBody = 16 << 10
	if v.Parent.Notifications == nil {
		return notFound
	}
	n, err := v.handler.Notification(v.ctx, v.Client, v.asked("message"))
	if err != nil {
		return missing(err)
	}
	v.Template, v.Title, v.One, v.Obstacle = "notification", "one.notification", n, v.obstacle(n.Entity)
	v.One.Body, v.IsCut = n.Body[:min(len(n.Body), shownBody)], len(n.Body) > shownBody
	v.One.History = slices.Clone(n.History) // which the queue can still use
	slices.Reverse(v.One.History)
	return nil
}

// sendOneAgain sends one notification again.
func (v *visit) sendOneAgain() error {
	if v.Parent.Notifications == nil {
		return notFound
	}
	if v.typed("message") == "" {
		return noNotification
	}
	return v.sendSelected(webhookcfg.Selection{ID: v.typed("message")})
}

// missing says in a person's words that there's no such notification.
func missing(err error) error {
	if errors.Is(err, webhookcfg.ErrNoNotification) {
		return noNotification
	}
	return err
}

var noNotification = problem{status: http.StatusNotFound, key: "error.no_notification"}
