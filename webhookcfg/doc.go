// Package webhookcfg is an HTTP handler through which the clients of a service
// say where their update notifications go.
//
// A client signs in with HTTP Basic and sets or unsets the webhook URL of one
// entity, or of all its entities at once. The service asks [Store.Resolve] which
// URL is in effect when it has something to send. The package neither sends
// notifications nor issues credentials.
//
//	POST   …/api/v1/configure/configure-webhook                {"endpoint_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configure/configure-webhook/{endpoint_id}
//	POST   …/api/v1/configuration/configure-webhook            {"moc_id":"e1","webhook_url":"https://…"}
//	DELETE …/api/v1/configuration/configure-webhook/{moc_id}
//
// Without the identifier a request reaches all entities of the client. The two
// paths are two names of one thing: what is set through one is unset through the
// other. With [Options.Reads], GET shows what is in effect.
//
// # Mounting
//
// [NewHandler] takes a store and a verifier and returns a [Handler], which is an
// [http.Handler]. It serves at the root, under [http.StripPrefix], or under
// [Options.BasePath]. [Handler.Register] puts one pattern for each route on the
// host's mux, and [Handler.Routes] lists them.
//
// The absence of an identifier means all entities, so a path that something
// cleans on its way may come to mean more than its sender said. The handler itself
// never cleans and never redirects. [http.ServeMux] does: it answers a DELETE of
// "…/configure-webhook/e1/.." with a redirect to the path that means all. Put
// [Handler.Before] around the mux to have such paths refused instead.
//
// # States and operations
//
// The state of a client is its base, the URL that every entity has unless it has
// an entry of its own, and its overrides, which are those entries: a URL, or off.
//
//	state of entity e          set e u     set all u   unset e    unset all   resolve e
//	nothing                    override u  base u      nothing    nothing     none
//	base b                     override u  base u      off        nothing     b
//	override v, no base        override u  base u      nothing    nothing     v
//	override v, base b         override u  base u      off        nothing     v
//	off, base b                override u  base u      off        nothing     none
//
// This is not inheritance. After "unset e", e does not fall back to the base: it
// has no webhook until it, or all, is set again. And "set all" means all: it drops
// every override, those that say off too.
//
// # Entities
//
// Without [Options.EntityExists] every well-formed identifier is accepted. The rule
// that an identifier must name a valid module configuration is then the host's to
// keep, for example by never sending for an entity that does not exist.
//
// # Security
//
// The caller is judged before its body is read. Every failure to sign in gets the
// same 401, byte for byte. A URL is judged by an [egress.Policy], and tried by a
// [Prober], before it replaces the one in effect; a refused URL changes nothing.
// The default probe shows that the target can be reached, not that the client
// owns it.
//
// Webhook URLs carry tokens, so they are kept in an [egress.URL], which prints as
// scheme, host and port only. The handler writes no client secret and no URL path
// into a log, an event or an answer, except into the reads that the owner asks
// for. Serve it over TLS: Basic credentials are not encrypted.
//
// Throttling of sign-ins is the verifier's: an error with a method
// RetryAfter() time.Duration is answered 429. Limits of the connection, such as
// [http.Server.ReadHeaderTimeout], are the host's.
//
// # Compatibility
//
// Before version 1 anything may change, and the changelog says how to follow.
// From version 1 on: [Store] and [CredentialVerifier] will not gain methods, new
// abilities come as optional interfaces like [Lister]; fields may be added to the
// structs; the wire stays as it is.
package webhookcfg
