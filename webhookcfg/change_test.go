package webhookcfg_test

import (
	"errors"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestValidate: a missing part never makes a valid change, least of all one of all
// entities.
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

func TestScope(t *testing.T) {
	tests := []struct {
		scope  webhookcfg.Scope
		all    bool
		entity string
		text   string
	}{
		{webhookcfg.All(), true, "", "all"},
		{webhookcfg.Entity("e1"), false, "e1", "entity e1"},
		{webhookcfg.Entity("all"), false, "all", "entity all"},
		{webhookcfg.Entity(""), false, "", "invalid"},
		{webhookcfg.Scope{}, false, "", "invalid"},
	}
	for _, tt := range tests {
		if tt.scope.IsAll() != tt.all || tt.scope.Entity() != tt.entity || tt.scope.String() != tt.text {
			t.Errorf("%#v: got %v, %q, %q", tt.scope, tt.scope.IsAll(), tt.scope.Entity(), tt.scope)
		}
	}
}

func TestSourceNames(t *testing.T) {
	for source, want := range map[webhookcfg.Source]string{
		webhookcfg.SourceNone: "none", webhookcfg.SourceOverride: "override", webhookcfg.SourceOff: "off", webhookcfg.SourceBase: "base", 9: "Source(9)",
	} {
		if source.String() != want {
			t.Errorf("got %s, want %s", source, want)
		}
	}
}
