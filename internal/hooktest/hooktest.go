// Package hooktest holds small helpers that the tests of several packages share.
package hooktest

import (
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
)

// Prints returns all that fmt, slog and the encoders of the standard library show of a
// value: what a log may hold of it.
func Prints(value any) string {
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%20v", "%-20.3s"} {
		fmt.Fprintf(&out, verb+"\n", value)
	}
	fmt.Fprintln(&out, value)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).With("with", value).Info("m", "value", value, slog.Group("group", "value", value))
	}
	// An error means that the encoder refuses the value.
	_ = json.NewEncoder(&out).Encode(value)
	_ = xml.NewEncoder(&out).Encode(value)
	_ = gob.NewEncoder(&out).Encode(value)
	return out.String()
}
