package webhookcfg_test

import (
	"errors"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestValidate: a change without one of its parts is never valid, and never turns into a
// change of all entities.
func TestValidate(t *testing.T) {
	url := egress.NewURL(hookURL)
	withURL := webhookcfg.UnsetChange("c", webhookcfg.All())
	withURL.URL = url
	tests := []struct {
		name   string
		change webhookcfg.Change
		valid  bool
	}{
		{"set one", webhookcfg.SetChange("c", webhookcfg.Entity("e"), url), true},
		{"set all", webhookcfg.SetChange("c", webhookcfg.All(), url), true},
		{"unset one", webhookcfg.UnsetChange("c", webhookcfg.Entity("e")), true},
		{"unset all", webhookcfg.UnsetChange("c", webhookcfg.All()), true},

		{"zero", webhookcfg.Change{}, false},
		{"no client", webhookcfg.SetChange("", webhookcfg.All(), url), false},
		{"zero scope", webhookcfg.SetChange("c", webhookcfg.Scope{}, url), false},
		{"empty entity", webhookcfg.UnsetChange("c", webhookcfg.Entity("")), false},
		{"no URL", webhookcfg.SetChange("c", webhookcfg.All(), egress.URL{}), false},
		{"empty URL", webhookcfg.SetChange("c", webhookcfg.All(), egress.NewURL("")), false},
		{"unset with URL", withURL, false},
		{"literal", webhookcfg.Change{Client: "c", Scope: webhookcfg.All(), URL: url}, false},
		{"literal without URL", webhookcfg.Change{Client: "c", Scope: webhookcfg.All()}, false},
	}
	for _, tt := range tests {
		err := tt.change.Validate()
		if (err == nil) != tt.valid || err != nil && !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}
