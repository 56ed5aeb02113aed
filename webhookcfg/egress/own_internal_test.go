package egress

import "testing"

// TestInterfacesAreOwn looks for the one address that every machine has. From
// outside it cannot be seen, since loopback is refused for another reason.
func TestInterfacesAreOwn(t *testing.T) {
	if own := addrSet(nil); !own[loopbackIPv4] && !own[loopbackIPv6] {
		t.Errorf("no loopback address among %v", own)
	}
}
