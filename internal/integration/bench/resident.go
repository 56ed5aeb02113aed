package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// printResident opens the store in processes of their own, one after the other, and
// prints the memory that they took.
func (s settings) printResident(path string) error {
	var peaks, stays, ratios []float64
	for range s.rounds {
		r, err := weighOpened(path)
		if err != nil {
			return err
		}
		if r.stays == 0 {
			return nil // the system does not tell
		}
		peaks, stays, ratios = append(peaks, r.peak), append(stays, r.stays), append(ratios, r.peak/r.stays)
	}
	printHeader("resident memory of a process that opens it", "at most, while opening", "stays", "ratio", "budget")
	printRow("**store.OpenFile**, all cores", fmt.Sprintf("%.0f MiB", median(peaks)), fmt.Sprintf("%.0f MiB", median(stays)), spread(ratios), "≤ 1.3")
	return nil
}

// resident is what opening a store adds to the memory of a process, in MiB.
type resident struct{ peak, stays float64 }

// weighOpened runs printMemory in another process.
func weighOpened(path string) (r resident, err error) {
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	command := exec.Command(program, "-weigh", path)
	command.Stderr = os.Stderr
	said, err := command.Output()
	if err != nil {
		return r, err
	}
	var before, peak, stays float64
	_, err = fmt.Fscan(bytes.NewReader(said), &before, &peak, &stays)
	return resident{(peak - before) / 1024, (stays - before) / 1024}, err
}

// printMemory opens a store and prints, in KiB, how much memory was resident before, at
// most, and after garbage was given back.
func printMemory(path string) error {
	before := memory("VmRSS:")
	file, err := openStore(path)
	if err != nil {
		return err
	}
	peak := memory("VmHWM:")
	debug.FreeOSMemory()
	fmt.Println(before, peak, memory("VmRSS:"))
	runtime.KeepAlive(file)
	return file.Close()
}

// memory returns one of the figures that Linux has of a process, else 0.
func memory(field string) (kib int) {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), field)
	_, _ = fmt.Sscan(rest, &kib)
	return kib
}
