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
// describes the interface to tools.
//
// # Mount the handler
//
// Put [Handler.Before] around your mux and serve that, as the example of [NewHandler] does:
// at the root, under [http.StripPrefix], or under [Options.BasePath].
//
// Don't leave [Handler.Before] out. It refuses a DELETE of "…/configure-webhook/e1/..", while
// [http.ServeMux] alone would redirect it to the path that means all entities.
//
// Your proxies shouldn't clean or redirect paths either. If you can't control them, set
// [Options.OriginalTarget] to detect cleaned paths, and [Options.AllScope] to limit the requests
// that reach all entities. Package [example.com/go-webhookcfg/webhookcfg/mounttest] checks a
// mount from outside, and clients can check each change: the response has the field
// Webhook-Scope, which is "all" or "entity".
//
// # Store webhooks
//
// Package [example.com/go-webhookcfg/store] has a [Store] in memory and one in a file,
// [example.com/go-webhookcfg/store/sqlstore] has one in your database, and
// [example.com/go-webhookcfg/store/etcdstore] one in etcd. A store of your own needs two methods,
// and [example.com/go-webhookcfg/store/storetest] checks it.
//
// # Sign clients in
//
// A [CredentialVerifier] checks an id and a secret, and says which client they belong to. Package
// [example.com/go-webhookcfg/auth] has verifiers for clients in your database, in a file or in
// code, and a cache and a throttle to put around them. A verifier of your own needs one method,
// and package [example.com/go-webhookcfg/auth/authtest] checks it. On other paths of your
// service, [Handler.SignIn] signs the same clients in. If they already have a Bearer key or a
// session of your service, they can use that: see the example of [CredentialVerifier].
//
// # Find the URL in effect
//
// To send a notification, call [Store.Resolve] first. A client has the base, the default
// webhook of every entity, and overrides, which are entries of single entities: a URL, or off.
//
//	state of entity e          set e u     set all u   unset e    unset all   resolve e
//	nothing                    override u  base u      nothing    nothing     none
//	base b                     override u  base u      off        nothing     b
//	override v, no base        override u  base u      nothing    nothing     v
//	override v, base b         override u  base u      off        nothing     v
//	off, base b                override u  base u      off        nothing     none
//
// After "unset e", e doesn't fall back to the base: it has no webhook until the client sets
// it again, or sets all. Since "set all" drops every override, off ones too, no request puts a
// single entity back on the base. The client can set it to the same URL, as an override, or
// set all, and then set its other overrides again.
//
// By default the handler accepts any well-formed identifier, and it's up to you not to send
// for entities that don't exist. [Options.EntityExists] refuses them, and
// [Options.CheckChange] refuses changes for reasons of your own, such as the client's plan.
//
// # Deliver notifications
//
// Package [example.com/go-webhookcfg/webhookcfg/deliver] sends notifications to the webhooks in
// your store: it signs a message, makes one attempt and tells you what to do next. Its package
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox] is a queue for it in your database. If
// you'd rather send them yourself, use the HTTP client that [egress.Policy.Client] makes, which
// checks addresses on each call. With [Options.DeliveryStatus], clients can read how their
// deliveries go.
//
// With package [example.com/go-webhookcfg/webhookcfg/sent], clients see what was sent and what
// came of it, and can send it again.
//
// # Operate it
//
// Set [Options.Logger] to log each set, unset, read and list, and [Options.OnEvent] to get an
// [Event] for your metrics. Package [example.com/go-webhookcfg/webhookcfg/portal] shows webhooks
// to people in a browser.
//
// When you delete a client, revoke its credentials and then call
// [example.com/go-webhookcfg/store/admin.Erase]. Otherwise its webhooks stay, and a client that
// gets the same identifier later inherits them, with the tokens in their URLs. A request that
// signed in before can still make its change for as long as [Options.Timeout], so wait for that,
// or call Erase again.
//
// # Errors
//
// A success has the body {"message":"successful"}. An error has the body
// {"error":"code","error_description":"text"}, and the text names the rule.
//
//	status  error                    reason
//	400     invalid_request          body, key, identifier, query or path breaks a rule
//	400     invalid_webhook_url      the policy refuses the URL
//	400     webhook_unreachable      the probe failed, for any reason
//	401     invalid_client           no credentials, or not valid ones
//	403     all_refused              AllScope refuses requests that reach all entities
//	403     one of yours             CheckChange or the store refuses the change: see Refusal
//	404     not_found                not a path of the handler
//	404     unknown_entity           EntityExists reports false
//	405     method_not_allowed       the path does not support the method; see Allow
//	413     request_too_large        the body exceeds BodyLimit
//	415     unsupported_media_type   the body is not application/json in UTF-8
//	429     too_many_requests        the verifier or the prober asks to wait; see Retry-After
//	500     server_error             a defect; the cause is logged
//	503     temporarily_unavailable  a part of the service failed, or time ran out
//
// After a 503, the client can't tell whether the change was made, or will be in a moment, but
// it's never made in part. The client should repeat it, and read first if somebody else may
// have changed the webhook since, because a repeat would undo that.
//
// # Security
//
// Serve the handler over TLS, and set ReadHeaderTimeout, ReadTimeout, WriteTimeout and
// IdleTimeout of your [http.Server], so that strangers can't hold its connections.
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
// # Compatibility
//
// Before version 1 anything can change. The changelog says how. From version 1 on, responses
// stay as they are, [Store] and [CredentialVerifier] don't get new methods, and new
// capabilities come as optional interfaces like [Lister]. Structs can get new fields.
package webhookcfg
