package redact

// Fixed is an error with a text that this module wrote. The text contains nothing from a
// caller, so you can show it even where you withhold the errors around it.
type Fixed string

// Error returns the text.
func (f Fixed) Error() string { return string(f) }
