// Package webhookcfg is an HTTP handler through which the clients of your service
// configure where their update notifications go.
//
// A client signs in with HTTP Basic and sets or unsets the webhook URL of one entity, or of
// all its entities at once. [Handler.Set], [Handler.Unset] and [Handler.Read] do the same from
// your own code.
// When your service has a notification to send, it calls [Store.Resolve] to find the URL in
// effect. The package neither sends notifications nor issues credentials.
//
//	POST   …/api/v1/configure/configure-webhook                {"endpoint_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configure/configure-webhook/{endpoint_id}
//	POST   …/api/v1/configuration/configure-webhook            {"moc_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configuration/configure-webhook/{moc_id}
//
// An entity is what your clients configure, a "module configuration". endpoint_id and moc_id are
// two names of its identifier, and the two paths are two names of one resource: you can unset
// through one what was set through the other. Without the identifier, a request reaches all
// entities of the client. With
// [Options.Reads], GET returns the webhook in effect and, with [Options.DeliveryStatus], how
// its deliveries go. [Handler.OpenAPI] describes the interface to tools.
//
// # Mounting
//
// [NewHandler] takes a store and a verifier and returns a [Handler]. Serve it at the root,
// under [http.StripPrefix], or under [Options.BasePath].
//
// Since a missing identifier means all entities, nothing in front of the handler should
// clean or redirect paths. [http.ServeMux] does: it redirects a DELETE of
// "…/configure-webhook/e1/.." to the path that means all. Put [Handler.Before] around your
// mux, and such requests are refused.
//
// A proxy must pass paths untouched too. If you can't control yours,
// [Options.OriginalTarget] detects cleaned paths, and [Options.AllScope] limits the requests
// that reach all entities. Clients can check the field Webhook-Scope in the response to every
// change, which is "all" or "entity". Package mounttest checks a mount from outside.
//
// A DELETE for all entities must not have a body, since the body may name an entity.
// (net/http drops chunked HTTP/1.0 bodies before the handler sees them.)
//
// # States and operations
//
// The state of a client is its base, the URL that every entity has by default, and its
// overrides, which are entries of single entities: a URL, or off.
//
//	state of entity e          set e u     set all u   unset e    unset all   resolve e
//	nothing                    override u  base u      nothing    nothing     none
//	base b                     override u  base u      off        nothing     b
//	override v, no base        override u  base u      nothing    nothing     v
//	override v, base b         override u  base u      off        nothing     v
//	off, base b                override u  base u      off        nothing     none
//
// This is not inheritance. After "unset e", e doesn't fall back to the base: it has no
// webhook until it, or all, is set again. And "set all" means all: it drops every override,
// including those that are off.
//
// Set [Options.EntityExists], or any well-formed identifier is accepted, and it's up to you
// not to send for entities that don't exist.
//
// # Deleting a client
//
// When you delete a client, its webhooks stay in the store, and a client that gets the same
// identifier later inherits them, with the tokens in their URLs. So revoke the client's
// credentials first, and then call Erase of package store/admin, which unsets everything and
// removes the rest as far as the store can. A client of that name then starts with nothing.
//
// # Errors
//
// A success has the body {"message":"successful"}. An error has the body
// {"error":"code","error_description":"text"}, and the text names the rule.
//
//	status  error                    reason
//	400     invalid_request          body, key, identifier, query or path breaks a rule
//	400     invalid_webhook_url      the policy refuses the URL
//	400     webhook_unreachable      the probe failed, for whatever reason
//	401     invalid_client           no credentials, or not valid ones
//	403     all_refused              AllScope refuses requests that reach all entities
//	404     not_found                not a path of the handler
//	404     unknown_entity           EntityExists reports false
//	405     method_not_allowed       the path does not support the method; see Allow
//	413     request_too_large        the body exceeds BodyLimit
//	415     unsupported_media_type   the body is not application/json in UTF-8
//	429     too_many_requests        the verifier or the prober asks to wait; see Retry-After
//	500     server_error             a defect; the cause is logged
//	503     temporarily_unavailable  a part of the service failed, or time ran out
//
// After a 503 the change is made completely, perhaps a moment later, or not at all. The client
// should repeat it, but read first if someone else may have changed the same webhook since: a
// repeat would undo that change.
//
// # Security
//
// A client is authenticated before its body is read, and every failure to sign in gets the
// same 401, byte for byte. A URL replaces the one in effect only after an [egress.Policy]
// checked it and a [Prober] probed it. The default probe shows that the target can be
// reached, not that the client owns it.
//
// Webhook URLs carry tokens, so an [egress.URL] prints as scheme, host and port only, and the
// reads return it in full to its owner alone. Logs, errors, events and panics never contain a
// client's secret either, unless a client sends it as its id. Serve the handler over TLS, and
// limit connections in your server, for example with [http.Server.ReadHeaderTimeout].
//
// # Shared tables
//
// Clients share these tables, which are all bounded. Those with a star evict from the client
// or the network with the most rows, so that nobody displaces the rows of others. The rest
// evict the least recently used row.
//
//	auth.Throttle     Size *       failures of an id from a source
//	                  Size *       failures of a source
//	                  Size         failures of a site, and of an id: one row each
//	                  Size *       sources that an id has signed in from
//	auth.Cache        Size *       credentials that signed in
//	egress.Prober     10,000       recent probes: one row for each client
//	deliver.Sender    10,000       receivers that failed or asked for a pause
//	deliver.Health    MaxWebhooks  records of deliveries
//	cache.Cache       MaxBytes *   clients and entities
//
// # Compatibility
//
// Before version 1 anything may change, as the changelog describes. From version 1 on,
// responses stay as they are, [Store] and [CredentialVerifier] gain no methods, new
// capabilities come as optional interfaces like [Lister], and structs may gain fields.
package webhookcfg
