// Package deliver makes one attempt to deliver a notification to the webhook that is in
// effect, and reports what became of it.
//
// It has no queue, no goroutine and no table of its own: what is to be sent, and when
// again, is kept by a queue of the host, which needs nothing but [Result] and [Schedule].
// An entry of the queue is a client, an entity and a [Message]. It has no URL and no key,
// so that what waits follows every set, every unset and every rotation.
//
// Requests are signed according to the Standard Webhooks specification, version 1.0.
package deliver
