// Package sealed wraps a [webhookcfg.Store], so that it holds the URLs of webhooks encrypted.
// Whoever gets hold of a database, a file, a log, a replica or a backup can't read them
// without your key.
//
//	key, err := sealed.NewKey("2026", secret) // 32 random bytes from your vault
//	keys, err := sealed.SharedKeys(key)
//	webhooks, err := sealed.New(sqlStore, keys, nil)
//
// From then on, use webhooks wherever you used the inner store: for the handler, the sender, the
// [cache] and package [admin]. The wrapper has the optional interfaces that the inner store has.
// Only what isn't about URLs still goes to the inner store itself: Migrate, Healthy, and the
// records of deliveries.
//
// Tools need the wrapper, too. A URL that one sets in the inner store itself is readable there,
// and without [Options.AllowPlain], your service then fails with [ErrEnvelope]. An audit of the
// inner store refuses every envelope. The tool in examples/admin takes the keys with
// -sealed-keys. A tool of yours can ask [IsEnvelope].
//
// URLs are encrypted with AES-256-GCM and a random nonce, and bound to their client and entity:
// an envelope that was changed, or copied to another place, is an error, and never another
// client's URL. An attacker who can write to your database can still put back an older envelope
// of the same webhook, or delete it. Clients, entities, times, and the length of each URL stay
// readable, and so does the name of the key. The view of package
// [example.com/go-webhookcfg/store/sqlstore] shows no origins.
//
// # A key for each client
//
// If your [Keys] return a different key for each client, for example one that your key
// management service has wrapped, then you can destroy it with the client's account. That
// makes its URLs unreadable wherever a copy of them is left. The example of [Keys] shows how.
//
// # Seal a store that is in use
//
// Set [Options.AllowPlain]. URLs that aren't encrypted yet can then be read, and they're
// encrypted when the client sets them next. Before you start the first process with the wrapper, stop
// all processes without it. One of these takes an envelope for a URL that no policy allows, and
// sets aside the notifications that it has for it.
//
// To encrypt all URLs at once, stop your service, copy the store with
// [example.com/go-webhookcfg/store/admin.Copy] into a sealed one, and start your service with that, without
// AllowPlain. A change that a client makes to the old store after the copy is lost. The tool in
// examples/admin reads such URLs only with -allow-plain.
//
// # Rotate keys
//
// If several processes use the store, first add the new key behind the old one in all of them,
// so that each can open what another seals. Then put the new key in front. Every set uses the
// new one from then on, and the old one still opens what it sealed. To get rid of the old key,
// copy the store into another one that is sealed with the new key alone, as the example of a
// rotation does. Stop your service for it, or what clients change meanwhile is lost. Nothing here rewrites URLs in place, because that could undo a change that a
// client has just made: a [webhookcfg.Store] has no way to replace a URL only if it's still the
// same.
package sealed
