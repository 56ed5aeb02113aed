package webhookcfg

import "net/http"

// SetBody is what DecodeSet read.
type SetBody struct {
	Entity    string
	HasEntity bool
	URL       string
}

// DecodeSet shows the body decoder to the tests; rule is "" for a good body.
func DecodeSet(data []byte, idKey string) (body SetBody, rule string) {
	b, f := decodeSet(data, idKey)
	if f != nil {
		return SetBody{}, f.description
	}
	return SetBody{Entity: b.entity, HasEntity: b.hasEntity, URL: b.url}, ""
}

// BasicCredentials shows the parser of the Authorization field to the tests.
func BasicCredentials(h http.Header) (id, secret string, err error) { return basicCredentials(h) }

// ErrorTable lists every row of the table of errors: name and status.
func ErrorTable() map[string]int {
	table := make(map[string]int)
	for _, row := range errorTable {
		table[row.name] = row.status
	}
	return table
}
