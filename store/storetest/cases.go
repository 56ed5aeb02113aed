package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// Cases returns the cases of the suite, in the order of the clauses. Run each on its own
// empty store.
func Cases() []Case {
	return slices.Concat(changeCases(), callCases(), listerCases(), clientCases(), eraserCases(), feedCases(), versionerCases(), notifierCases(), historyCases())
}

func changeCases() []Case {
	return []Case{
		newCase("01 a change is applied whole, and nothing else", clause1, wholeChange),
		newCase("01 a change is applied whole, and nothing else"+several, clause1, through(wholeChange)),
		newCase("02 a later resolve sees the change", clause2, seenAtOnce),
		newCase("02 a later resolve sees the change"+several, clause2, through(seenAtOnce)),
		newCase("02 a later resolve sees the change while others read", clause2, seenWhileRead),
		newCase("02 a later resolve sees the change while others read"+several, clause2, through(seenWhileRead)),
		newCase("02 a reopened store has kept the change", clause2, durable(valuesKept)),
		newCase("02 a store has kept the change after a crash", clause2, crashing(kept)),
		newCase("03 an interrupted change is whole or absent", clause3, interrupted),
		newCase("03 an interrupted change is whole or absent"+several, clause3, through(interrupted)),
		newCase("03 interrupted concurrent changes are whole or absent", clause3, burstInterrupted),
		newCase("03 an interrupted change is whole or absent after a crash", clause3, crashing(interruptedCrash)),
		newCase("04 set of one gives it an override", clause4, setOne),
		newCase("05 set of all drops every override", clause5, setAll),
		newCase("06 unset of one turns it off", clause6, unsetOne),
		newCase("07 unset of all drops everything", clause7, unsetAll),
		newCase("08 changes can be repeated", clause8, repeated),
		newCase("09 resolve takes the override, then the base", clause9, resolveOrder),
		newCase("10 since is the time of the change", clause10, sinceKept),
		newCase("11 the URL is kept byte for byte", clause11, urlKept),
		newCase("12 clients are isolated", clause12, clientsIsolated),
		newCase("12 names differ by any byte", clause12, namesDiffer),
		newCase("12 names differ by any byte"+several, clause12, through(namesDiffer)),
	}
}

func callCases() []Case {
	return []Case{
		newCase("13 invalid arguments are refused", clause13, invalidRefused),
		newCase("14 a change becomes visible at one moment", clause14, seenAtOneMoment),
		newCase("14 a change becomes visible at one moment"+several, clause14, through(seenAtOneMoment)),
		newCase("14 no concurrent change is lost", clause14, noneLost),
		newCase("14 no concurrent change is lost"+several, clause14, through(noneLost)),
		newCase("14 concurrent changes take effect in some order", clause14, someOrder),
		newCase("14 concurrent changes take effect in some order"+several, clause14, through(someOrder)),
		newCase("15 an ended context changes nothing", clause15, endedContext),
		newCase("errors hold no URL", ruleErrors, errorsHoldNoURL),
	}
}

func listerCases() []Case {
	return []Case{
		newCase("lister lists the overrides in byte order", rulePageOrder, listing(listOrder)),
		newCase("lister walks page by page", rulePageNext, listing(listWalk)),
		newCase("lister walks page by page"+several, rulePageNext, through(listing(listWalk))),
		newCase("lister starts after any name", ruleList, listing(listAfter)),
		newCase("lister starts after any name"+several, ruleList, through(listing(listAfter))),
		newCase("lister returns the base with every page", rulePageBase, listing(listBase)),
		newCase("lister returns an empty page for an unknown client", ruleUnknownClient, listing(listUnknown)),
		newCase("lister refuses invalid arguments", ruleListArguments, with(listInvalid)),
		newCase("lister refuses an ended context", clause15, with(listEndedContext)),
		newCase("lister shares no memory with its callers", clause14, with(listOwnedByCaller)),
		newCase("lister returns one state", rulePageMoment, with(listOneMoment)),
		newCase("lister returns one state"+several, rulePageMoment, through(with(listOneMoment))),
	}
}

func clientCases() []Case {
	return []Case{
		newCase("clients are listed page by page", clients1, withClients(clientsWalk)),
		newCase("clients are listed once", clients2, withClients(clientsOnce)),
		newCase("clients are listed once"+several, clients2, through(withClients(clientsOnce))),
		newCase("clients are listed once while others change", clients2, withClients(clientsOnceConcurrently)),
		newCase("clients are not listed for invalid arguments", clients3, withClients(clientsInvalid)),
		newCase("clients are not listed with an ended context", clientsCalls, withClients(clientsEndedContext)),
	}
}

func eraserCases() []Case {
	return []Case{
		newCase("eraser changes no webhook", eraser1, withEraser(eraseChangesNothing)),
		newCase("eraser changes no webhook"+several, eraser1, through(withEraser(eraseChangesNothing))),
		newCase("eraser loses no concurrent change", eraser1, withEraser(eraseLosesNothing)),
		newCase("eraser loses no concurrent change"+several, eraser1, through(withEraser(eraseLosesNothing))),
		newCase("eraser hides no change from a feed", eraser2, erasing(following(eraseKeepsFeed))),
		newCase("eraser hides no change from a versioner", eraser2, erasing(withVersions(eraseKeepsVersions))),
		newCase("eraser refuses an empty client", eraser3, withEraser(eraseInvalid)),
		newCase("eraser refuses an ended context", eraserCalls, withEraser(eraseEndedContext)),
	}
}

func feedCases() []Case {
	return []Case{
		newCase("feed starts with a reset", feed1, withFeed(feedBegins)),
		newCase("feed reports every change", feed2, following(feedNames)),
		newCase("feed reports every change"+several, feed2, through(following(feedNames))),
		newCase("feed is complete concurrently with writers", feed2, following(feedMissesNothing)),
		newCase("feed is complete concurrently with writers"+several, feed2, through(following(feedMissesNothing))),
		newCase("feed reports no change too early", feed3, following(feedNotEarly)),
		newCase("feed reports no change too early"+several, feed3, through(following(feedNotEarly))),
		newCase("feed resets after an unknown cursor", feed4, withFeed(feedUnknownCursor)),
		newCase("feed resets or continues when reopened", feed4, durable(following(feedReopened))),
		newCase("feed resets or continues after a crash", feed4, crashing(following(feedReopened))),
		newCase("feed accepts a cursor again", feed5, following(feedCursorsReused)),
		newCase("feed refuses an ended context", feedCalls, following(feedEndedContext)),
		newCase("feed waits for no change", feedReturns, following(feedWaitsForNothing)),
	}
}

func versionerCases() []Case {
	return []Case{
		newCase("versioner returns versions in the order of the clients", versioner1, withVersions(versionsInOrder)),
		newCase("versioner returns a new version after a change", versioner2, withVersions(versionsDiffer)),
		newCase("versioner returns a new version after a change"+several, versioner2, through(withVersions(versionsDiffer))),
		newCase("versioner returns a new version when reopened and changed", versioner2, durable(withVersions(versionsDifferReopened))),
		newCase("versioner returns a new version after a crash and a change", versioner2, crashing(withVersions(versionsDifferReopened))),
		newCase("versioner is correct concurrently with a writer", versioner2, withVersions(versionsHold)),
		newCase("versioner is correct concurrently with a writer"+several, versioner2, through(withVersions(versionsHold))),
		newCase("versioner keeps versions while nothing changes", versioner3, withVersions(versionsStay)),
		newCase("versioner refuses an ended context", versionerCalls, withVersions(versionerEndedContext)),
	}
}

func notifierCases() []Case {
	return []Case{
		newCase("notifier notifies all callers after a change", notifier1, with(notifierNotifies)),
		newCase("notifier closes the channel with the context", notifier2, with(notifierCloses)),
		newCase("notifier blocks no change", notifier3, with(notifierBlocksNothing)),
	}
}

func historyCases() []Case {
	return []Case{
		newCase("history agrees with the model", ruleStates, historyAgrees),
		newCase("history agrees with the model"+several, ruleStates, through(historyAgrees)),
		newCase("history with reopening agrees with the model", ruleStates, durable(historyReopening)),
		newCase("history with crashes agrees with the model", ruleStates, crashing(historyReopening)),
	}
}

// newCase returns a case that runs a check, with a script for the store.
func newCase(name, rule string, check func(*script) error) Case {
	return Case{name, rule, func(ctx context.Context, e Env) error {
		err := openedEmpty(ctx, e.Store)
		if err == nil {
			err = check(newScript(ctx, e))
		}
		if err == nil || errors.Is(err, ErrAbsent) {
			return err
		}
		return fmt.Errorf("%w\nrule: %s", err, rule)
	}}
}

// openedEmpty looks for webhooks of an earlier case. Otherwise the failures of cases that
// share a database lead nowhere.
//
// Its context ends before the case, so that a store doesn't depend on that of its first call.
func openedEmpty(ctx context.Context, s webhookcfg.Store) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, entity := range []string{unnamed, "e1"} {
		if hook, err := s.Resolve(ctx, client, entity); err == nil && hook.Source != webhookcfg.SourceNone {
			return fmt.Errorf("Harness.Open must return an empty store, but there Resolve(%q, %q) returned %s: does it open the database of an earlier case?", client, entity, describe(hook))
		}
	}
	return nil
}

// with passes an optional interface of the store to a check.
func with[C any](check func(*script, C) error) func(*script) error {
	return func(sc *script) error {
		c, err := optional[C](sc.Store)
		if err != nil {
			return err
		}
		return check(sc, c)
	}
}

// listing runs a check if the store is a Lister.
func listing(check func(*script) error) func(*script) error {
	return with(func(sc *script, _ webhookcfg.Lister) error { return check(sc) })
}

func optional[C any](s webhookcfg.Store) (C, error) {
	c, ok := s.(C)
	if !ok {
		return c, fmt.Errorf("%w: %T doesn't implement %v", ErrAbsent, s, reflect.TypeFor[C]())
	}
	return c, nil
}

// supported is like with, for interfaces that can return [errors.ErrUnsupported]. It finds
// out by calling one of their methods.
func supported[C any](call func(*script, C) error, check func(*script, C) error) func(*script) error {
	return with(func(sc *script, c C) error {
		if err := call(sc, c); errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("%w: %w", ErrAbsent, err)
		}
		return check(sc, c)
	})
}

func withFeed(check func(*script, cache.Feed) error) func(*script) error {
	return supported(func(sc *script, f cache.Feed) error { return errorOf(f.Changes(sc.ctx, "")) }, check)
}

func withVersions(check func(*script, cache.Versioner) error) func(*script) error {
	return supported(func(sc *script, v cache.Versioner) error { return errorOf(v.Versions(sc.ctx, []string{client})) }, check)
}

func withClients(check func(*script, admin.ClientLister) error) func(*script) error {
	return supported(func(sc *script, l admin.ClientLister) error { return errorOf(l.ListClients(sc.ctx, "", 1)) }, check)
}

func withEraser(check func(*script, admin.Eraser) error) func(*script) error {
	return supported(func(sc *script, e admin.Eraser) error { return e.Erase(sc.ctx, unnamed) }, check)
}

// erasing runs a check if the store is an Eraser.
func erasing(check func(*script) error) func(*script) error {
	return withEraser(func(sc *script, _ admin.Eraser) error { return check(sc) })
}

// following passes a cursor to a check. The cursor follows the store's feed.
func following(check func(*script, *cursor) error) func(*script) error {
	return withFeed(func(sc *script, feed cache.Feed) error {
		c, err := startCursor(sc, feed)
		if err != nil {
			return err
		}
		return check(sc, c)
	})
}

// durable runs a check that reopens the store.
func durable(check func(*script) error) func(*script) error {
	return func(sc *script) error {
		if sc.Reopen == nil {
			return fmt.Errorf("%w: Harness.Reopen is nil; set it if the store is durable", ErrAbsent)
		}
		return check(sc)
	}
}

// crashing runs a check that reopens the store, but makes it crash instead.
func crashing(check func(*script) error) func(*script) error {
	return func(sc *script) error {
		if sc.Crash == nil {
			return fmt.Errorf("%w: Harness.Crash is nil; set it if the state can be opened again without closing the store", ErrAbsent)
		}
		sc.Reopen = sc.Crash
		return check(sc)
	}
}

// several is at the end of the names of cases with several handles.
const several = ", through several handles"

// through runs a check with two handles on one state. The first one is the store.
func through(check func(*script) error) func(*script) error {
	const handles = 2
	return func(sc *script) error {
		if sc.OpenPeer == nil {
			return fmt.Errorf("%w: Harness.OpenPeer is nil; set it if several processes can share the state", ErrAbsent)
		}
		for len(sc.handles) < handles {
			sc.handles = append(sc.handles, sc.OpenPeer(sc.Store))
		}
		return check(sc)
	}
}

// The rules, quoted from the interfaces' documentation. A test compares them.
const (
	clause1  = `Store, clause 1: Apply applies the whole change, or nothing.`
	clause2  = `Store, clause 2: Once Apply has returned nil, every later Resolve sees the change. If you document your store as durable, that holds after a crash too.`
	clause3  = `Store, clause 3: If Apply returns an error, the state is as before the change or as after it, never in between. The handler responds 503.`
	clause4  = `Store, clause 4: A set of one entity gives it an override with the URL.`
	clause5  = `Store, clause 5: A set of all makes the URL the base and drops every override, off ones too, at a cost that doesn't depend on their number.`
	clause6  = `Store, clause 6: An unset of one entity leaves it without a webhook. If there is a base, the entity's override is off from then on. Otherwise its override is dropped.`
	clause7  = `Store, clause 7: An unset of all drops the base and every override, at the cost of clause 5.`
	clause8  = `Store, clause 8: It isn't an error to set the same URL again, or to unset something that isn't set.`
	clause9  = `Store, clause 9: Resolve returns the entity's override if there is one: SourceOverride with its URL, or SourceOff without a URL. Otherwise it returns the base, or the zero Webhook if there is no base. None of these is an error. A failed read is an error.`
	clause10 = `Store, clause 10: Since is the Change.Time of the change that decided, to the microsecond or better.`
	clause11 = `Store, clause 11: The URL comes back byte for byte as it was set.`
	clause12 = `Store, clause 12: Nothing that one client does changes what another client sees. Names that differ in any byte, even only in letter case, are different names.`
	clause13 = `Store, clause 13: An invalid change (see Change.Validate), and an empty client or entity in Resolve, get an error that wraps ErrInvalidArgument. You can refuse names that aren't UTF-8 without control characters in the same way, because the handler never sends them.`
	clause14 = `Store, clause 14: The methods are safe for concurrent use, and the operations on one client are linearizable.`
	clause15 = `Store, clause 15: The methods return soon after ctx ends. If it ended before the call, they return an error and change nothing. The handler's ctx has a deadline and ends when the client disconnects.`

	ruleErrors = `Store: An error's text must not contain more of a URL than its host and port.`
	ruleStates = `Store: The example States has the table of states and operations.`

	ruleList          = `Lister: List returns the first overrides whose entities come after the given one in byte order, and at most limit of them. If after is "", it starts with the first of all.`
	ruleUnknownClient = `Lister: An unknown client has an empty page.`
	ruleListArguments = `Lister: An empty client, or a limit below 1, gives an error that wraps ErrInvalidArgument.`
	rulePageMoment    = `Lister: A page shows the client at one moment, but two pages can show different moments.`
	rulePageBase      = `Page: Base is the webhook of all entities without an override. It's zero if there is none.`
	rulePageOrder     = `Page: Overrides are in byte order of their entities.`
	rulePageNext      = `Page: Next is the value of after for the next page. It's "" on the last page.`

	clients1     = `ClientLister, clause 1: A walk starts with the cursor "" and passes the Next of each page to the next call. Only an empty Next ends it: pages can be short or empty.`
	clients2     = `ClientLister, clause 2: A client that has a base or an override during the whole walk is listed exactly once, in any order. Any other client can be missing or listed.`
	clients3     = `ClientLister, clause 3: A limit below 1, or a cursor that the store doesn't recognize as its own, gives an error that wraps webhookcfg.ErrInvalidArgument.`
	clientsCalls = `ClientLister: Clauses 14 and 15 of webhookcfg.Store apply to ListClients as well.`

	eraser1     = `Eraser, clause 1: Erase never changes a webhook. If anything is set for the client, it does nothing and returns nil.`
	eraser2     = `Eraser, clause 2: It hides no change from a reader that was away: a Feed still reports what changed before it, and a version is never reused.`
	eraser3     = `Eraser, clause 3: An empty client gives an error that wraps webhookcfg.ErrInvalidArgument.`
	eraserCalls = `Eraser: Clauses 14 and 15 of webhookcfg.Store apply to Erase as well.`

	feed1       = `Feed, clause 1: The first call of a sequence has since "" and returns a Reset. Each later call passes the Next of the call before.`
	feed2       = `Feed, clause 2: A sequence is complete. If a change was visible to Resolve when a call started, that call or an earlier one reports it, regardless of which process made the change. To report a change, name its client or return a Reset.`
	feed3       = `Feed, clause 3: Report a change only once it's visible: a Resolve that starts after Changes returned must see it.`
	feed4       = `Feed, clause 4: If you don't know the cursor, or it's too old, return a Reset and no error. If a durable store was reopened, earlier cursors can still work, or give a Reset.`
	feed5       = `Feed, clause 5: A cursor can be used again. After an error, the cache repeats the call with the same one, and several sequences can run at the same time.`
	feedReturns = `Feed: It doesn't wait for a change.`
	feedCalls   = `Feed: Clauses 14 and 15 of webhookcfg.Store apply to Changes as well.`

	versioner1     = `Versioner, clause 1: Versions returns one version for each client, in the order of the clients. Unknown clients have one too.`
	versioner2     = `Versioner, clause 2: If a client has the same version in two calls, even an empty one, no Resolve between the two calls could have returned a different result. So never reuse a version, not even if an earlier configuration is restored.`
	versioner3     = `Versioner, clause 3: While nothing changes in the store, versions stay the same.`
	versionerCalls = `Versioner: Clauses 14 and 15 of webhookcfg.Store apply to Versions as well.`

	notifier1 = `Notifier, clause 1: The channel gets a value after a change. Several changes can share one.`
	notifier2 = `Notifier, clause 2: The channel is closed when ctx ends, or when there will be no more notifications.`
	notifier3 = `Notifier, clause 3: A change never waits until somebody receives its notification.`
)
