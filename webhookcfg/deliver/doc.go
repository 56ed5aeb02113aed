// Package deliver sends a notification to the webhook in effect, once, and reports what
// happened.
//
//	sender, err := deliver.New(webhooks, keys, &deliver.Options{Health: health})
//	box, err := outbox.New(db, sqlstore.PostgreSQL(), sender, nil)
//	err = box.Migrate(ctx)
//	err = box.Run(ctx) // blocks until ctx ends
//
// A [Sender] makes single attempts. Give it to package
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox], which keeps the notifications in your
// database, calls the Sender for each of them and repeats what failed. You enqueue a client, an
// entity and a [Message], but no URL and no key: each attempt looks them up, so queued messages
// always use the current ones.
//
// Messages can arrive twice, and after a failure out of order. Give each an ID that stays the
// same ([MessageID]) and put the entity's version into the body, so that the receiver can ignore
// an ID that it has seen, and a version older than the one it has.
//
// # Keep one receiver from blocking the others
//
// A receiver that hangs would soon take all that a process can send at a time. So a [Sender]
// makes at most [Options.PerClient] attempts at a time for a client, and [Options.PerHost]
// for a client at one host and port. Set [Options.Limits] to give a client other limits.
//
// After five failures in a row the sender pauses a webhook, for five seconds at first, then
// doubling up to [Options.MaxPause], and tries it with one request at a time. Its receiver can
// ask for a pause with Retry-After. Other webhooks of the client at the same host go on, unless
// nobody can connect to it: that pauses all of them, until there's any response.
//
// A pause ends early when the client sets another URL. If it sets the same one again, one attempt
// is made at once, but at most one such a minute. [Sender.Failing] lists pauses, and [Sender.Resume]
// ends one. With package outbox, use
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox.ClientStats] and
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox.Changed] instead: the outbox has the
// same limits and pauses, but keeps them itself.
//
// # If you have a queue of your own
//
// Let each job call [Sender.Send] and then [Schedule.Next], which says whether the message is
// done, due again or set aside:
//
//	result := sender.Send(ctx, client, entity, deliver.Message{ID: id, Body: body})
//	decision := deliver.StandardSchedule().Next(attempt, result)
//
// [Sender.Send] never waits for a slot: if there's none, or the webhook is paused, the outcome
// is [Deferred], with a random [Result.Wait] of a tenth of a second or more. So your queue needs
// delays from a tenth of a second to a day, while many have whole seconds only, and a count of
// attempts that a deferral doesn't change. It also needs workers for each client with much to
// send, or at least for each group of clients: while a receiver is busy, its messages come back
// again and again, and in a pool that all clients share, those of the others wait behind them.
//
// Give a client as many workers as its receiver has slots, and nothing is deferred. With more
// workers and delays of whole seconds, a backlog gets a fifth of the slots or much less
// (TestShareOfAHostsQueue has the figures). Package outbox fills the slots without deferrals, with
// any number of clients and workers, and only it shares the limits and pauses: otherwise each
// [Sender] has its own, so with n processes a receiver can get n times as many requests at a time.
//
// # Sign messages
//
// Requests are signed according to version 1.0 of the Standard Webhooks specification, with
// HMAC-SHA256. The file standard-webhooks.md goes through its other points. You choose who shares
// a [Key], and give [New] the [Keys]:
//
//   - [DerivedKeys] computes a key for each client from a master secret, so you don't store any.
//     The client can have it before it sets a webhook.
//   - [DerivedOriginKeys] computes one for each scheme, host and port that a client uses. If a
//     client has webhooks at two vendors, neither can forge messages to the other.
//   - With [Keys] of your own, you can have one for each webhook: a [Recipient] names the
//     client, the entity and the URL. Encrypt the keys that you store.
//
// Show the client [Key.Reveal]. To rotate a key, return the new one in front of the old one
// until the client has switched. Until then, requests carry a signature with each of them.
// These keys are separate from the secret that a client signs in with.
//
// If your receivers know another format from before, add that signature, too, in
// [Options.Prepare].
//
// A receiver verifies the body as it arrived, with a Standard Webhooks library:
//
//	// Go: github.com/standard-webhooks/standard-webhooks/libraries/go
//	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
//	webhook, err := standardwebhooks.NewWebhook("whsec_…")
//	err = webhook.Verify(body, r.Header)
//
//	// JavaScript: npm install standardwebhooks
//	import { Webhook } from "standardwebhooks";
//	new Webhook("whsec_…").verify(body, request.headers); // throws
//
//	# Python: pip install standardwebhooks
//	from standardwebhooks.webhooks import Webhook
//	Webhook("whsec_…").verify(body, request.headers)  # raises
//
//	// Java: github.com/standard-webhooks/standard-webhooks/libraries/java
//	new com.standardwebhooks.Webhook("whsec_…").verify(body, headers); // throws
//
// It should respond with 2xx as soon as it has stored the message, and with 410 if it wants
// no more messages. With [Challenge], a client can only set a URL whose receiver has its key.
//
// # Stop dead webhooks, and show clients how deliveries go
//
// Give the sender a [Health], and the handler the sender's [Sender.Status]. Clients then read how their
// deliveries go. A webhook gets no more messages once its receiver responds with 410 or has failed for
// five days. The client's configuration doesn't change: deliveries go on when it sets another URL, or
// the same one again and that's accepted, or when a test succeeds ([Sender.Test]).
//
//	health, err := deliver.NewHealth(sqlStore, nil)
//	sender, err := deliver.New(sqlStore, keys, &deliver.Options{Health: health})
//	handler, err := webhookcfg.NewHandler(sqlStore, verifier, &webhookcfg.Options{Reads: true, DeliveryStatus: sender.Status})
//
// The store of package [example.com/go-webhookcfg/store/sqlstore] keeps the records for all
// processes. With any other store pass nil, and run the handler and the sender in one process.
// Set [HealthOptions.OnChange] to tell clients about a stop.
//
// # Log results
//
// You can log a [Result]: it never shows the path or query of a URL, or anything from a
// response but its status. Don't show results to clients, though. A client that could read
// statuses and times could scan networks that it can't reach itself. [Reason.Public] is what
// they may see.
package deliver
