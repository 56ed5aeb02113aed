package webhookcfg_test

import (
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

func TestSourceNames(t *testing.T) {
	for source, want := range map[webhookcfg.Source]string{
		webhookcfg.SourceNone: "none", webhookcfg.SourceOverride: "override", webhookcfg.SourceOff: "off", webhookcfg.SourceBase: "base", 9: "Source(9)",
	} {
		if source.String() != want {
			t.Errorf("got %s, want %s", source, want)
		}
	}
}
