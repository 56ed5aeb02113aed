// Package auth provides verifiers of client credentials for the handler of
// [example.com/go-webhookcfg/webhookcfg].
//
//   - [Static] and [OpenFile] hold the clients themselves, from code or from a file;
//     [Func] calls a function of the host.
//   - [Cache] remembers successful checks, so that a slow verifier is called rarely.
//   - [Throttle] limits failed sign-ins; [WithSource] provides the client address
//     that it counts by.
//
// They nest: the cache wraps the throttle, which wraps the file.
//
//	file, err := auth.OpenFile("/etc/hooks/credentials", &auth.FileOptions{Poll: 10 * time.Second})
//	throttled, err := auth.Throttle(file, nil)
//	verifier, err := auth.Cache(throttled, nil)
//	handler, err := webhookcfg.NewHandler(store, verifier, nil)
//	server := http.Server{Handler: auth.WithSource(mux)} // outermost
//
// # The credential file
//
// Each line states one property of one client. Blank lines and lines that start with #
// are ignored.
//
//	acme:sha256:<64 hexadecimal digits>
//	acme:pbkdf2-sha256:<rounds>:<salt, hexadecimal>:<64 hexadecimal digits>
//	acme:owner:<the Client.ID that acme signs in, if it is not acme>
//	acme:disabled
//
// An id is 1 to 128 visible ASCII characters without a colon, the first of them not #.
// Ids are case-sensitive. A client has as many secrets as it has lines with hashes, up
// to eight. A disabled client is refused whatever its other lines are.
//
// The kind sha256 is for generated secrets, such as those of [NewSecret]: a dictionary
// does not help to guess them. Any shell makes such a line:
//
//	printf 'acme:sha256:%s\n' "$(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)"
//
// The kind pbkdf2-sha256 is for secrets that a person chose: PBKDF2-HMAC-SHA-256 (RFC
// 8018) with at least the 600,000 rounds that OWASP recommends, at most 10,000,000, and
// a salt of 16 to 64 bytes. [SHA256Line] and [PBKDF2Line] make lines of both kinds.
//
// To change the file, write a new one and rename it into place: a reader of a file that
// is being written may see half of it. Only the owner of the file may have access; on
// Windows, where permission bits are not checked, restrict it with an access list.
//
// # Rotation
//
// To rotate a secret, add a line with the hash of the new one, switch the client to it,
// and remove the old line. Both secrets are valid in between; after the reload the
// old one is refused, by a [Cache] too. To rotate an id, add a second client with the
// same owner: it reads and changes the same configuration.
//
// # Refusals are indistinguishable
//
// An unknown client, a wrong secret and a disabled client are refused with the same
// error and cost the same work: as many comparisons and as many rounds as the client
// of the set that needs the most. One client with PBKDF2 hashes thus makes every
// refusal slow, but not the sign-ins with generated secrets. [Cache] shares concurrent
// checks by the credentials that callers present, so the time they wait reveals
// nothing either. Package authtest tests verifiers for these properties.
//
// # Floods
//
// [Throttle] counts failures only: by id and source, by source, and, far more
// generously, by id. A flood on one id from one address is stopped there, and the
// owner of the id signs in from anywhere else. A flood on one id from very many
// addresses exhausts the last bucket; then only sources that the id has signed in from,
// and credentials in the cache, are accepted. Raise PerClient where that is worse than
// guesses at a secret, for instance if all secrets are generated.
package auth
