package redact

// Hidden is a text that only [Hidden.Reveal] returns. fmt and encoders can't reach it. That
// holds even for a Hidden in an unexported field, where fmt doesn't call any methods.
//
// If your type contains a Hidden, decide what to show instead, for example the result of
// [Hidden.String], and implement [fmt.Formatter], [log/slog.LogValuer] and
// [encoding.TextMarshaler] to show it.
//
// The zero value has no text. A Hidden never changes.
type Hidden struct {
	_ [0]func() // == would compare addresses
	// text is a pointer because fmt formats unexported fields without calling their
	// methods, but formats a nested pointer as an address. reflect.DeepEqual follows it,
	// so that you can compare values in your tests.
	text *string
}

// Hide hides a text. The text can be empty.
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
