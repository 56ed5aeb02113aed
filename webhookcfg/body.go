package webhookcfg

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"example.com/go-webhookcfg/internal/strictjson"
)

// The rules that a body can break, in the words that the client reads.
const (
	ruleObject    = "The body must be exactly one JSON object and nothing after it"
	ruleUTF8      = "The body must be valid UTF-8 without a byte order mark"
	ruleSurrogate = "A string in the body has an unpaired surrogate"
	ruleRepeated  = "A key of the body is repeated"
	ruleString    = "Every value in the body must be a string; null is not one" + ruleToUnset
	ruleURLNeeded = "The key webhook_url is required" + ruleToUnset
	ruleToUnset   = "; to unset the webhook of an entity, use DELETE with its id at the end of the path"
	ruleArrival   = "The body did not arrive whole and in time"
	ruleMedia     = "The body must be application/json in UTF-8 without a content coding"
)

// defaultBodyLimit is how many bytes a body may have, unless Options.BodyLimit says otherwise.
const defaultBodyLimit = 16 << 10

func tooLarge(limit int64) *apiError {
	return &apiError{code: codeRequestTooLarge, description: fmt.Sprintf("The body has more than %d bytes", limit)}
}

func bodyError(err error) *apiError {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return tooLarge(over.Limit)
	}
	return &apiError{code: codeInvalidRequest, description: ruleArrival, cause: err}
}

// isJSON reports whether the header declares JSON in UTF-8 without a content coding.
func isJSON(h http.Header) bool {
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, hasCharset := params["charset"]
	return err == nil && media == "application/json" && (!hasCharset || strings.EqualFold(charset, "utf-8"))
}

// readJSON reads a body that is declared as JSON.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *apiError) {
	if !isJSON(r.Header) {
		return nil, &apiError{code: codeUnsupportedMediaType, description: ruleMedia}
	}
	if r.ContentLength > limit && r.Header.Get("Expect") != "" {
		return nil, tooLarge(limit) // before a 100 response asks for the body
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, bodyError(err)
	}
	return data, nil
}

// hasBody reports whether the request has a body or announces one. We can't rely on
// ContentLength alone. Over HTTP/2 it's also 0 if the field can't be parsed, or if the
// announced body didn't follow. A client that expects a 100 has a body to send (RFC 9110
// §10.1.1), and reading would ask for it.
//
// We never see the chunked body of an HTTP/1.0 request, since net/http drops it.
func hasBody(r *http.Request) bool {
	if r.ContentLength > 0 || r.Header["Expect"] != nil {
		return true
	}
	for _, length := range r.Header["Content-Length"] {
		if length != "0" {
			return true
		}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return false
	}
	_, err := io.ReadFull(r.Body, make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

// setBody is the body of a set. It means all entities only if the identifier is absent. An
// empty identifier is present, and gets refused.
type setBody struct {
	entity    string
	hasEntity bool
	url       string
}

// decodeSet decodes the body of a set strictly. A lenient parser could turn a request for one
// entity into a request for all.
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
