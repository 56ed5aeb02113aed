// Package auth provides verifiers of client credentials for the handler of
// [example.com/go-webhookcfg/webhookcfg].
//
//   - [Static] and [OpenFile] hold the clients themselves, from code or from a file.
//   - [Lookup] compares secrets with hashes that the host stores; [Func] calls a function
//     of the host.
//   - [Cache] remembers successful checks, so that a slow verifier is called rarely.
//   - [Throttle] limits failed sign-ins; [WithSource] provides the client address
//     that it counts by.
//
// They nest: the cache wraps the throttle, which wraps the file. See section Floods for when
// to put the throttle outside.
//
//	file, err := auth.OpenFile("/etc/hooks/credentials", &auth.FileOptions{Poll: 10 * time.Second})
//	throttled, err := auth.NewThrottle(file, nil)
//	verifier, err := auth.NewCache(throttled, nil)
//	handler, err := webhookcfg.NewHandler(store, verifier, nil)
//	withSource, err := auth.WithSource() // of the proxies in front, if any
//	server := http.Server{Handler: withSource(mux)} // outermost
//
// # The credential file
//
// Each line is one secret of one client and states everything about it. The first line
// is begin and the last one is end, so that a file that was cut short is refused. Blank
// lines, and lines that start with #, are ignored before the last one.
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
// An id is 1 to 128 visible ASCII characters without a colon, the first of them not #.
// Ids are case-sensitive. A client has as many secrets as it has lines, up to eight. The
// fields after the hash are optional, in any order, each at most once, separated by spaces
// or tabs; a line with any other field is refused.
//
//   - owner=<id> is the Client.ID that the client signs in, if it is not its own id.
//   - disabled refuses the client, whatever secret it presents.
//   - name=<name> names the secret in events and logs, where it shows which secrets are
//     in use. Names are visible ASCII like ids, and differ within a client.
//   - until=<time of RFC 3339> ends the secret: at that instant and later it is refused,
//     by a [Cache] too. The log then says which secret has ended.
//
// All lines of a client must agree on owner and disabled. The last form of a line, with
// disabled in place of a hash, reserves an id without a secret; it has no other field
// than owner.
//
// The kind sha256 is for generated secrets, such as those of [GenerateSecret]: a dictionary
// does not help to guess them. Any shell makes a file with one:
//
//	umask 077
//	printf 'begin\nacme:sha256:%s\nend\n' \
//	  "$(printf %s "$SECRET" | sha256sum | cut -d' ' -f1)" > credentials
//
// The kind pbkdf2-sha256 is for secrets that a person chose: PBKDF2-HMAC-SHA-256 (RFC
// 8018) with at least the 600,000 rounds that OWASP recommends, and a salt of 16 to 64
// bytes. A check may take at most 10,000,000 rounds, with the costliest combination of
// clients. [SHA256Line] and [PBKDF2Line] make lines of both kinds, to which fields can be
// appended.
//
// To change the file, write a new one and rename it into place, or use
// examples/credential. The file belongs to the user of the process or to root, and no
// other user may have access; on Windows, where permissions are not checked, restrict it
// with an access list.
//
// # Rotation
//
// To rotate a secret, add a line with the hash of the new one, switch the client to it,
// and remove the old line, or give it an end beforehand. Both secrets are valid in
// between; then the old one is refused, by a [Cache] too. To rotate an id, add a second
// client with the same owner: it reads and changes the same configuration.
//
// # Refusals are indistinguishable
//
// An unknown client, a wrong or ended secret and a disabled client are refused with the
// same error and cost the same work: as many comparisons and as many rounds as the
// client of the set that needs the most. One client with PBKDF2 hashes thus makes every
// refusal slow, but not the sign-ins with generated secrets. The refusals of [Lookup]
// take a number of comparisons that is an option. [Cache] shares concurrent checks by the
// credentials that callers present, so the time they wait reveals nothing either. Package
// authtest tests verifiers for these properties.
//
// # Floods
//
// [Throttle] counts failures only: by id and source, by source, and, far more
// generously, by id. A source is an IPv4 address or an IPv6 /64 network; strangers in one
// IPv6 /48 are also counted together. A flood on one id from one address is stopped
// there, and the owner of the id signs in from anywhere else. A flood on one id from very
// many addresses exhausts the last bucket; then only sources that the id has signed in
// from are accepted. Raise PerClient where that is worse than guesses at a secret, for
// instance if all secrets are generated.
//
// Put the cache around the throttle if all secrets are generated. A client that signs in at
// least once per TTL then keeps signing in from its address, even while others guess from
// there: the cache accepts what it verified, and checks it again without a token for twice
// the TTL. The flip side: for that long, anyone behind the same IPv4 address or /64 can guess
// that client's secret unthrottled. Wrong guesses get 429, but the right one signs in.
//
// Put the throttle around the cache if people chose the secrets and strangers share their
// addresses. Guesses are then always limited, but an empty bucket refuses the client too.
//
// Slow hashes are computed by a few checks at a time. Sources that the id has signed in
// from, as a Throttle reports, are next; the queue of the others is shared fairly between
// networks and bounded, and the check that finds no place in it fails with [ErrBusy]
// (503).
package auth
