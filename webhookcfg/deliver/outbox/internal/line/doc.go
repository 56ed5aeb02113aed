// Package line decides what a client's notifications do next. There's one line for each client, in one
// process at a time. It has the client's webhooks, and a window: the notifications that were read from the
// tables. It does no I/O, has no lock, and is told the time with each call. Events and answers go in;
// questions to the tables, attempts to start and writes come out.
//
// # The law
//
// A notification that waits stands in a group in the tables, until what became of it is written. It's in
// the window, or the line knows when to ask for its group. Whatever takes one out of the window while it
// still waits marks the group in which it's found again.
//
// # Groups
//
// A webhook is the client's base, or the override of an entity. Each time it's set, it gets a new setting,
// a number. Each waiting notification has a group, which says for which setting of which webhook it was
// sorted or tried last. Two groups have those that haven't been sorted: Fresh, what was enqueued, and
// Again, what was sent again or put off. So a webhook's own notifications are a range of an index, and
// those of its former settings are, too. A set writes nothing, whatever waits: the groups of the new
// setting are empty. What's in the former ones needn't wait for its retry any more, and goes to the new
// URL. If an override is unset, what waits for it is the base's.
//
// # What happens to a notification
//
//  1. It's read from Fresh, or from Again, and its webhook is looked up.
//  2. If that isn't paused and has room in the window, the notification waits there for a slot: the client
//     has some, and each host. Webhooks take turns. One notification of an entity is under way at a time,
//     in the order in which they were enqueued, until one has failed, or was sent again or put off.
//  3. Otherwise it's sorted: it moves to the group of its webhook, and is read again when that can take
//     it. So what can't go doesn't stand in front of what can. While the client has no overrides, there's
//     nothing to sort, and it stays where it is.
//  4. If its attempt fails, it goes to the webhook's group of those that were tried, until its retry is
//     due. Later ones of its entity don't wait for it. How often it's tried, and when it's given up, the
//     caller decides.
//
// A retry, or one that was sent again, gets half of a host's slots at most while others wait, and webhooks
// whose last attempt wasn't a success, or that had none, half of the client's; always at least one. A
// notification for which no webhook is in effect ends without an attempt.
//
// # Webhooks and hosts
//
// A webhook is what fails. After five failures in a row it pauses, for five seconds at first and then for
// twice as long each time. After each pause there's one attempt, until one succeeds. A receiver can also
// ask for a pause (Retry-After), which is that of its webhook alone: others on the host go on. No pause is
// longer than Limits.MaxPause.
//
// A host is where several webhooks of the client may lead. If nobody can connect to it, five times in a row
// by all of them together, it pauses for all in the same way. That isn't a failure of the webhooks. As soon
// as one attempt has connected, they all go on.
//
// A 410 counts as a failure, and ends the notification. If the sender has a Health, which stops dead
// webhooks, this one leads nowhere from then on: what waits for it, and what comes, ends without an attempt
// until the Health lets it go on. Without a Health, what waits behind it is tried as after any failure.
//
// # If a webhook is set
//
// Another URL forgets all that's known: failures, pauses, and what was asked for. With the same URL, what's
// known stays until an attempt succeeds, and if the webhook is paused, there's just one, at once, but at
// most once a minute, however often it's set. Settings are compared for equality alone, so that it doesn't
// matter whose clock was fast.
//
// The entity of an override that was set may have notifications in any group, Fresh too. They're gathered,
// by the name of the entity, so they don't wait for others. What's enqueued from then on goes through
// Fresh. If the client had no override before, all that waits for a dead base may be there, unsorted. Then
// what's new waits once until that has been sorted, which takes as long as reading and writing it.
//
// # Failures on our side
//
// If a webhook can't be looked up, or a request can't be made ready, nothing is counted, and nothing is
// said about the webhook. The entity rests for a second, and for twice as long after each further failure,
// up to half a minute. After eight failures in a row, of whichever entities, or if a question can't be
// answered, the whole line rests for a second. So when a store that was down is back, all goes on within
// half a minute.
//
// # Questions
//
// A question asks for pages of up to sixteen groups, and there's one at a time. A group is asked for when
// something may have come to it, or a retry in it is due, and its webhook isn't paused and has room. If as
// many notifications came as were asked for, there may be more, and the group is asked for again. Otherwise
// no question is asked twice without an event between.
//
// An entity that has sixteen in the window, or that rests, is left out of questions by name until that's
// over. At most 64 rest at a time: what can't be looked up beyond that is put off, in Again, for about as
// long as it has waited, up to half a minute.
//
// # If a process ends or comes
//
// In the tables is where each notification stands, how often it was tried, and the pauses, which are
// written about once a second. What a line has in its window isn't taken out of the tables. If the process
// is killed, or hangs for that long, another one finds out within five seconds, and starts with what's
// there; what the first one writes after that is refused. If there's no other, that's when the next one
// starts. What was under way, or had ended and wasn't written, is sent again.
//
// A process that comes gets its share of the lines within seconds. The one that had a line starts nothing
// more, and hands it over with its pauses when what's under way has ended, so nothing is sent twice. If an
// attempt takes long, it goes on, and tries that again half a minute later. A process that has taken over a
// line doesn't know the URLs of before, so the next setting counts as another URL, even if it isn't.
package line
