package redact

import "unsafe"

// Hidden is a text that only [Hidden.Reveal] returns. fmt, encoders and reflection don't
// reach it, not even where Hidden is part of an unexported field: there fmt calls no
// method.
//
// A type with a Hidden decides what is shown in its place, such as the result of
// [Hidden.String]. It implements [fmt.Formatter], [log/slog.LogValuer] and
// [encoding.TextMarshaler] accordingly.
//
// The zero value is no text. A Hidden is immutable.
type Hidden struct {
	_ [0]func() // == would compare addresses
	// text points to a string. fmt prints the address of a nested pointer, but reflection
	// follows every pointer with a type. A closure would be larger, and stores hold
	// millions of URLs.
	text unsafe.Pointer
}

// Hide hides a text, which may be empty.
func Hide(text string) Hidden { return Hidden{text: unsafe.Pointer(&text)} }

// Reveal returns the text, or "" for the zero value.
func (h Hidden) Reveal() string {
	if h.text == nil {
		return ""
	}
	return *(*string)(h.text)
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
