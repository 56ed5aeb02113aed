package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// disk describes where a directory is: its file system, if Linux reports it, and how long it
// takes to make 4 KiB durable.
func disk(dir string) string {
	took, err := syncTime(dir)
	if err != nil {
		return err.Error()
	}
	return mount(dir) + precise(milliseconds(took)) + " ms to sync 4 KiB at the end of a file"
}

// syncTime returns the median of the times that it takes to append to a file and sync it.
func syncTime(dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var took []float64
	for range 101 {
		start := time.Now()
		if _, err := file.Write(make([]byte, 4<<10)); err != nil {
			return 0, err
		}
		if err := syncData(file); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(start)))
	}
	return time.Duration(median(took)), nil
}

// mount returns the type and the source of the mount that has a directory, and a comma.
func mount(dir string) (description string) {
	dir, _ = filepath.EvalSymlinks(dir)
	text, _ := os.ReadFile("/proc/self/mountinfo")
	longest := 0
	for line := range strings.Lines(string(text)) {
		place, source, _ := strings.Cut(line, " - ")
		at, what := strings.Fields(place), strings.Fields(source)
		if len(at) < 5 || len(what) < 2 || !strings.HasPrefix(dir+"/", strings.TrimSuffix(at[4], "/")+"/") {
			continue
		}
		if len(at[4]) >= longest { // a later mount hides an earlier one
			longest, description = len(at[4]), what[0]+" on "+what[1]+", "
		}
	}
	return description
}
