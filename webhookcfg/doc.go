// Package webhookcfg is an HTTP handler that lets your service's clients set their webhook
// URLs.
//
//	handler, err := webhookcfg.NewHandler(webhooks, clients, nil)   // your store, your verifier
//	err = http.ListenAndServeTLS(addr, cert, key, handler.Before(mux))
//
//	hook, err := webhooks.Resolve(ctx, client, entity)              // which URL is in effect?
//
// A client signs in with HTTP Basic, and sets or unsets the URL of one entity or of all its
// entities at once:
//
//	POST   …/api/v1/configure/configure-webhook                {"endpoint_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configure/configure-webhook/{endpoint_id}
//	POST   …/api/v1/configuration/configure-webhook            {"moc_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configuration/configure-webhook/{moc_id}
//
// An entity is a single thing in your service that can have a URL of its own, which the API
// calls a "module configuration". Its identifier has two names, endpoint_id and moc_id, and
// the two paths lead to the same webhooks. A request without an identifier reaches all
// entities of the client.
//
// With [Options.Reads], clients can also read their webhooks with GET. Your own code does all
// of this with [Handler.Set], [Handler.Unset] and [Handler.Read], and [Handler.OpenAPI]
// describes the interface to tools. For the responses to what's refused, see [Error].
//
// # Mount the handler
//
// Put [Handler.Before] around your mux and serve that, as the example of [NewHandler] does.
// Don't leave it out: [http.ServeMux] alone would redirect a DELETE of
// "…/configure-webhook/e1/.." to the path that means all entities. Serve it over TLS, and set
// the timeouts of your [http.Server], so that strangers can't hold its connections.
//
// Your proxies shouldn't clean or redirect paths either. If you can't control them, set
// [Options.OriginalTarget] to detect cleaned paths, and [Options.AllScope] to limit the
// requests that reach all entities. Package
// [example.com/go-webhookcfg/webhookcfg/mounttest] checks a mount from outside, and clients can
// check each change: the response has the field Webhook-Scope, which is "all" or "entity".
//
// # Bring a store and a verifier
//
// A [Store] keeps the webhooks. Package [example.com/go-webhookcfg/store] has one in memory
// and one in a file, [example.com/go-webhookcfg/store/sqlstore] has one in your database, and
// [example.com/go-webhookcfg/store/etcdstore] one in etcd.
//
// A [CredentialVerifier] checks an id and a secret, and says which client they belong to.
// Package [example.com/go-webhookcfg/auth] has verifiers for clients in your database, in a
// file or in code, and a cache and a throttle to put around them.
//
// # Find the URL in effect
//
// A client has the base, the default webhook of every entity, and overrides, which are entries
// of single entities: a URL, or off. Call [Store.Resolve] when you send a notification. The
// example States prints what each change does in each state.
//
// After an unset, an entity doesn't fall back to the base: it has no webhook until the client
// sets it again, or sets all. Since a set of all drops every override, off ones too, no
// request puts a single entity back on the base. The client can set it to the same URL, as an
// override, or set all, and then set its other overrides again.
//
// # Deliver notifications
//
// Package [example.com/go-webhookcfg/webhookcfg/deliver] sends notifications to the webhooks in
// your store: it signs a message, makes one attempt and tells you what to do next. Its package
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox] is a queue for it in your database. If
// you'd rather send them yourself, use the HTTP client that [egress.Policy.Client] makes, which
// checks addresses on each call.
//
// With [Options.DeliveryStatus], clients can read how their deliveries go. Package
// [example.com/go-webhookcfg/webhookcfg/portal] is a page for people, and with package
// [example.com/go-webhookcfg/webhookcfg/sent] they see what was sent, and send it again.
//
// # Operate it
//
// Set [Options.Logger] to log what clients do, and [Options.OnEvent] to count it. When you
// delete a client, revoke its credentials and call
// [example.com/go-webhookcfg/store/admin.Erase]. Otherwise its webhooks stay, and a client that
// gets the same identifier later inherits them, with the tokens in their URLs.
//
// # What you can rely on
//
// A client must sign in before the handler reads its body, and every refused sign-in gets the
// same 401, byte for byte. A new URL replaces the one in effect only after an [egress.Policy]
// has checked it and a [Prober] has probed it. The default probe shows that the target can be
// reached, not that the client owns it.
//
// Webhook URLs carry tokens, so an [egress.URL] prints as scheme, host and port only, and only
// its owner can read the whole URL, with GET. Logs, errors, events and panics never contain a
// client's secret either, unless somebody sends it as the id to sign in with. A secret of eight
// bytes or more in an identifier, or in the host of a URL, is refused (400).
//
// Whatever your clients share, such as tables and connections, has a bound, and no client can
// take the room of the others.
//
// Before version 1 anything can change, and the changelog says how. From then on, responses
// stay as they are, [Store] and [CredentialVerifier] don't get new methods, and new
// capabilities come as optional interfaces like [Lister]. Structs can get new fields.
package webhookcfg
