// Package sent lets your clients see what was sent to their webhooks and what came of it, and
// send it again.
//
// A [Queue] has the notifications, such as an
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox]. Pass it as
// [example.com/go-webhookcfg/webhookcfg/portal.Options.Notifications], and people find them on
// their page. That's all that most services need.
//
// The HTTP API has no paths for notifications, because few clients need them, and they'd add
// routes, errors and schemas that all clients have to read about. If yours do need them, offer them
// in an API of your own, with a [View]:
//
//	view := &sent.View{Handler: handler, Queue: box}
//	page, err := view.Notifications(ctx, client, sent.Query{Limit: 100})
//
// Don't call the queue itself for a client: it doesn't check what the client asks for.
package sent
