// Package webhookcfg is an HTTP handler through which the clients of a service
// configure where their update notifications are sent.
//
// A client signs in with HTTP Basic and sets or unsets the webhook URL of one entity,
// or of all its entities at once. When the service has a notification to send, it
// calls [Store.Resolve] to find the URL in effect. The package neither sends
// notifications nor issues credentials.
//
//	POST   …/api/v1/configure/configure-webhook                {"endpoint_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configure/configure-webhook/{endpoint_id}
//	POST   …/api/v1/configuration/configure-webhook            {"moc_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configuration/configure-webhook/{moc_id}
//
// Without the identifier a request reaches all entities of the client. The two paths
// are two names of one resource: a webhook set through one is unset through the
// other. With [Options.Reads], GET returns the webhook in effect and, with
// [Options.DeliveryStatus], how the deliveries to it go. [Handler.OpenAPI] describes the
// interface to tools.
//
// # Mounting
//
// [NewHandler] takes a store and a verifier and returns a [Handler], which is an
// [http.Handler]. It serves at the root, under [http.StripPrefix], or under
// [Options.BasePath].
//
// The absence of an identifier means all entities, so a path that is cleaned before it
// reaches the handler may mean more than the client meant. The handler itself never
// cleans and never redirects a path. [http.ServeMux] does: it redirects a DELETE of
// "…/configure-webhook/e1/.." to the path that means all. [Handler.Before], around the
// mux, refuses such paths instead. [Handler.Register] registers one pattern for each
// route with a mux, and [Handler.Routes] lists them.
//
// A proxy that cleans paths does the same harm. It must pass the path untouched; where the
// service shares its proxy with others, [Options.OriginalTarget] detects a cleaned path, and
// [Options.AllScope] limits the requests that reach all entities. The field Webhook-Scope in
// the response to every change is "all" or "entity", for a client to compare with what it
// meant. Package mounttest checks a mount from outside.
//
// A request that unsets all entities takes no body, since a body may name an entity; it is
// refused if it has one or announces one, whatever the version of HTTP. The exception is a
// chunked body in HTTP/1.0, which has no chunks: net/http removes it, with the field that
// announces it, before the handler is called.
//
// # From Go
//
// [Handler.Set] and [Handler.Unset] make a change for the host's own code, such as a
// dashboard of signed-in users: after the same checks and the probe as a request, with an
// event, and with an [Error] that has what the response would have held. A host that calls
// the [Store] itself skips all of that.
//
// # States and operations
//
// The state of a client is its base, the URL that every entity has unless it has an
// entry of its own, and its overrides, which are those entries: a URL, or off.
//
//	state of entity e          set e u     set all u   unset e    unset all   resolve e
//	nothing                    override u  base u      nothing    nothing     none
//	base b                     override u  base u      off        nothing     b
//	override v, no base        override u  base u      nothing    nothing     v
//	override v, base b         override u  base u      off        nothing     v
//	off, base b                override u  base u      off        nothing     none
//
// This is not inheritance. After "unset e", e does not fall back to the base: it has
// no webhook until it, or all, is set again. And "set all" means all: it drops every
// override, including those that are off.
//
// Without [Options.EntityExists] every well-formed identifier is accepted. The rule
// that an identifier names a valid module configuration is then the host's to enforce,
// for example by never sending for an entity that does not exist.
//
// # Deliveries
//
// A client that cannot see how its deliveries go trusts a webhook that has been dead for
// months. With [Options.DeliveryStatus], the read of one entity has one more field:
//
//	"delivery":{"state":"failing","reason":"unreachable","last_success":"…","last_failure":"…"}
//
// The state is "ok", "failing" or "stopped". The reason is one of a few words, and nothing else
// of what a receiver sent is returned. A state belongs to the webhook as it was set: setting it
// again, also to the same URL, clears the state. The handler never changes a configuration
// because of a delivery; a webhook that was stopped is still the one in effect.
//
// # Errors
//
// The body of a success is {"message":"successful"}, that of an error
// {"error":"code","error_description":"text"}, with a text that names the rule.
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
//	503     temporarily_unavailable  store, verifier, EntityExists, DeliveryStatus or LocalAddrs
//	                                 of the policy failed, or the prober for a reason of its
//	                                 own, or time ran out
//
// After a 503 the change was made completely or not at all. The client may repeat the
// request; the outcome is that of one request, unless another change came in between.
//
// # Laws
//
// A change to this module must preserve these properties; tests enforce them.
//
//   - Never widen: only true absence of an identifier means all entities.
//   - Verify before replace: the store sees a change only after every check of it.
//   - All or nothing, and durable before 200: a failed request has changed nothing or,
//     after a failure of the store, made exactly its change.
//   - One truth: one state machine, one URL predicate, one table of errors.
//   - Set-all and unset-all cost the same whatever the number of overrides.
//   - Isolation: no request of one client changes what another client sees.
//   - Secrets stay secret: no log, error, event or panic holds a client secret, except one
//     that a caller sent as its id, or more of a URL than scheme, host and port.
//   - Fail closed: constructors refuse invalid arguments, and a doubtful request is
//     refused.
//   - Nothing stays open: every resource of a request is released by its deadline.
//
// # Security
//
// A client is authenticated before its body is read. Every failure to sign in gets
// the same 401, byte for byte. A URL is checked by an [egress.Policy] and probed by a
// [Prober] before it replaces the one in effect; a refused URL changes nothing. The
// default probe shows that the target can be reached, not that the client owns it.
//
// An event, and its log record, names the credential that signed in and the source address.
// For a refused sign-in it names the id that was presented, which may be a secret in the
// wrong field; [Options.OmitPresentedID] leaves it out.
//
// Webhook URLs carry tokens, so they are held in an [egress.URL], which prints as
// scheme, host and port only; only the reads return them in full, to their owner.
// Serve the handler over TLS: Basic credentials are not encrypted.
//
// The verifier throttles sign-ins: the response to an error with a method RetryAfter()
// time.Duration is 429. Limits of the connection, such as
// [http.Server.ReadHeaderTimeout], are the host's.
//
// # Compatibility
//
// Before version 1 anything may change, as the changelog describes. From version 1 on,
// [Store] and [CredentialVerifier] will not gain methods, new capabilities come as
// optional interfaces like [Lister], and structs may gain fields; responses stay as
// they are.
package webhookcfg
