// Package auth has verifiers of client credentials for the handler of
// [example.com/go-webhookcfg/webhookcfg].
//
//   - [Static] and [OpenFile] know the clients, from code or from a file; [Func]
//     asks somebody else.
//   - [Cache] remembers what was verified, so that a slow verifier is asked rarely.
//   - [Throttle] slows down guessing; [WithSource] tells it where requests come from.
//
// They are put together from the inside out: the cache asks the throttle, which asks
// the file.
//
//	file, err := auth.OpenFile("/etc/hooks/credentials", &auth.FileOptions{Poll: 10 * time.Second})
//	throttled, err := auth.Throttle(file, nil)
//	verifier, err := auth.Cache(throttled, nil)
//	handler, err := webhookcfg.NewHandler(store, verifier, nil)
//	server := http.Server{Handler: auth.WithSource(mux)} // outermost
//
// # The credential file
//
// One line says one thing of one client. Blank lines, and lines that begin with #, say
// nothing.
//
//	acme:sha256:<64 hexadecimal digits>
//	acme:pbkdf2-sha256:<rounds>:<salt, hexadecimal>:<64 hexadecimal digits>
//	acme:owner:<the Client.ID that acme signs in, if it is not acme>
//	acme:disabled
//
// An id is 1 to 128 visible ASCII characters without a colon, the first of them not #.
// A client has as many secrets as it has lines with hashes, up to eight; a disabled one
// is refused whatever other lines say. Ids are told apart by letter case.
//
// The kind sha256 is for generated secrets, such as those of [NewSecret]: there is no
// dictionary to slow down. Any shell makes such a line:
//
//	printf 'acme:sha256:%s\n' "$(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)"
//
// The kind pbkdf2-sha256 is for secrets that a human chose: PBKDF2-HMAC-SHA-256 (RFC
// 8018) with 600,000 to 10,000,000 rounds, as OWASP asks for, and a salt of 16 to 64
// bytes. [SHA256Line] and [PBKDF2Line] make lines of both kinds.
//
// Write the file anew and rename it into place: a program that reads while another one
// writes would see half of it. Only its owner may have access; on Windows, where
// permissions are not judged, see to that with an access list.
//
// # Rotation
//
// To rotate a secret, add a line with the hash of the new one, have the client change
// over, and remove the old line. Both work in between, and from the reload on the old
// one is refused, by a [Cache] too. To rotate an id, add a second client with the same
// owner: it reads and changes the same configuration.
//
// # What a refusal tells
//
// An unknown client, a wrong secret and a disabled client are one error, and cost the
// same work: as many comparisons and as many rounds as the client of the set that needs
// the most. One client with PBKDF2 hashes thus makes every refusal slow, but not the
// sign-ins with generated secrets. [Cache] shares concurrent checks by what callers
// present, so that waiting tells nothing either. Package authtest tests verifiers for
// this.
//
// # Floods
//
// [Throttle] counts failures alone: by id and source, by source, and, far more
// generously, by id. Whoever floods one id from one address is stopped there, and the
// owner of the id signs in from anywhere else. A flood on one id from very many
// addresses exhausts the last bucket; then only sources that the id has signed in from,
// and what the cache remembers, get through. Raise PerClient where that is worse than
// guesses at a secret, for instance if all secrets are generated.
package auth
