package redact_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/redact"
)

// TestHiddenIsNotShown: as what it is and as a field of a type without methods, where
// fmt calls no method.
func TestHiddenIsNotShown(t *testing.T) {
	type holder struct {
		Exported   redact.Hidden
		unexported redact.Hidden
		pointer    *redact.Hidden
		list       []redact.Hidden
		byName     map[string]redact.Hidden
		any        any
		nested     struct{ inner struct{ text redact.Hidden } }
	}
	text := redact.Hide("T0KEN")
	h := holder{Exported: text, unexported: text, pointer: &text, list: []redact.Hidden{text}, byName: map[string]redact.Hidden{"t": text}, any: text}
	h.nested.inner.text = text
	var out strings.Builder
	for _, value := range []any{text, &text, []redact.Hidden{text}, h, &h} {
		out.WriteString(hooktest.Prints(value))
	}
	for _, format := range []string{"%s", "%x", "%X", "%d"} {
		if secret := strings.Trim(fmt.Sprintf(format, []byte("T0KEN")), "[]"); strings.Contains(out.String(), secret) {
			t.Errorf("the text is shown as %s", secret)
		}
	}
}

func TestHiddenReveal(t *testing.T) {
	for _, text := range []string{"", "T0KEN", "\x00\xff"} {
		if h := redact.Hide(text); h.Reveal() != text || h.IsZero() {
			t.Errorf("%q is revealed as %q, is zero: %v", text, h.Reveal(), h.IsZero())
		}
	}
	if zero := (redact.Hidden{}); zero.Reveal() != "" || !zero.IsZero() {
		t.Errorf("the zero value is revealed as %q, is zero: %v", zero.Reveal(), zero.IsZero())
	}
	if reflect.TypeFor[redact.Hidden]().Comparable() {
		t.Error("== compares addresses")
	}
	if a := redact.Hide("T0KEN"); !reflect.DeepEqual(a, redact.Hide("T0KEN")) || reflect.DeepEqual(a, redact.Hide("other")) {
		t.Error("DeepEqual doesn't compare texts")
	}
}
