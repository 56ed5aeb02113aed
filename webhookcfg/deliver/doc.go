// Package deliver makes one attempt to deliver a notification to the webhook that is in
// effect, and reports what became of it.
//
//	sender, err := deliver.New(webhooks, keys, nil)
//
//	result := sender.Send(ctx, client, entity, deliver.Message{ID: id, Body: body})
//	decision := deliver.StandardSchedule().Next(attempt, result) // done, retry or set aside
//
// It has no queue, no goroutine and no table of its own: what is to be sent, and when
// again, is kept by a queue of the host, which needs nothing but [Result] and [Schedule].
// An entry of the queue is a client, an entity and a [Message]. It has no URL and no key,
// so that what waits follows every set, every unset and every rotation.
//
// # Outcomes
//
// Only the status of a response counts, and only 2xx is success.
//
//	outcome        what happened                                 message
//	Delivered      status 200 to 299, whatever the body does     done
//	               then
//	Failed         another status (no redirect is followed),     waits, until the schedule is
//	               no response, no connection, or an address     used up; then set aside
//	               that the policy denies
//	Deferred       a limit is reached, the receiver is paused,   waits for Result.Wait; this
//	               the store, the keys or Policy.LocalAddrs      was not an attempt
//	               failed, or the caller cancelled
//	Undeliverable  no webhook is in effect, it was stopped, or   done
//	               status 410
//	Undeliverable  the policy refuses the URL, or the message    set aside
//	               is invalid
//
// [Schedule.Next] returns what to do with the message as a [Decision], so a worker of any queue
// is one switch. A message that is set aside is kept for a replay, which sends it with the same
// ID, or dropped: that's up to you.
//
// A message may arrive more than once: a receiver may have processed a request whose
// response never arrived. It recognises the message by its ID. Within one attempt, net/http
// sends the request again if a connection that was idle closes, at most once for each.
//
// # Limits
//
// Most queues let one receiver that hangs occupy all their workers. Send allows
// [Options.PerClient] attempts at a time for a client, and [Options.PerReceiver] for a client
// at one host and port, its receiver. You can give clients other bounds with [Options.Limits].
//
// If a slot is likely to become free within [Options.Patience], Send waits for it: first come,
// first served, up to 6 calls for each slot of the client and 16 for each slot of the
// receiver. Otherwise it returns [Deferred] at once, with a Wait that distributes what waits
// over the time to come. It never waits for a receiver whose last attempt failed.
//
// A receiver that failed five times in a row is paused: it is called by one attempt at a time,
// after pauses that start at five seconds and double up to [Options.MaxPause]. It can ask for
// a pause with Retry-After, up to the same limit. [Sender.Receivers] lists the pauses,
// [Sender.Resume] ends one, and [Options.OnRecovered] tells you when one has ended well, so
// that you can make due what waits for the receiver.
//
// With the defaults, a queue uses the slots of a healthy receiver, and defers a message about
// once, if it has 192 workers for each shard of clients, so that the calls that wait for one
// client hold at most half of them, refills free workers every 20 milliseconds, and wakes what
// is due every 200 milliseconds. Workers cost nothing while their messages wait. If a client
// has hundreds of messages in your queue, put more of them into a queue of their own: they
// pass through the workers once before they are deferred.
//
// The limits are those of one [Sender]. Of n processes, each has its own: a receiver may get
// n times as many requests at the same time.
//
// # Time
//
// [Options.Timeout] bounds an attempt, at whatever step the receiver is slow, and the
// context of the caller bounds all of Send. A receiver that has not responded by the earlier
// deadline has failed; if the caller cancels the context, as at a shutdown, the message is
// deferred. After the header of a response, at most 4 KiB and 250 milliseconds are spent on
// its body, for the sake of the connection. A queue whose jobs have a time limit should give
// them a few seconds more than Timeout.
//
// # Keys
//
// Requests are signed as the Standard Webhooks specification 1.0 defines, with HMAC-SHA256
// and a [Key] that the host gives the client: [Key.Reveal] is the text for the client's
// settings. [DerivedKeys] computes the key of each client from a master, so that none is stored;
// a host that stores keys encrypts them, and implements [Keys]. To rotate a key, return the
// new one in front of the old one until the client has changed it: requests then have a
// signature with each. The secret with which a client signs in is not such a key.
//
// All receivers of a client verify with the same key. If a client has webhooks at two
// vendors, either could forge requests to the other; it should have them under two client
// identifiers.
//
// # Receivers
//
// A receiver verifies a request with a library of Standard Webhooks, and the bytes of the
// body as they arrived:
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
// It responds with 2xx as soon as it has stored the message, and does the work later; it
// ignores an ID that it has seen; it responds with 410 if it wants no further message. With
// [Challenge], a URL can be set only if its receiver proves that it has the key.
//
// # Consent
//
// With [Challenge], the handler sets a URL only after its receiver has signed a random text
// with a key of the client. That proves that the receiver agrees to the notifications of
// this client, and that it has the right key, before the first of them is sent. Clients need
// their key first, and a receiver that responds to challenges, so this is not the default:
//
//	challenge, err := deliver.Challenge(keys)
//	prober, err := policy.Prober(&egress.ProberOptions{HTTPProbe: challenge})
//	handler, err := webhookcfg.NewHandler(store, verifier, &webhookcfg.Options{Policy: policy, Prober: prober})
//
//	# A receiver in Python
//	webhook = Webhook("whsec_…")
//	event = webhook.verify(body, headers)  # raises
//	if event["type"] == "webhook.challenge":
//	    sent = datetime.fromtimestamp(int(headers["webhook-timestamp"]), timezone.utc)
//	    return webhook.sign(headers["webhook-id"], sent, event["challenge"])
//
// # Health
//
// With a [Health] in [Options.Health] and [Health.Status] in
// [webhookcfg.Options.DeliveryStatus], a client reads how the deliveries to its webhook go.
// A webhook whose receiver responded with 410, or failed for five days, gets no more messages
// until the client sets it again, or a test of it is delivered ([Sender.Test]). The configuration
// is never changed:
//
//	health, err := deliver.NewHealth(sqlStore, nil)
//	handler, err := webhookcfg.NewHandler(sqlStore, verifier, &webhookcfg.Options{Reads: true, DeliveryStatus: health.Status})
//	sender, err := deliver.New(sqlStore, keys, &deliver.Options{Health: health})
//
// The store of package store/sqlstore is a [HealthStore], with which all processes have the
// same records, also after a restart. Call its method Migrate first. The stores in memory, in
// a file and in etcd are not HealthStores: with them, pass nil, and run the handler in the
// process of the sender.
//
// A stop is only logged, unless you tell the client: see [HealthOptions.OnChange].
//
// # Order
//
// Messages do not arrive in the order in which they were enqueued: an attempt that failed is
// made again after later ones. Put the version of the entity into the body, and no more of
// the entity than needed: a receiver keeps the highest version, or reads the present state.
// With [MessageID] of client, entity and version as its ID, an event that was enqueued twice is
// one message.
//
// # Secrets
//
// However it is printed, a [Result] has no path and no query of a URL, and nothing of a
// response but its status; a [Key] shows nothing. Results are for the host. A client that
// could read the status or the time of a response could scan networks that it cannot reach.
package deliver
