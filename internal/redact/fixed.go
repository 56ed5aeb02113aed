package redact

// Fixed is an error with a text that the module wrote, without anything that a caller
// presented. It may be shown where the errors around it are withheld.
type Fixed string

// Error returns the text.
func (f Fixed) Error() string { return string(f) }
