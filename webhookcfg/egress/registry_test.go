package egress_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// registryRow is an address block of IANA's special-purpose address registries.
type registryRow struct {
	block     netip.Prefix
	name      string
	reachable string // "True", "False", "N/A", or "" if the allocation was terminated
}

var registryColumns = []string{
	"Address Block", "Name", "RFC", "Allocation Date", "Termination Date",
	"Source", "Destination", "Forwardable", "Globally Reachable", "Reserved-by-Protocol",
}

var footnote = regexp.MustCompile(`\s*\[[0-9]+\]`)

// readRegistry reads a file in IANA's layout. A cell may end in the mark of a footnote,
// and a row may have several address blocks.
func readRegistry(path string) ([]registryRow, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 || !slices.Equal(records[0], registryColumns) {
		return nil, fmt.Errorf("%s does not have the columns %q", path, registryColumns)
	}
	var rows []registryRow
	for _, record := range records[1:] {
		reachable := footnote.ReplaceAllString(record[8], "")
		terminated := record[4] != "N/A"
		if !slices.Contains([]string{"True", "False", "N/A"}, reachable) && !(reachable == "" && terminated) {
			return nil, fmt.Errorf("%s: %q is globally reachable: %q", path, record[0], record[8])
		}
		for block := range strings.SplitSeq(footnote.ReplaceAllString(record[0], ""), ", ") {
			prefix, err := netip.ParsePrefix(block)
			if err != nil {
				return nil, err
			}
			rows = append(rows, registryRow{prefix, record[1], reachable})
		}
	}
	return rows, nil
}

// registry returns the rows of both registries.
var registry = sync.OnceValue(func() []registryRow {
	var all []registryRow
	for _, version := range []string{"ipv4", "ipv6"} {
		rows, err := readRegistry("testdata/iana-" + version + "-special-registry-1.csv")
		if err != nil {
			panic(err)
		}
		all = append(all, rows...)
	}
	return all
})

// unregistered are further ranges that are not public unicast.
var unregistered = prefixes(
	"224.0.0.0/4",                  // multicast
	"168.63.129.16/32",             // the platform inside Azure
	"::/3", "4000::/2", "8000::/1", // not global unicast space
	"3ffe::/16",                            // 6bone
	"::/96",                                // IPv4-compatible
	"::ffff:0:0:0/96",                      // IPv4-translated
	"fec0::/10",                            // site local
	"ff00::/8",                             // multicast
	"169.254.169.254/32", "192.0.0.192/32", // metadata
	"100.100.100.200/32",                    // metadata
	"fd00:ec2::254/128", "fd20:ce::254/128", // metadata
)

// specialBlocks returns the blocks of the registries and the unregistered ones.
var specialBlocks = sync.OnceValue(func() []netip.Prefix {
	var all []netip.Prefix
	for _, row := range registry() {
		all = append(all, row.block)
	}
	return append(all, unregistered...)
})

// isSpecial is the model: it reports whether a block contains addr.
func isSpecial(addr netip.Addr) bool {
	return slices.ContainsFunc(specialBlocks(), func(block netip.Prefix) bool { return block.Contains(addr.Unmap()) })
}

// lastOf returns the last address of a prefix.
func lastOf(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// boundaries returns the first and last address of every block and their neighbours
// outside it.
func boundaries() []netip.Addr {
	var all []netip.Addr
	for _, block := range specialBlocks() {
		first, last := block.Addr(), lastOf(block)
		for _, addr := range []netip.Addr{first.Prev(), first, last, last.Next()} {
			if addr.IsValid() {
				all = append(all, addr)
			}
		}
	}
	return all
}

func TestSpecialBlocksAndNeighbours(t *testing.T) {
	policy := newStrict()
	for _, addr := range boundaries() {
		want := error(nil)
		if isSpecial(addr) {
			want = egress.ErrNotPublic
		}
		if err := policy.CheckAddr(addr); !errors.Is(err, want) {
			t.Errorf("CheckAddr(%v) = %v, want %v", addr, err, want)
		}
	}
}

// TestSpecialBlocksCanBeAllowed: no block is too wide for AllowPrefixes. The block of
// IPv4-mapped addresses stands for IPv4.
func TestSpecialBlocksCanBeAllowed(t *testing.T) {
	for _, row := range registry() {
		if row.block.Addr().Is4In6() {
			continue
		}
		policy := &egress.Policy{LocalAddrs: noAddresses, AllowPrefixes: []netip.Prefix{row.block}}
		if err := policy.Validate(); err != nil {
			t.Error(err)
		}
		checkAddr(t, policy, row.block.Addr(), "")
	}
}

// TestTableHasNoOtherBlocks: every range in the package's table is in IANA's registries or in
// this file, and no wider.
func TestTableHasNoOtherBlocks(t *testing.T) {
	for _, prefix := range egress.SpecialPrefixes() {
		if !slices.Contains(specialBlocks(), prefix) {
			t.Errorf("%v is no special-purpose block", prefix)
		}
	}
}

// TestReachableBlocks lists the blocks that IANA calls globally reachable but we refuse,
// since no ordinary host has such an address. If IANA adds one, somebody has to decide.
func TestReachableBlocks(t *testing.T) {
	refused := map[string]string{
		"192.0.0.9/32":      "Port Control Protocol Anycast",
		"192.0.0.10/32":     "Traversal Using Relays around NAT Anycast",
		"192.31.196.0/24":   "AS112-v4",
		"192.52.193.0/24":   "AMT",
		"192.175.48.0/24":   "Direct Delegation AS112 Service",
		"64:ff9b::/96":      "IPv4-IPv6 Translat.", // unless Policy.AllowNAT64 is set
		"2001:1::1/128":     "Port Control Protocol Anycast",
		"2001:1::2/128":     "Traversal Using Relays around NAT Anycast",
		"2001:1::3/128":     "DNS-SD Service Registration Protocol Anycast",
		"2001:3::/32":       "AMT",
		"2001:4:112::/48":   "AS112-v6",
		"2001:20::/28":      "ORCHIDv2",
		"2001:30::/28":      "Drone Remote ID Protocol Entity Tags (DETs) Prefix",
		"2620:4f:8000::/48": "Direct Delegation AS112 Service",
	}
	reachable := make(map[string]string)
	for _, row := range registry() {
		if row.reachable == "True" {
			reachable[row.block.String()] = row.name
		}
	}
	if diff := cmp.Diff(refused, reachable); diff != "" {
		t.Errorf("-refused +reachable:\n%s", diff)
	}
}
