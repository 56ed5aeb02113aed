package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
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

// hasEnded reports whether a line has a time from which on its secret is refused, and that has come.
func hasEnded(line string) bool {
	until, err := time.Parse(time.RFC3339, strings.TrimPrefix(field(line, "until="), " until="))
	return err == nil && time.Until(until) <= 0
}

// of returns the lines of an id.
func (all lines) of(wanted string) lines {
	return slices.DeleteFunc(slices.Clone(all), func(line string) bool { return id(line) != wanted })
}

// active returns the ids that can sign in as a client.
func (all lines) active(client string) (ids []string) {
	for _, line := range all {
		if id := id(line); id != "" && owner(line) == client && !isDisabled(line) && !hasEnded(line) && !slices.Contains(ids, id) {
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
	secrets, err := all.secrets(id(added))
	if err != nil {
		return nil, err
	}
	return all.keep(id(added), secrets.newest()).insert(added + field(secrets[0], "owner=")), nil
}

// retire removes all secrets of an id, and disables it so that nobody reuses it. With old, it keeps
// the newest, and disables nothing.
func (all lines) retire(retired string, old bool) (lines, error) {
	secrets, err := all.secrets(retired)
	if err != nil {
		return nil, err
	}
	if old {
		newest := secrets.newest()
		if newest == "" {
			return nil, fmt.Errorf("all secrets of %s have ended: rotate gives it a new one, and retire without -old disables it", retired)
		}
		return all.keep(retired, newest), nil
	}
	last := secrets[len(secrets)-1]
	kept := all.keep(retired, last)
	kept[slices.Index(kept, last)] = retired + ":disabled" + field(last, "owner=")
	return kept, nil
}

// secrets returns the lines of an id that isn't retired.
func (all lines) secrets(wanted string) (lines, error) {
	secrets := all.of(wanted)
	switch {
	case len(secrets) == 0:
		return nil, fmt.Errorf("%s is not in the file", wanted)
	case slices.ContainsFunc(secrets, isDisabled):
		return nil, fmt.Errorf("%s is already retired", wanted)
	}
	return secrets, nil
}

// newest returns the last line that hasn't ended, or "".
func (all lines) newest() string {
	for _, line := range slices.Backward(all) {
		if !hasEnded(line) {
			return line
		}
	}
	return ""
}

// keep removes the lines of an id, except one.
func (all lines) keep(wanted, kept string) lines {
	return slices.DeleteFunc(slices.Clone(all), func(line string) bool { return id(line) == wanted && line != kept })
}
