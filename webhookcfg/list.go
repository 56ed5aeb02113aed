package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Lister lists the overrides of one client. Your [Store] can implement it, too. [NewHandler]
// checks once whether it does.
type Lister interface {
	// List returns the first overrides whose entities come after the given one in byte order,
	// and at most limit of them. If after is "", it starts with the first of all. It can
	// return fewer, or none, if a search for more would take too long. So go on until Next is
	// empty: only that means that there are no more. A page shows the client at one moment,
	// but two pages can show different moments. The cost of a page depends on limit, and not
	// on the number of overrides.
	//
	// An unknown client has an empty page. An empty client, or a limit below 1, gives an
	// error that wraps [ErrInvalidArgument].
	List(ctx context.Context, client, after string, limit int) (Page, error)
}

// Page is a part of a client's webhooks.
type Page struct {
	// Base is the webhook of all entities without an override. It's zero if there is none.
	Base Webhook
	// Overrides are in byte order of their entities.
	Overrides []Override
	// Next is the value of after for the next page. It's "" on the last page.
	Next string
}

// Override is an entity's own entry.
type Override struct {
	// Entity is the identifier of the entity.
	Entity string
	// Webhook is the URL, or off: its Source is SourceOverride or SourceOff.
	Webhook Webhook
}

const (
	defaultLimit = 100
	maxLimit     = 1000
	// maxQuery is the longest query string that we parse. A parameter may need three times its
	// length in escapes, and one of few bytes takes more than ten times its length in memory.
	maxQuery = 4096

	ruleQuery     = "A list takes the query parameters limit, from 1 to 1000, and after, an identifier, each at most once"
	ruleQuerySize = "The query string is too long: send at most 4096 bytes"
)

// pageQuery parses the query of a list, as strictly as we parse a body.
func pageQuery(query string, entities entitySyntax) (after string, limit int, e *apiError) {
	if len(query) > maxQuery {
		return "", 0, invalidRequest(ruleQuerySize)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", 0, invalidRequest(ruleQuery)
	}
	limit = defaultLimit
	for key, all := range values {
		value := all[0]
		switch {
		case len(all) == 1 && key == "after" && entities.valid(value):
			after = strings.Clone(value) // for the reason in pathScope
		case len(all) == 1 && key == "limit":
			limit, _ = strconv.Atoi(value)
			if limit < 1 || limit > maxLimit || strconv.Itoa(limit) != value {
				return "", 0, invalidRequest(ruleQuery)
			}
		default:
			return "", 0, invalidRequest(ruleQuery)
		}
	}
	return after, limit, nil
}

func (q *request) list(ctx context.Context) *apiError {
	after, limit, e := pageQuery(q.r.URL.RawQuery, q.h.entities)
	if e == nil {
		e = q.checkSecrets(after)
	}
	if e != nil {
		return e
	}
	page, e := q.page(ctx, after, limit)
	if e != nil {
		return e
	}
	q.result, e = marshal(newPageJSON(q.match.resource.idKey, page))
	return e
}

// List returns a client's base and up to 1000 overrides whose entities come after the given
// text, like a GET from the client without an identifier. See [Lister] and [Handler.Read]. The
// text can't have slashes, backslashes or control characters. If the store can't list, the
// error wraps [errors.ErrUnsupported]. Ask [Handler.CanList] first.
func (h *Handler) List(ctx context.Context, client, after string, limit int) (page Page, err error) {
	o := h.newOperation(opList)
	err = o.callFor(ctx, client, func(ctx context.Context) (e *apiError) {
		switch {
		case limit < 1 || limit > maxLimit:
			return serverError(fmt.Errorf("%w: the limit must be 1 to %d", ErrInvalidArgument, maxLimit))
		case after != "" && !safeSegment(after):
			return invalidRequest(h.entities.rule)
		case !h.CanList():
			return serverError(fmt.Errorf("%w: the store is not a Lister", errors.ErrUnsupported))
		}
		page, e = o.page(ctx, after, limit)
		return e
	})
	return page, err
}

// CanList reports whether the store is a [Lister], so that you can call [Handler.List].
func (h *Handler) CanList() bool { return h.lister != nil }
