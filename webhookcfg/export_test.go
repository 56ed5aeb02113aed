package webhookcfg

// ErrorTable returns the table of errors: the status of each name.
func ErrorTable() map[string]int {
	table := make(map[string]int)
	for _, row := range errorTable {
		table[row.name] = row.status
	}
	return table
}
