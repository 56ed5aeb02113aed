package egress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// ownMaxAge is how long a list of own addresses is used. It bounds both what the
// list costs and how long a new address of this host goes unnoticed.
const ownMaxAge = 10 * time.Second

// ownAddresses remembers the addresses of this host for a while.
type ownAddresses struct {
	mu     sync.Mutex
	known  map[netip.Addr]bool // nil: not known
	readAt time.Time
}

// includes reports whether addr is an own address, or whether that cannot be told.
func (o *ownAddresses) includes(addr netip.Addr, list func() ([]netip.Addr, error)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || time.Since(o.readAt) >= ownMaxAge {
		o.readAt = time.Now()
		o.known = addrSet(list)
	}
	return o.known == nil || o.known[addr]
}

// addrSet returns nil if the list fails.
func addrSet(list func() ([]netip.Addr, error)) map[netip.Addr]bool {
	if list == nil {
		list = interfaceAddrs
	}
	addrs, err := list()
	if err != nil {
		return nil
	}
	set := make(map[netip.Addr]bool, len(addrs))
	for _, addr := range addrs {
		set[addr.Unmap().WithZone("")] = true
	}
	return set
}

// interfaceAddrs returns the addresses of the network interfaces.
func interfaceAddrs() ([]netip.Addr, error) {
	prefixes, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	addrs := make([]netip.Addr, 0, len(prefixes))
	for _, p := range prefixes {
		if prefix, err := netip.ParsePrefix(p.String()); err == nil {
			addrs = append(addrs, prefix.Addr())
		}
	}
	return addrs, nil
}
