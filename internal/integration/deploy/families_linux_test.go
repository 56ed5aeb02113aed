package deploy_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// familiesVar has the address families that the program of TestAddressFamilies may use. Empty means
// that it's restricted already.
const familiesVar = "WEBHOOKCFG_TEST_FAMILIES"

// cannotRestrict is that program's exit code if it isn't allowed to restrict itself.
const cannotRestrict = 77

// TestAddressFamilies: with the address families that the unit allows, the policy of the service can
// tell whether an address is this host's, without which it calls no public one. Without AF_NETLINK
// it can't, and the error says what to do.
func TestAddressFamilies(t *testing.T) {
	if names, ok := os.LookupEnv(familiesVar); ok {
		checkAddressWith(names)
	}
	match := regexp.MustCompile(`(?m)^RestrictAddressFamilies=(.*)$`).FindStringSubmatch(read(t, "webhook-service.service"))
	if match == nil {
		t.Fatal("the unit restricts no address families")
	}
	names := strings.Fields(match[1])
	if !slices.Contains(names, "AF_NETLINK") {
		t.Errorf("the unit allows %q, without AF_NETLINK", names)
	}
	check := func(names []string) string {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAddressFamilies$")
		child.Env = append(os.Environ(), familiesVar+"="+strings.Join(names, " "))
		output, err := child.CombinedOutput()
		if child.ProcessState != nil && child.ProcessState.ExitCode() == cannotRestrict {
			t.Skipf("no program can be restricted here: %s", output)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return string(output)
	}
	if got := check(names); got != "<nil>\n" {
		t.Errorf("with %q: %s", names, got)
	}
	without := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "AF_NETLINK" })
	if got := check(without); !strings.Contains(got, "AF_NETLINK") || !strings.Contains(got, "Policy.LocalAddrs") {
		t.Errorf("with %q: %s", without, got)
	}
}

// checkAddressWith prints what the zero policy says of a public address, in a process that can only
// use the given address families, as systemd's RestrictAddressFamilies does it.
func checkAddressWith(names string) {
	if names == "" {
		fmt.Println(new(egress.Policy).CheckAddr(netip.MustParseAddr("8.8.8.8")))
		os.Exit(0)
	}
	err := errors.Join(restrict(strings.Fields(names)), os.Setenv(familiesVar, ""))
	if err == nil {
		err = syscall.Exec(os.Args[0], os.Args, os.Environ())
	}
	fmt.Println(err)
	os.Exit(cannotRestrict)
}

// restrict makes socket(2) of this thread, and of the program that it executes, fail for other
// families than the given ones.
func restrict(names []string) error {
	const (
		prSetSeccomp     = 22
		prSetNoNewPrivs  = 38
		seccompFilter    = 2
		returnErrno      = 0x00050000
		returnAllow      = 0x7fff0000
		offsetOfNumber   = 0
		offsetOfArgument = 16 // on little-endian machines
	)
	families := map[string]uint32{
		"AF_INET": syscall.AF_INET, "AF_INET6": syscall.AF_INET6, "AF_UNIX": syscall.AF_UNIX, "AF_NETLINK": syscall.AF_NETLINK,
	}
	load := func(offset uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: offset}
	}
	is := func(value uint32, then, otherwise int) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jt: uint8(then), Jf: uint8(otherwise), K: value}
	}
	end := func(value uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: value}
	}
	filter := []syscall.SockFilter{load(offsetOfNumber), is(syscall.SYS_SOCKET, 0, len(names)+2), load(offsetOfArgument)}
	for i, name := range names {
		family, ok := families[name]
		if !ok {
			return fmt.Errorf("add %s to the test", name)
		}
		filter = append(filter, is(family, len(names)-i, 0))
	}
	filter = append(filter, end(returnErrno|uint32(syscall.EAFNOSUPPORT)), end(returnAllow))
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // for the call of exec
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0); err != 0 {
		return err
	}
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, seccompFilter, uintptr(unsafe.Pointer(&program))); err != 0 {
		return err
	}
	return nil
}
