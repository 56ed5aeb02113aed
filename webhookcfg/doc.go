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
// An entity is a single thing in your service that can have a URL of its own. The API calls
// it a "module configuration". endpoint_id and moc_id are two names for its identifier, and
// the two paths lead to the same webhooks. Without an identifier, a request reaches all
// entities of the client.
//
// Set [Options.Reads] to let clients read their webhooks with GET. [Handler.Set],
// [Handler.Unset] and [Handler.Read] do the same from your own code. [Handler.OpenAPI]
// describes the interface to tools.
//
// # Mount the handler
//
// Put [Handler.Before] around your mux and serve that, as the example of [NewHandler] does.
// Serve the handler at the root, under [http.StripPrefix], or under [Options.BasePath].
//
// Don't leave Before out: [http.ServeMux] redirects a DELETE of "…/configure-webhook/e1/.."
// to the path that means all entities. Before refuses such requests.
//
// Your proxies shouldn't clean or redirect paths either. If you can't control them, set
// [Options.OriginalTarget] to detect cleaned paths, and [Options.AllScope] to limit the
// requests that reach all entities. Package mounttest checks a mount from outside. Clients
// can check the field Webhook-Scope in the response to each change: it's "all" or "entity".
//
// # Store webhooks
//
// Package store has a [Store] in memory and one in a file. Package store/sqlstore uses your
// database, and store/etcdstore uses etcd. If you write your own, it needs two methods, and
// package storetest checks it.
//
// # Sign clients in
//
// A [CredentialVerifier] checks an id and a secret, and says which client they belong to.
// Package auth has verifiers for clients in your database, in a file or in code, and a cache
// and a throttle to put around them. If you write your own, it needs one method, and package
// authtest checks it. Call [Handler.SignIn] to sign clients in on other paths of your
// service.
//
// # Find the URL in effect
//
// To send a notification, call [Store.Resolve] first. A client has a base, the URL that every
// entity has by default, and overrides, which are entries of single entities: a URL, or off.
//
//	state of entity e          set e u     set all u   unset e    unset all   resolve e
//	nothing                    override u  base u      nothing    nothing     none
//	base b                     override u  base u      off        nothing     b
//	override v, no base        override u  base u      nothing    nothing     v
//	override v, base b         override u  base u      off        nothing     v
//	off, base b                override u  base u      off        nothing     none
//
// After "unset e", e doesn't fall back to the base. It has no webhook until the client sets
// it again, or sets all. "Set all" drops every override, off ones too. So no request puts a
// single entity back on the base. The client can set it to the same URL, as an override, or
// set all, and then set its other overrides again.
//
// By default the handler accepts any well-formed identifier, and it's up to you not to send
// for entities that don't exist. Set [Options.EntityExists] to refuse them.
//
// # Deliver notifications
//
// This package doesn't send notifications. Package deliver does, from the same store: it
// signs a message, makes one attempt and tells you what to do next. If you'd rather send them
// yourself, use the HTTP client that [egress.Policy.Client] makes, which checks addresses on
// each call. With [Options.DeliveryStatus], clients can read how their deliveries go.
//
// # Operate it
//
// Set [Options.Logger] to log each set, unset, read and list, and [Options.OnEvent] to get an
// [Event] for your metrics. Package portal shows webhooks to people in a browser.
//
// When you delete a client, revoke its credentials and then call Erase of package
// store/admin. Otherwise its webhooks stay, and a client that gets the same identifier later
// inherits them, with the tokens in their URLs.
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
// After a 503, the client can't tell whether the change was made, or will be in a moment.
// It's never made in part. The client should repeat it, but read first if somebody else may
// have changed the webhook since: a repeat would undo that.
//
// # Security
//
// Serve the handler over TLS, and limit connections, for example with
// [http.Server.ReadHeaderTimeout].
//
// A client must sign in before the handler reads its body, and every refused sign-in gets the
// same 401, byte for byte. A new URL replaces the one in effect only after an [egress.Policy]
// has checked it and a [Prober] has probed it. The default probe shows that the target can be
// reached, not that the client owns it.
//
// Webhook URLs carry tokens. So an [egress.URL] prints as scheme, host and port only, and
// only its owner can read the whole URL, with GET. Logs, errors, events and panics never
// contain a client's secret either, unless a client sends it as its id.
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
