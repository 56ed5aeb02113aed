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
// If the transaction is committed, the notification is sent, at least once; otherwise never.
// Call [Outbox.Changed] when a client sets or unsets a webhook, so that what waits is sent at
// once.
//
// # What it does for each client
//
// Each client has a line, and one process at a time drains it, so the limits of
// [deliver.Options] and the pauses of failing receivers hold for all processes together. A
// receiver that hangs delays neither other clients nor other receivers of its client. A backlog
// delays them as little, because it only gets what the process and the database have to spare.
//
// Notifications of one entity are sent one after another, in the order of enqueueing. While
// one waits for a retry, the later ones go ahead, unless you set [InOrder].
//
// If a process is killed, others go on with its clients within five seconds. Receivers can
// then get a notification again that they had within the last tenth of a second, under the
// same ID.
//
// # What clients see
//
// Pass the outbox as [example.com/go-webhookcfg/webhookcfg/portal.Options.Notifications]. Clients
// then see their notifications on their page, and can send them again, under the same pauses and
// limits as new ones. For an API of your own, there's [sent.View]. Even one that sends very many again doesn't delay others,
// because a process makes only 500 of them due at a time.
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
// MySQL a short wait_timeout. These hold for all transactions of the pool, also yours: if yours idle
// for longer, give Run a pool of its own. Enqueue works in a transaction of any pool. On SQLite,
// others wait until the process goes on or is killed. [Outbox.Check] warns of this and of other
// settings.
//
// A notification that's delivered at once makes two versions of its row, and one that waits for
// longer than a tenth of a second makes three. Each further attempt makes another. PostgreSQL and
// InnoDB can't remove old versions while a transaction is open that might still see them. So don't
// keep transactions open for hours, not even ones that only read, as a backup or a report does:
// with one open on PostgreSQL during 100,000 deliveries, each look for work read 2,100 pages
// instead of 4, and took 60 milliseconds. Run those on a standby. The tables recover once the
// transaction has ended.
package outbox
