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

// printResident opens the store in a process of its own and prints the memory
// that it took.
func printResident(path string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(program, "-weigh", path)
	command.Stderr = os.Stderr
	said, err := command.Output()
	if err != nil {
		return err
	}
	var before, peak, stays float64
	if _, err := fmt.Fscan(bytes.NewReader(said), &before, &peak, &stays); err != nil {
		return err
	}
	if stays == 0 {
		return nil // the system does not tell
	}
	printHeader("resident memory of a process that opens it", "at most, while opening", "stays", "ratio", "budget")
	printRow("**store.OpenFile**, all cores", fmt.Sprintf("%.0f MiB", (peak-before)/1024), fmt.Sprintf("%.0f MiB", (stays-before)/1024),
		fmt.Sprintf("%.2f", (peak-before)/(stays-before)), "≤ 1.3")
	return nil
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
