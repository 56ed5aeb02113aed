// Package outbox sends the notifications that you enqueue in your own database transactions.
// The queue is in your database, and needs nothing else.
//
//	sender, err := deliver.New(webhooks, keys, &deliver.Options{Health: health})
//	box, err := outbox.New(db, sqlstore.PostgreSQL(), sender, nil)
//	err = box.Migrate(ctx)
//	err = box.Run(ctx) // blocks until ctx ends, in any number of processes
//
// If Run returns an error, the process sends nothing more, so let it end the process. Meanwhile,
// enqueue in the transaction that changes what the notification is about:
//
//	tx, err := db.BeginTx(ctx, nil)
//	// … make the change …
//	err = box.Enqueue(ctx, tx, outbox.Notification{
//		Client: client, Entity: entity,
//		Message: deliver.Message{ID: deliver.MessageID(client, entity, version), Body: body},
//	})
//	err = tx.Commit()
//	box.Committed(client)
//
// If the transaction is committed, the notification is sent to the webhook that's in effect by then,
// at least once; otherwise never. Without a webhook in effect it's dropped, and after the last
// attempt of [Options.Schedule] it's given up. Both stay in the tables for a month, and can be sent
// again.
//
// Call [Outbox.Changed] when a client sets or unsets a webhook, so that what waits is sent at once.
// Pass a [deliver.Resolver] that is a [webhookcfg.Lister], as all stores of this module are: without
// one, what waits for a base that's paused is sent at the end of its pause, even if it's set again.
//
// # What it does for each client
//
// One process at a time sends a client's notifications, so the limits of [deliver.Options] hold for
// all processes together. The processes share the clients among themselves: one that comes has its
// share within seconds. If one is killed, others go on with its clients within five seconds.
// Receivers can then get again, under the same ID, what was under way and what they had within the
// last tenth of a second.
//
// A webhook is what fails: the client's base, or an override. After five failures in a row it pauses
// for five seconds, then for twice as long after each further one, up to [deliver.Options.MaxPause],
// and it gets one attempt at a time until one succeeds. A receiver can also ask for a pause, with
// Retry-After. The client's other webhooks go on, also those on the same host. A host as a whole
// pauses only while nobody can connect to it. Pauses are in the tables, so they last if another
// process takes over.
//
// Another URL ends all that, and what waits is sent at once, retries too. The same URL, set again,
// gets one attempt at once, at most once a minute, and if that succeeds, the others follow.
//
// Notifications of one entity are sent one after another, in the order of enqueueing. A later one can
// arrive first after a failure, a pause or a kill, if its webhook is set meanwhile, or if the earlier
// one is sent again. If your receivers have to know, put a version into the body.
//
// A backlog delays others as little as possible. If more clients have something to send than
// [Options.Clients], half of them are those with something new, and all backlogs of a process
// together have some hundred attempts under way.
//
// # When your own side fails
//
// If the store, the keys or [deliver.Options.Prepare] fail, the entity rests for 1 to 30 seconds,
// and that doesn't count as an attempt. While the store fails, notifications wait. If the keys or Prepare
// still fail a day after the schedule would have ended, the notification is given up. If an error wraps
// [webhookcfg.ErrInvalidArgument], it's given up at once, with the reason "message", and those behind it
// go on.
//
// # What clients see
//
// Pass the outbox as [example.com/go-webhookcfg/webhookcfg/portal.Options.Notifications]. Clients
// then see their notifications on their page, and can send them again, under the same pauses and
// limits as new ones. For an API of your own, there's [sent.View]. Even a client that sends very
// many again doesn't delay others, because a process makes only 500 of them due at a time.
//
// # When nothing arrives
//
// [Outbox.ClientStats] says how much waits for a client, which of its webhooks are paused, and until
// when. [deliver.Sender.Failing] doesn't know them. [Outbox.Stats] is for metrics, and
// [Outbox.Healthy] for an alert.
//
// # What it needs
//
// The outbox works on PostgreSQL 13, MariaDB 10.6 and SQLite 3.38, or later, with the settings
// that package [sqlstore] asks for. MySQL 8 should work, but the tests never ran on it. A
// process uses a few connections of the pool, but one is enough. On SQLite, see that your own
// transactions take the write lock when they begin ([sqlstore.SQLite]), or those that read before
// they enqueue can fail with SQLITE_BUSY.
//
// If a process freezes or loses its network in the middle of a transaction, others can go on with
// its clients only when the server has ended that transaction. On PostgreSQL the outbox asks the
// server to do so within four seconds. On MariaDB, set idle_write_transaction_timeout to 4, and on
// MySQL a short wait_timeout. These two hold for all transactions of the pool, also yours: if yours
// idle for longer, give Run a pool of its own. Enqueue works in a transaction of any pool. On SQLite,
// others wait until the process goes on or is killed. [Outbox.Check] warns of this and of other
// settings.
//
// A notification that's delivered at the first attempt makes two versions of its row. Each further
// attempt makes another, and so can a webhook that's paused or behind. PostgreSQL and InnoDB can't
// remove old versions while a transaction is open that might still see them. So don't keep
// transactions open for hours, not even ones that only read, as a backup or a report does: each look
// for work then reads them all. Run those on a standby. The tables recover once the transaction has
// ended.
package outbox
