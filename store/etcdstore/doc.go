// Package etcdstore keeps the webhook configuration in an etcd cluster, for
// services that run on several machines and have such a cluster already.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: tls})
//	…
//	st, err := etcdstore.New(client, nil)
//
// # What is promised
//
// A [Store] keeps every clause of [webhookcfg.Store], through any number of
// handles in any number of processes: the operations on one client are
// linearizable, and a change that was answered is on the disks of a majority of the
// members. A change is one request, and so is a resolve. No change reads before it
// writes, so there are no locks and no conflicts, and set-all costs what a set costs.
//
// It is etcd's own counter of revisions that does this. A client has a key for its
// base and one for each override. Set-all writes the key of the base, nothing
// else, and an override counts only if it was written at a later revision than the
// base was. Therefore the key of a base is never deleted, neither by this package nor
// by an operator: overrides that it had dropped would come back. Unset-all writes
// a base without a URL.
//
// Reads ask the majority too. One that a member answers from what it happens to
// know, which etcd calls serializable, may be behind; this package never uses it.
//
// # Copies
//
// A [Store] is a [cache.Feed] and a [cache.Waker]. What changed comes
// by a watch; that it is all comes from a barrier: a read that asks the majority
// for the revision of the cluster, and then a wait until the watch has passed it. A
// watch on a path that is frozen says nothing, no error either. The barrier then
// fails, after [Options.BarrierTimeout], and the watch is begun anew, where there is one
// on another connection, without a gap. The answer is a Reset on the first call, once
// the history in between was compacted, beyond [Options.History], and when the
// cluster is found to have gone back in time.
//
// The watch needs etcd 3.5.13, 3.6.0 or later: before, a member could claim to
// have sent what it had not, or not answer at all.
//
// # Limits
//
// Without a majority of the members there is neither a change nor a read; both
// fail when their ctx ends, or earlier. A change whose answer was lost fails with
// [ErrOutcomeUnknown] and is not tried again by itself, since it could then undo
// somebody else's. To make the same change again is up to the caller.
//
// The client sends its requests to one member after the other. One that went to a
// frozen member hangs until its ctx ends, and others will, until the client's
// keepalive has given up the connection.
//
// A request may have 1.5 MiB and the database 2 GiB, unless the members are
// configured otherwise. What was replaced takes room as well until it is compacted:
// have the members compact by themselves (auto-compaction-retention), and
// defragment them now and then. A member whose database is full refuses every
// change, until there is room and the alarm is disarmed.
//
// What set-all drops stays in the database until [Store.Sweep] removes it, as does
// the key of an entity that was unset without a base. A page of [Store.List]
// has to step over such keys, and is shorter than its limit after 4,096 of them. Run
// Sweep now and then, for instance each minute for a thousand keys.
//
// # Operations
//
// Who may connect, with which certificates and as which user, is the client's
// affair; the user needs to read and write the keys under [Options.Prefix]. URLs
// are in the database as they are: encrypt the disks and the backups of the members.
// Give the client the endpoints of all the members, and a DialKeepAliveTime, without
// which it never gives up a connection that is silent; less than 10 seconds count as 10.
//
// Snapshots of etcd are the backup. To restore one is to go back in time, which a
// store notices only while the revision is lower than it was, or if the cluster got
// another id: restart the services that keep copies, or restore with a bumped revision.
//
// The keys are text, except for entities, which are kept byte for byte. With
// etcdctl they read
//
//	webhookcfg/acme/      1 1767323045 https://hooks.example.com/all    the base of acme
//	webhookcfg/acme/e1    1 1767323046 https://hooks.example.com/e1     an override
//	webhookcfg/acme/e2    1 1767323047                                  one that says off
//
// with the version of the form, the second of Unix time of the change, and the URL.
// In the name of a client, '/', '%' and whatever else a path of a URL cannot hold is
// written as %2F and so on. Prefixes of two stores in one cluster must not begin with
// each other.
package etcdstore
