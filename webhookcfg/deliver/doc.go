// Package deliver sends a notification to the webhook in effect, once, and reports what
// happened.
//
//	sender, err := deliver.New(webhooks, keys, nil)
//
//	result := sender.Send(ctx, client, entity, deliver.Message{ID: id, Body: body})
//	decision := deliver.StandardSchedule().Next(attempt, result) // done, retry or set aside
//
// You bring the queue. Put a client, an entity and a [Message] into it, but no URL and no key:
// each attempt looks them up, so queued messages always use the current ones. The package
// starts no goroutine, and there is nothing to close.
//
// # Write a worker
//
// Call [Sender.Send], then [Schedule.Next], and follow the [Decision]: remove the message,
// retry it after a delay, or set it aside. You can replay it later under the same ID.
//
//	outcome        what happened                                 decision
//	Delivered      status 200 to 299                             done
//	Failed         another status, no response, no connection,   retry, until the schedule is
//	               or an address that the policy denies          used up; then set aside
//	Deferred       not an attempt: a limit was reached, the      retry after Result.Wait
//	               receiver is paused, your store or your keys
//	               were unavailable, or you cancelled ctx
//	Undeliverable  no webhook is in effect, it was stopped, or   done
//	               status 410
//	Undeliverable  the policy refuses the URL, or the message    set aside
//	               is invalid
//
// Only the status counts, and redirects aren't followed.
//
// Messages can arrive twice, and out of order. Give each an ID that stays the same
// ([MessageID]) and put the entity's version into the body. The receiver can then ignore an
// ID that it has seen, and a version older than the one it has.
//
// # Keep one receiver from blocking the others
//
// A receiver that hangs would soon hold all workers of a queue. So Send makes at most
// [Options.PerClient] attempts at a time for a client, and [Options.PerReceiver] for a client
// at one host and port. Set [Options.Limits] to give a client other limits.
//
// If a slot should become free within [Options.Patience], Send waits for it. Otherwise it
// returns [Deferred] at once, with a Wait that spreads the waiting messages over time.
//
// After five failures in a row the sender pauses a receiver, for five seconds at first, then
// doubling up to [Options.MaxPause], and tries it with one request at a time. A receiver can
// ask for a pause with Retry-After. [Sender.Receivers] lists the pauses and [Sender.Resume]
// ends one. [Options.OnRecovered] tells you when a receiver works again, and you can make its
// waiting messages due.
//
// Set your queue up like this, and a healthy receiver gets a backlog as fast as its slots
// allow, with about one deferral a message:
//
//   - Divide the clients among several queues, with 192 workers each. Waiting workers are
//     cheap, and at most half of them can wait for slots of one client.
//   - Fetch messages for free workers every 20 milliseconds, and look for messages that have
//     become due every 200.
//   - Put a client's messages into another queue once it has a few hundred in the first one.
//     There, let a worker keep a message for a busy receiver for half a second of its Wait
//     before it defers it. The queue then writes less.
//
// Each [Sender] has its own limits. With n processes, a receiver can get n times as many
// requests at a time.
//
// # Sign messages
//
// Requests are signed according to version 1.0 of the Standard Webhooks specification, with
// HMAC-SHA256 and a [Key] for each client. Show the client [Key.Reveal]. [DerivedKeys]
// computes all keys from a master secret, so you don't store any. If you do store keys,
// encrypt them and implement [Keys].
//
// To rotate a key, return the new one in front of the old one until the client has switched.
// Until then, requests carry a signature with each of them. These keys are separate from the
// secret that a client signs in with.
//
// All receivers of a client share its key. If a client has webhooks at two vendors, either
// could forge requests to the other, so it should use two client identifiers.
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
// Give the handler and the sender the same [Health]. Clients then read how their deliveries
// go. A webhook gets no more messages once its receiver responds with 410 or has failed for
// five days. The client's configuration doesn't change: deliveries go on when it sets the
// webhook again, or when a test succeeds ([Sender.Test]).
//
//	health, err := deliver.NewHealth(sqlStore, nil)
//	handler, err := webhookcfg.NewHandler(sqlStore, verifier, &webhookcfg.Options{Reads: true, DeliveryStatus: health.Status})
//	sender, err := deliver.New(sqlStore, keys, &deliver.Options{Health: health})
//
// The store of package store/sqlstore keeps the records for all processes. With any other
// store pass nil, and run the handler and the sender in one process. Set
// [HealthOptions.OnChange] to tell clients about a stop.
//
// # Log results
//
// You can log a [Result]: it never shows the path or query of a URL, or anything from a
// response but its status. Don't show results to clients, though. A client that could read
// statuses and times could scan networks that it can't reach itself. [Reason.Public] is what
// they may see.
package deliver
