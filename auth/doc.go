// Package auth checks clients' credentials for the handler of
// [example.com/go-webhookcfg/webhookcfg].
//
//	file, err := auth.OpenFile("/etc/hooks/credentials", &auth.FileOptions{Poll: 10 * time.Second})
//	throttled, err := auth.NewThrottle(file, nil)
//	verifier, err := auth.NewCache(throttled, nil)
//	handler, err := webhookcfg.NewHandler(store, verifier, nil)
//	withSource, err := auth.WithSource(logger) // name the proxies in front that set X-Forwarded-For
//	server := http.Server{Handler: withSource(handler.Before(mux))} // withSource is outermost
//
// Pick a verifier by where you keep your clients:
//
//   - [File] reads a file that you can change while the service runs.
//   - [Static] takes clients from code.
//   - [Lookup] gets bcrypt or other hashes from your database.
//   - [Func] calls a function of yours. Test it with package
//     [example.com/go-webhookcfg/auth/authtest].
//   - If your clients already sign in to your service, with a Bearer key or a session, the example
//     of [webhookcfg.CredentialVerifier] shows how they get in with that.
//
// Then wrap it. [Throttle] limits failed sign-ins, by the address that [WithSource] provides.
// [Cache] remembers successful ones, so slow hashes are rarely computed.
//
// # Write a credential file
//
// Each line has one secret of one client. The first line is begin and the last one is end, so
// a file that was cut short is noticed.
//
//	begin
//	acme:sha256:<64 hexadecimal digits> name=2026 until=2027-01-31T12:00:00Z
//	acme:sha256:<64 hexadecimal digits> name=2027
//	acme-2:sha256:<64 hexadecimal digits> owner=acme
//	jane:pbkdf2-sha256:<rounds>:<salt, hexadecimal>:<64 hexadecimal digits>
//	gone:sha256:<64 hexadecimal digits> disabled
//	reserved:disabled
//	end
//
// Use sha256 for generated secrets, such as those from [GenerateSecret]. Nobody guesses
// these, so a fast hash is enough:
//
//	umask 077
//	: "${SECRET:?}" && printf 'begin\nacme:sha256:%s\nend\n' \
//	  "$(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)" > credentials
//
// Use pbkdf2-sha256 for secrets that a person chose. [SHA256Line] and [PBKDF2Line] make lines
// of these two kinds.
//
// A client can have up to eight secrets, each on its own line. You can add fields after the
// hash, in any order, separated by spaces or tabs:
//
//   - owner=<id> signs the client in under this [webhookcfg.Client.ID]. The default is its own
//     id.
//   - disabled refuses the client, even with the right secret.
//   - name=<name> appears in events and logs, so you see which secret is in use.
//   - until=<RFC 3339 time> ends the secret: from then on it's refused, and the log says
//     which secret has ended.
//
// To change the file, write a new one and rename it into place, or use examples/credential.
// The file must belong to root or the process's user, and nobody else may have access. [File]
// has the details of the format.
//
// # Rotate a secret or an id
//
// Add a line with the hash of the new secret. Once every process has read the file again, by
// [FileOptions.Poll] or [File.Reload], both secrets are valid, and the client can switch.
//
// Remove the old line once nothing has used it for as long as the client's rarest job takes to
// come round. To know that, keep the last time of each [webhookcfg.Event.SecretName] in
// [webhookcfg.Options.OnEvent]. Or give the old secret an end with until: the log then warns
// with its name if somebody still sends it.
//
// Once a [File] has read the change, it refuses the old secret, even if a [Cache] remembers it.
// For a [Lookup], keep a number in your database that changes with each revocation, and set
// [LookupOptions.Revision]. Every process then refuses the old secret within seconds. Without
// it, a cache accepts the secret for up to [CacheOptions.TTL] more. A request that signed in
// before still goes on, for up to Timeout of [webhookcfg.Options].
//
// To rotate an id, add a second id with the same owner. It reads and changes the same
// configuration. To shut a client out, disable all of its ids: each one signs in by itself.
//
// # Withstand floods of guesses
//
// [Throttle] counts only failures: by id and source, by source, and, far more generously, by
// id. A source is an IPv4 address or an IPv6 /64 network. Someone who guesses one id from one
// address is stopped there, and the client can still sign in from elsewhere. If very many
// addresses guess one id, only sources that it has signed in from can still try. When all
// your secrets are generated, locking clients out does more harm than the guesses, so raise
// [ThrottleOptions.PerClient].
//
// If all secrets are generated, put the cache around the throttle, as above. A client that signs
// in at least once per [CacheOptions.TTL] then isn't limited by others who guess from its
// address. If people chose the secrets and strangers share their addresses, put the throttle
// around the cache. [NewThrottle] says why.
//
// Only a few slow hashes are computed at a time. Sources that the id has signed in from go
// first. When the queue is full, the network with the most checks in it loses its newest one,
// which gets [ErrBusy] (503).
//
// # Refusals don't tell why
//
// An unknown client, a wrong or ended secret and a disabled client get the same response,
// after the same amount of work. So nobody learns which clients exist. If one client has
// PBKDF2 hashes, every refusal is slow, but sign-ins with generated secrets aren't.
package auth
