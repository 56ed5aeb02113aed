package webhookcfg

import "strings"

// Route is an operation at a path pattern of net/http's ServeMux.
type Route struct{ Method, Path, Operation string }

// Routes returns the routes that the handler serves.
func (h *Handler) Routes() []Route {
	var all []Route
	for _, rs := range h.routes {
		for _, a := range rs.actions {
			all = append(all, Route{a.method, strings.TrimPrefix(a.pattern, a.method+" "), a.operation})
		}
	}
	return all
}

// ErrorTable returns the table of errors: the status of each name.
func ErrorTable() map[string]int {
	table := make(map[string]int)
	for _, row := range codes {
		table[row.name] = row.status
	}
	return table
}
