package egress

import (
	"testing"
)

// TestInterfaceAddrsAreLocal looks for the loopback address, which every machine has. It
// cannot use the exported API, where loopback is refused for another reason.
func TestInterfaceAddrsAreLocal(t *testing.T) {
	if local := addrSet(nil); !local[loopbackIPv4] && !local[loopbackIPv6] {
		t.Errorf("no loopback address among %v", local)
	}
}

// TestSpecialPrefixesAreSorted checks the precondition of the binary search.
func TestSpecialPrefixesAreSorted(t *testing.T) {
	for _, blocks := range [][]specialPrefix{specialIPv4, specialIPv6} {
		for i, b := range blocks {
			if b.prefix != b.prefix.Masked() {
				t.Errorf("%s: %v has bits beyond the prefix", b.name, b.prefix)
			}
			if i > 0 && (blocks[i-1].prefix.Overlaps(b.prefix) || !blocks[i-1].prefix.Addr().Less(b.prefix.Addr())) {
				t.Errorf("%v (%s) is not sorted after %v", b.prefix, b.name, blocks[i-1].prefix)
			}
		}
	}
	for _, b := range specialIPv6 {
		if !globalIPv6.Overlaps(b.prefix) {
			t.Errorf("%v (%s) is outside the global unicast space", b.prefix, b.name)
		}
	}
}
