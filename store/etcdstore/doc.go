// Package etcdstore keeps the webhook configuration in an etcd cluster, for services
// that run on several machines and already operate such a cluster.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: tls})
//	…
//	st, err := etcdstore.New(client, nil)
//
// # Guarantees
//
// A [Store] complies with every clause of [webhookcfg.Store], through any number of
// handles in any number of processes: the operations on one client are linearizable,
// and an acknowledged change is on the disks of a majority of the members. A change is
// one request, and so is a resolve. No change reads before it writes, so there are no
// locks and no conflicts, and set-all costs no more than a set.
//
// This relies on etcd's revision counter. A client has a key for its base and one for
// each override. Set-all writes only the key of the base, and an override counts only
// if it was written at a later revision than the base. Therefore never delete the key of a base
// yourself: overrides that it had dropped would come back. Unset-all writes a base without a URL,
// and [Store.Erase] deletes it in a transaction that finds no override.
//
// Reads are confirmed by a majority too. Etcd's serializable reads, which a member
// serves from its local state, may be stale; this package does not use them.
//
// These statements are tested on clusters of three members: histories of several replicas
// are checked for linearizability while members are killed and network paths frozen.
//
// How deliveries go is not kept in etcd: with this store, a Health of package
// webhookcfg/deliver has what its own process delivered.
//
// # Change detection
//
// A [Store] is a [cache.Feed] and a [cache.Notifier]. Changes arrive through a
// watch; a barrier proves that none is missing: it reads the revision of the cluster,
// confirmed by a majority, and waits until the watch has passed it. A watch on a frozen
// network path delivers nothing, not even an error. The barrier then fails after
// [Options.BarrierTimeout], and the watch is restarted without a gap, on another
// connection if there is one. Changes returns a Reset on the first call, when the
// history since the cursor was compacted or exceeds [Options.History], and when the
// cluster is found to have gone back in time.
//
// The watch requires etcd 3.5.13, 3.6.0 or later: earlier members could report progress
// past events that they had not sent, or not respond at all.
//
// # Limits
//
// Without a majority of the members, changes and reads fail when their ctx ends, or
// earlier. A change fails with [ErrOutcomeUnknown] unless etcd is known to reject changes
// with its error, such as for lack of permission. [Store.Healthy] tells an alert about it. It is not retried, since a retry could
// undo a later change of another process.
//
// A [Store] sends one change of each client at a time, so that no client makes those of
// others wait for more than that in each process.
//
// The client sends its requests to the members in turn. A request to a frozen member
// blocks until its ctx ends, and so do others until the client's keepalive closes the
// connection.
//
// By default, a request is limited to 1.5 MiB and the database to 2 GiB. Replaced values
// take space until they are compacted: enable auto-compaction-retention, and defragment
// the members from time to time. While the database of a member is full, every change
// fails until space is freed and the alarm is disarmed. Those that fail first may have been
// applied, so their error wraps [ErrOutcomeUnknown].
//
// Overrides dropped by set-all stay in the database until [Store.Sweep] deletes them, as
// does the key of an entity that was unset without a base. A page of [Store.List] skips
// such keys, and ends before its limit after 4,096 of them. Run [Store.SweepEvery] in a goroutine,
// or call Sweep regularly, for instance every minute with a limit of a thousand keys.
//
// # Operation
//
// The client determines addresses, certificates and the user, who needs to read and
// write the keys under [Options.Prefix]. URLs are stored in plain text: encrypt the disks
// and the backups of the members. Configure the client with the endpoints of all members
// and a DialKeepAliveTime, without which it never closes a silent connection; values
// below 10 seconds count as 10. While there is no majority, the handler responds with
// 503; the store recovers as soon as the cluster does.
//
// Snapshots of etcd are the backup. Restoring one goes back in time, which a store
// detects only while the revision is lower than before, or if the cluster got another
// id: restart consumers that hold cursors, or restore with a bumped revision.
//
// A copy of the keys, such as by etcdctl make-mirror, is not a backup: it gives them new
// revisions, so that overrides dropped by a set-all come back. To move a store to another
// cluster, stop all changes, call Sweep on a new Store until it is done, and then copy one
// key at a time in the order of the keys, in which the base of a client precedes its
// overrides.
//
// Keys are text, except for entities, which are stored byte for byte. In etcdctl they
// read
//
//	webhookcfg/acme/      2 1767323045000000 https://hooks.example.com/all    the base of acme
//	webhookcfg/acme/e1    2 1767323046000000 https://hooks.example.com/e1     an override
//	webhookcfg/acme/e2    2 1767323047000000                                  an override that is off
//
// with the version of the format, the Unix time of the change in microseconds, and the URL.
// In values of version 1, which this version still reads, the time is in seconds. A program
// that knows only version 1 refuses values of version 2.
//
// In the name of a client, '/', '%' and all other bytes not allowed in a path segment of
// a URL are percent-encoded. No prefix of a store may be a prefix of another store's in
// the same cluster.
package etcdstore
