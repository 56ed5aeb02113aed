package egress

import (
	"testing"
)

// TestInterfaceAddrsAreLocal looks for the one address that every machine has. From
// outside it cannot be seen, since loopback is refused for another reason.
func TestInterfaceAddrsAreLocal(t *testing.T) {
	if local := addrSet(nil); !local[loopbackIPv4] && !local[loopbackIPv6] {
		t.Errorf("no loopback address among %v", local)
	}
}

// TestSpecialPrefixesAreSorted: the search for a block relies on it.
func TestSpecialPrefixesAreSorted(t *testing.T) {
	for _, blocks := range [][]specialPrefix{specialIPv4, specialIPv6} {
		for i, b := range blocks {
			if b.prefix != b.prefix.Masked() {
				t.Errorf("%s: %v has bits beyond the prefix", b.name, b.prefix)
			}
			if i > 0 && (blocks[i-1].prefix.Overlaps(b.prefix) || !blocks[i-1].prefix.Addr().Less(b.prefix.Addr())) {
				t.Errorf("%v (%s) does not come after %v", b.prefix, b.name, blocks[i-1].prefix)
			}
		}
	}
	for _, b := range specialIPv6 {
		if !globalIPv6.Overlaps(b.prefix) {
			t.Errorf("%v (%s) is outside of what can be public", b.prefix, b.name)
		}
	}
}
