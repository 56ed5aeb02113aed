package redact

// Hidden is a text that only [Hidden.Reveal] returns. Neither fmt nor an encoder reaches
// it, not even where Hidden is part of an unexported field: there fmt calls no method.
//
// A type with a Hidden decides what is shown in its place, such as the result of
// [Hidden.String]. It implements [fmt.Formatter], [log/slog.LogValuer] and
// [encoding.TextMarshaler] accordingly.
//
// The zero value is no text. A Hidden is immutable.
type Hidden struct {
	_ [0]func() // == would compare addresses
	// text is a pointer because fmt formats unexported fields without calling their
	// methods, but formats a nested pointer as an address. reflect.DeepEqual follows it,
	// so that you can compare values in your tests.
	text *string
}

// Hide hides a text, which may be empty.
func Hide(text string) Hidden { return Hidden{text: &text} }

// Reveal returns the text, or "" for the zero value.
func (h Hidden) Reveal() string {
	if h.text == nil {
		return ""
	}
	return *h.text
}

// String returns "[secret]", or "" for the zero value.
func (h Hidden) String() string {
	if h.text == nil {
		return ""
	}
	return "[secret]"
}

// IsZero reports whether h is the zero value.
func (h Hidden) IsZero() bool { return h.text == nil }
