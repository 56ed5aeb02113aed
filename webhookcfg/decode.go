package webhookcfg

import (
	"errors"

	"example.com/go-webhookcfg/internal/strictjson"
)

// The rules that a body can break, as the client reads them.
const (
	ruleObject    = "The body must be exactly one JSON object and nothing after it"
	ruleUTF8      = "The body must be valid UTF-8 without a byte order mark"
	ruleSurrogate = "A string in the body has an unpaired surrogate"
	ruleRepeated  = "A key of the body is repeated"
	ruleString    = "Every value in the body must be a string; null is not one"
	ruleURLNeeded = "The key webhook_url is required"
)

// setBody is the body of a set. All entities are meant where the identifier is absent,
// and only there: an empty one is present, and refused as an identifier.
type setBody struct {
	entity    string
	hasEntity bool
	url       string
}

// decodeSet decodes the body of a set strictly: a lenient reading could turn a request
// for one entity into one for all.
func decodeSet(data []byte, idKey string) (setBody, *apiError) {
	fields := [...]strictjson.Field{{Key: idKey}, {Key: "webhook_url"}}
	if err := strictjson.Decode(data, fields[:]); err != nil {
		return setBody{}, invalidRequest(bodyRule(err, idKey))
	}
	id, url := fields[0], fields[1]
	if !url.Present {
		return setBody{}, invalidRequest(ruleURLNeeded)
	}
	return setBody{entity: id.Value, hasEntity: id.Present, url: url.Value}, nil
}

// bodyRule returns the rule behind an error of [strictjson.Decode].
func bodyRule(err error, idKey string) string {
	switch {
	case errors.Is(err, strictjson.ErrEncoding):
		return ruleUTF8
	case errors.Is(err, strictjson.ErrUnknownKey):
		return "The body has an unknown key; known are webhook_url and " + idKey
	case errors.Is(err, strictjson.ErrRepeated):
		return ruleRepeated
	case errors.Is(err, strictjson.ErrNotString):
		return ruleString
	case errors.Is(err, strictjson.ErrSurrogate):
		return ruleSurrogate
	default:
		return ruleObject
	}
}
