// Package hooktest holds small helpers that the tests of several packages share.
package hooktest

import (
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"reflect"
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

// Reachable returns every text that reflection finds in a value, also in unexported
// fields and behind pointers. A value that contains itself has no end.
func Reachable(value any) string {
	var out strings.Builder
	reach(&out, reflect.ValueOf(value))
	return out.String()
}

func reach(w io.Writer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			reach(w, v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			reach(w, field)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			reach(w, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			reach(w, key)
			reach(w, v.MapIndex(key))
		}
	case reflect.String:
		fmt.Fprintln(w, v.String())
	}
}
