package webhookcfg

import (
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultLimit = 100
	maxLimit     = 1000

	ruleQuery = "A list takes the query parameters limit, from 1 to 1000, and after, an identifier, each at most once"
)

// pageQuery parses the query of a list, as strictly as we parse a body.
func pageQuery(query string, entities entitySyntax) (after string, limit int, e *apiError) {
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
