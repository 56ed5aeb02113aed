package webhookcfg

import "net/http"

// BasicCredentials shows the parser of the Authorization field to the tests.
func BasicCredentials(h http.Header) (id, secret string, err error) { return basicCredentials(h) }

// ErrorTable returns the table of errors: the status of each name.
func ErrorTable() map[string]int {
	table := make(map[string]int)
	for _, row := range errorTable {
		table[row.name] = row.status
	}
	return table
}
