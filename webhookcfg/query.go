package webhookcfg

import (
	"net/url"
	"strconv"
	"strings"
)

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
