package main

import (
	"fmt"
	"slices"
	"strings"
)

// lines are the lines of a credential file that the service accepts.
type lines []string

// id returns the id of a line with a secret or a reserved id, or "".
func id(line string) string {
	id, _, isEntry := strings.Cut(line, ":")
	if !isEntry || strings.HasPrefix(line, "#") {
		return ""
	}
	return id
}

// field returns a field of a line, such as " owner=acme", or "" if the line doesn't have it.
func field(line, key string) string {
	for _, field := range strings.Fields(line)[1:] {
		if strings.HasPrefix(field, key) {
			return " " + field
		}
	}
	return ""
}

// isDisabled reports whether a line refuses its client.
func isDisabled(line string) bool {
	return field(line, "disabled") != "" || strings.HasPrefix(line, id(line)+":disabled")
}

// of returns the lines of a client.
func (all lines) of(client string) lines {
	return slices.DeleteFunc(slices.Clone(all), func(line string) bool { return id(line) != client })
}

// insert inserts a line before the end.
func (all lines) insert(line string) lines {
	return slices.Insert(all, slices.Index(all, "end"), line)
}

func (all lines) add(added string) (lines, error) {
	if len(all.of(id(added))) > 0 {
		return nil, fmt.Errorf("%s is already in the file", id(added))
	}
	return all.insert(added), nil
}

func (all lines) rotate(added string) (lines, error) {
	all, err := all.retire(id(added), true)
	if err != nil {
		return nil, err
	}
	return all.insert(added + field(all.of(id(added))[0], "owner=")), nil
}

// retire removes all the client's secrets, and disables the client so that nobody reuses its
// id. With old, it keeps the newest, which is the last line, and disables nothing.
func (all lines) retire(client string, old bool) (lines, error) {
	secrets := all.of(client)
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("%s is not in the file", client)
	case slices.ContainsFunc(secrets, isDisabled):
		return nil, fmt.Errorf("%s is already retired", client)
	}
	newest := secrets[len(secrets)-1]
	kept := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return id(line) == client && line != newest })
	if !old {
		kept[slices.Index(kept, newest)] = client + ":disabled" + field(newest, "owner=")
	}
	return kept, nil
}
