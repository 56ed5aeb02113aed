package main

import (
	"cmp"
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

// owner returns the client that a line's id signs in as.
func owner(line string) string {
	return cmp.Or(strings.TrimPrefix(field(line, "owner="), " owner="), id(line))
}

// isDisabled reports whether a line refuses its id.
func isDisabled(line string) bool {
	return field(line, "disabled") != "" || strings.HasPrefix(line, id(line)+":disabled")
}

// of returns the lines of an id.
func (all lines) of(wanted string) lines {
	return slices.DeleteFunc(slices.Clone(all), func(line string) bool { return id(line) != wanted })
}

// active returns the ids that can sign in as a client.
func (all lines) active(client string) (ids []string) {
	for _, line := range all {
		if id := id(line); id != "" && owner(line) == client && !isDisabled(line) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
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

// retire removes all secrets of an id, and disables it so that nobody reuses it. With old, it keeps
// the newest, which is the last line, and disables nothing.
func (all lines) retire(retired string, old bool) (lines, error) {
	secrets := all.of(retired)
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("%s is not in the file", retired)
	case slices.ContainsFunc(secrets, isDisabled):
		return nil, fmt.Errorf("%s is already retired", retired)
	}
	newest := secrets[len(secrets)-1]
	kept := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return id(line) == retired && line != newest })
	if !old {
		kept[slices.Index(kept, newest)] = retired + ":disabled" + field(newest, "owner=")
	}
	return kept, nil
}
