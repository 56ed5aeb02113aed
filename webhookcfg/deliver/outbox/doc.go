// Package outbox sends the notifications that you enqueue in your own database transactions.
// The queue is in your database, and needs nothing else.
//
//	sender, err := deliver.New(webhooks, keys, &deliver.Options{Health: health})
//	box, err := outbox.New(db, sqlstore.PostgreSQL(), sender, nil)
//	err = box.Migrate(ctx)
//	go box.Run(ctx) // in any number of processes
//
//	tx, err := db.BeginTx(ctx, nil)
//	// … change what the notification is about …
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
// Pass the outbox as Notifications of the handler's options. Clients then see their
// notifications in package portal, and can send them again, under the same pauses and limits as
// new ones. Even one that sends very many again doesn't delay others, because a process makes
// only 500 of them due at a time.
//
// # What it needs
//
// The outbox works on PostgreSQL 13, MariaDB 10.6 and SQLite 3.38, or later, with the settings
// that package sqlstore asks for. MySQL 8 should work, but the tests never ran on it. A process
// uses a few connections of the pool, but one is enough.
package outbox
