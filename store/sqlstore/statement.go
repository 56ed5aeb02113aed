package sqlstore

import (
	"regexp"
	"strconv"
)

// statement is SQL as a driver takes it, with the names of its parameters in the
// order in which it wants them.
type statement struct {
	text   string
	params []string
}

// values are the parameters of a statement by name.
type values map[string]any

// args are the values in the order of the statement.
func (s statement) args(v values) []any {
	args := make([]any, len(s.params))
	for i, name := range s.params {
		args[i] = v[name]
	}
	return args
}

// The templates of statements write {client} for the table of that name, and
// @entity for the parameter of that name.
var (
	tableMark = regexp.MustCompile(`\{([a-z_]+)\}`)
	paramMark = regexp.MustCompile(`@[a-z]+[0-9]*`)
)

// withTables puts the names of the tables into a template.
func withTables(template, prefix string) string {
	return tableMark.ReplaceAllString(template, prefix+"$1")
}

// newStatement makes a statement of a template. Numbered parameters, as in $1,
// are passed once however often they stand in the text.
func newStatement(template, prefix string, numbered bool) statement {
	var s statement
	number := make(map[string]int)
	s.text = paramMark.ReplaceAllStringFunc(withTables(template, prefix), func(mark string) string {
		name := mark[1:]
		if number[name] == 0 || !numbered {
			s.params = append(s.params, name)
			number[name] = len(s.params)
		}
		if !numbered {
			return "?"
		}
		return "$" + strconv.Itoa(number[name])
	})
	return s
}
