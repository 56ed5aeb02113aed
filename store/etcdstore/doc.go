// Package etcdstore keeps the webhook configuration in the etcd cluster that you already run.
//
//	client, err := clientv3.New(clientv3.Config{
//		Endpoints:         endpoints, // of all members
//		TLS:               tls,
//		DialKeepAliveTime: 10 * time.Second,
//	})
//	st, err := etcdstore.New(client, nil)
//	go st.SweepEvery(ctx, time.Hour)
//	h, err := webhookcfg.NewHandler(st, verifier, nil)
//
// Any number of processes can share the keys of one prefix. Operations on one client are
// linearizable, and an acknowledged change is on the disks of a majority of the members. A
// change is one request, and so is a resolve. Changes take no locks and never conflict.
//
// The tests check this on clusters of three members, with several replicas, while members are
// killed and network paths frozen.
//
// # Set up the client
//
// Give the client the endpoints of all members, since it sends its requests to them in turn. Set
// DialKeepAliveTime too, to 10 seconds or more: otherwise the client never closes the connection
// to a frozen member, and each request on it blocks until its ctx ends.
//
// The user needs to read and write the keys under [Options.Prefix]. In one cluster, no store's
// prefix may be the start of another's. URLs are stored in plain text, so encrypt the members'
// disks and backups.
//
// # Keep space free
//
// By default, etcd limits a request to 1.5 MiB and the database to 2 GiB. Enable
// auto-compaction-retention, because replaced values take space until they're compacted, and
// defragment the members from time to time. Once a member's database is full, all changes
// fail until you have freed space and disarmed the alarm.
//
// A set-all leaves the overrides that it dropped, and an unset can leave a key too.
// [Store.SweepEvery] deletes them. Run it in a goroutine, or call [Store.Sweep] regularly, for
// instance every minute with a limit of a thousand keys.
//
// # Read from a copy, and follow changes
//
// If you send many notifications, read through a [cache.Cache]. The store is a [cache.Feed]
// and a [cache.Notifier], and learns of changes through a watch. You need etcd 3.5.13 or
// later: members of earlier versions can report progress past events that they haven't sent, or
// not respond at all. See [Store.Changes].
//
// The store has no records of deliveries. Pass nil to
// [example.com/go-webhookcfg/webhookcfg/deliver.NewHealth], which then only knows the deliveries
// of its own process.
//
// # Outages
//
// Without a majority of the members, changes and reads fail when their ctx ends, or earlier.
// The handler responds with 503, and the store recovers as soon as the cluster does. Have an
// alert call [Store.Healthy].
//
// A change that fails may have been made all the same: its error wraps [ErrOutcomeUnknown]
// unless etcd has rejected it. The store doesn't try again, because that could undo a later
// change of another process.
//
// # Back up and move
//
// Back up with snapshots of etcd. If you restore one, restart the processes that have a cache,
// or restore it with a bumped revision. A store can't always tell that the cluster went back in
// time: it only notices a lower revision, or a new id of the cluster.
//
// A copy of the keys isn't a backup, whether etcdctl make-mirror or something else makes it. It
// gives the keys new revisions, and overrides that a set-all dropped come back. To move a store
// to another cluster, stop all changes and call [Store.Sweep] on a new Store until it's done.
// Then copy one key at a time in the order of the keys, so that the base of a client, the
// default webhook, comes before its overrides.
//
// # Look at the keys
//
// Don't delete the key of a base yourself. An override only counts if its revision is later
// than the base's, so overrides that the base had dropped would come back. Use [Store.Erase].
//
// In etcdctl, the keys look like this:
//
//	webhookcfg/acme/      2 1767323045000000 https://hooks.example.com/all    the base of acme
//	webhookcfg/acme/e1    2 1767323046000000 https://hooks.example.com/e1     an override
//	webhookcfg/acme/e2    2 1767323047000000                                  an override that is off
//
// A value has the version of its format, the Unix time of the change in microseconds, and the
// URL. Before you upgrade, read the section Upgrade of CHANGELOG.md: older programs can't read
// values of a newer format.
//
// Entities are stored byte for byte. In a client's name, '/', '%' and all other bytes that a
// path segment of a URL can't have are percent-encoded.
package etcdstore
