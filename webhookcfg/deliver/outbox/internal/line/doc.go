// Package line decides what a client's notifications do next. It has a client's webhooks, and a
// window of the notifications that were read from the tables. It does no I/O, and has no lock and no
// clock: events and answers go in, questions, starts and writes come out.
//
// # The law
//
// A notification that waits is in the window, or in a group in the tables, and the line knows when
// to ask for that group. Whoever takes one out of the window says in which group it's found again.
//
// # Groups
//
// Each waiting notification has a group. It says under which setting of which webhook it was tried
// or sorted last: that of the client's base, or of an override. Two groups have those that nobody
// has looked up yet: Fresh, what was just enqueued, and Again, what was sent again. So a webhook's
// own notifications are a range of an index, and so are those of its former settings. A set writes
// nothing, whatever waits: the groups of the new setting are empty, and what's in the former ones
// may go at once.
//
// # What happens to a notification
//
//  1. It's read from Fresh, and its webhook is looked up.
//  2. If the webhook isn't paused and has room in the window, it's there, and starts when there's a
//     slot: those of an entity one after another, webhooks in turn. Those that were tried before have
//     half of a host's slots while others wait, and webhooks whose last attempt wasn't a success half of
//     the client's.
//  3. Otherwise it's sorted: it moves to the webhook's group, and is read again when that can
//     take it. So nothing that can't go stands in front of what can. If the client has no overrides,
//     there's nothing to sort, and it stays where it is.
//  4. After a failure it's in the webhook's group of those that were tried, until its retry is due.
//
// # Webhooks and hosts
//
// A webhook is what fails. After five failures in a row it pauses, and then makes one attempt at a
// time until one succeeds. It also pauses for as long as its receiver asks. A host pauses only if
// nobody can connect to it, five times in a row, for all webhooks that lead there, until somebody can.
//
// A 410 counts as a failure, and ends the notification. If the host has a Health, that stops the
// webhook, and what waits for it ends without an attempt.
//
// Another setting forgets all that, unless the URL is the same: then one attempt is made at once, at
// most once a minute, and what's known stays until one succeeds. A setting is another one if it
// isn't equal to the one before, whichever is later.
//
// # Questions
//
// A question asks for pages of up to sixteen groups, and there's one at a time. A group is asked for
// when there's news of it, or a retry in it is due, and its webhook isn't paused and has room. What
// would be refused isn't asked for, so a question that brings nothing isn't repeated. If as many came
// as were asked for, there may be more, so the group is asked for again.
//
// An entity whose webhook has changed may have notifications in groups of others: they're gathered,
// by the entity's name. An entity that has its share of the window, or for which our own side has
// failed, is left out of questions by name until that's over.
//
// # Failures on our side
//
// If a webhook can't be looked up, or a request can't be made ready, nothing is counted, and nothing is said
// about the webhook. The entity rests for a second, and for longer after each further failure, up to
// half a minute. After eight of them in a row, or if a question can't be answered, all of the client
// rests for a second.
//
// # If a process ends or comes
//
// A line belongs to one process at a time. Only what an attempt brought is written, so what a killed
// process had is still where it was read. Within five seconds another one has the line, with its
// pauses, and reads all of that again; so what was under way is sent twice. It doesn't know the URLs
// of before, so the next setting counts as another URL. A process that comes gets its share of the
// lines once what's under way at them has ended, and the line starts afresh there.
package line
