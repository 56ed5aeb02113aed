package storetest

import (
	"context"
	"errors"
	"fmt"
)

// Cases returns the cases of the suite, those of a clause together and in the
// order of the clauses. Each wants a store of its own.
func Cases() []Case {
	return []Case{
		newCase("01 a change is applied whole", clause1, wholeChange),
		newCase("02 a later resolve sees the change", clause2, seenAtOnce),
		newCase("02 a reopened store has kept the change", clause2, keptByReopening),
		newCase("03 a change cut short is whole or absent", clause3, cutShort),
		newCase("03 a burst cut short leaves whole changes", clause3, burstCutShort),
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
		newCase("13 invalid arguments are refused", clause13, invalidRefused),
		newCase("14 a change is seen at one moment", clause14, seenAtOneMoment),
		newCase("14 no concurrent change is lost", clause14, noneLost),
		newCase("15 an ended context changes nothing", clause15, endedContext),
		newCase("errors hold no URL", ruleErrors, errorsHoldNoURL),
		newCase("lister lists the overrides in byte order", rulePageOrder, listOrder),
		newCase("lister walks page by page", rulePageNext, listWalk),
		newCase("lister begins after any name", ruleList, listAfter),
		newCase("lister gives the base with every page", rulePageBase, listBase),
		newCase("lister knows nothing of an unknown client", ruleUnknownClient, listUnknown),
		newCase("lister refuses invalid arguments", ruleListArguments, listInvalid),
		newCase("lister gives a page away", clause14, listOwnedByCaller),
		newCase("lister shows one moment", rulePageMoment, listOneMoment),
		newCase("lister agrees with the model", ruleList, listHistory),
		newCase("history agrees with the model", ruleStates, history),
		newCase("history with reopening agrees with the model", ruleStates, historyReopening),
	}
}

func newCase(name, rule string, check func(context.Context, Env) error) Case {
	return Case{name, rule, func(ctx context.Context, e Env) error {
		err := check(ctx, e)
		if err == nil || errors.Is(err, ErrAbsent) {
			return err
		}
		return fmt.Errorf("%w\nthe rule of %s", err, rule)
	}}
}

// The rules, in the words of the documentation of package webhookcfg.
const (
	clause1  = `Store, clause 1: Apply applies the whole change, or nothing.`
	clause2  = `Store, clause 2: Once Apply returned nil, every later Resolve sees the change; in a store that calls itself durable, also after a crash.`
	clause3  = `Store, clause 3: If Apply returns an error, the state is the one before it, or the one that the whole change leads to, never a part of it. The handler answers 503.`
	clause4  = `Store, clause 4: Set of one entity gives it an override with the URL.`
	clause5  = `Store, clause 5: Set of all makes the URL the base and drops every override, those that say "off" too, at a cost that does not depend on their number.`
	clause6  = `Store, clause 6: Unset of one entity leaves it without a webhook: with a base, the override says "off" from then on; without one, the override is dropped.`
	clause7  = `Store, clause 7: Unset of all drops the base and every override, at the cost of clause 5.`
	clause8  = `Store, clause 8: To set what is set already, or unset what is not set, succeeds.`
	clause9  = `Store, clause 9: Resolve returns the entity's override if there is one (its URL, or none if it says "off"), else the base, else the zero Webhook, and a nil error.`
	clause10 = `Store, clause 10: Since is the Change.Time of the change that decided, to the second at least.`
	clause11 = `Store, clause 11: The URL comes back byte for byte as it went in.`
	clause12 = `Store, clause 12: No operation of one client changes what another client sees. Names that differ in any byte, letter case too, are different names.`
	clause13 = `Store, clause 13: A change for which Change.Validate fails, or an empty client or entity in Resolve, is answered by an error that wraps ErrInvalidArgument.`
	clause14 = `Store, clause 14: The methods are safe for concurrent use; the operations on one client are linearizable.`
	clause15 = `Store, clause 15: The methods return soon after ctx ends; a ctx that has ended before the call gives an error and changes nothing. The handler's ctx has a deadline and ends when the caller hangs up.`

	ruleErrors = `Store: No error text may hold a URL beyond its host and port.`
	ruleStates = `Store: The state of one client is a base, the URL that every entity has unless it has an entry of its own, and its overrides, entries that hold a URL or say "off".`

	ruleList          = `Lister: List returns the first limit overrides whose entity comes after the given one in byte order; after "" begins with the first.`
	ruleUnknownClient = `Lister: An unknown client has an empty page.`
	ruleListArguments = `Lister: An empty client, or a limit below 1, gives an error that wraps ErrInvalidArgument.`
	rulePageMoment    = `Lister: Each page is a state that the client had at one moment; pages of one walk may be of different moments.`
	rulePageBase      = `Page: Base is the webhook of all entities without an override: SourceBase or, where there is none, the zero Webhook.`
	rulePageOrder     = `Page: Overrides are in byte order of their entities.`
	rulePageNext      = `Page: Next is the value of after that continues the walk; "" on the last page.`
)
