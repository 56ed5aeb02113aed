package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// entry is a line of a credential file: a secret, or an id without one.
type entry struct {
	comment string // a comment or a blank line; the other fields are empty

	id, hash           string // the hash with its kind; "" if the id is only reserved
	name, owner, until string
	disabled           bool
}

// String returns the entry as a line.
func (e entry) String() string {
	if e.id == "" {
		return e.comment
	}
	fields := []string{e.id + ":" + e.hash}
	if e.hash == "" {
		fields[0] += "disabled"
	}
	for _, field := range [][2]string{{"name=", e.name}, {"owner=", e.owner}, {"until=", e.until}} {
		if field[1] != "" {
			fields = append(fields, field[0]+field[1])
		}
	}
	if e.disabled && e.hash != "" {
		fields = append(fields, "disabled")
	}
	return strings.Join(fields, " ")
}

// parse decodes a file that the service accepts.
func parse(text string) (all entries) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		first, fields, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		id, hash, isEntry := strings.Cut(first, ":")
		e := entry{id: id, hash: hash}
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			e = entry{comment: line}
		case !isEntry: // begin or end
			continue
		case hash == "disabled":
			e.hash, e.disabled = "", true
		}
		for field := range strings.FieldsSeq(fields) {
			e.setField(field)
		}
		all = append(all, e)
	}
	return all
}

// setField decodes a field.
func (e *entry) setField(field string) {
	key, value, _ := strings.Cut(field, "=")
	switch key {
	case "name":
		e.name = value
	case "owner":
		e.owner = value
	case "until":
		e.until = value
	case "disabled":
		e.disabled = true
	}
}

// entries is a credential file.
type entries []entry

// String returns the whole file.
func (all entries) String() string {
	lines := []string{"begin"}
	for _, e := range all {
		lines = append(lines, e.String())
	}
	return strings.Join(append(lines, "end", ""), "\n")
}

func (all entries) has(id string) bool {
	return slices.ContainsFunc(all, func(e entry) bool { return e.id == id })
}

func (all entries) disabled(id string) bool {
	return slices.ContainsFunc(all, func(e entry) bool { return e.id == id && e.disabled })
}

// signsIn reports whether the secret hasn't ended yet.
func (e entry) signsIn(now time.Time) bool {
	until, err := time.Parse(time.RFC3339, e.until)
	return err != nil || until.After(now) // an entry without an end has nothing to parse
}

// newest returns the client's newest secret that still signs in. If all have ended, it
// returns the newest.
func (all entries) newest(id string) entry {
	secrets, now := all.secrets(id), time.Now()
	for _, e := range slices.Backward(secrets) {
		if e.signsIn(now) {
			return e
		}
	}
	return secrets[len(secrets)-1]
}

// secrets returns the entries with the client's secrets, the newest last.
func (all entries) secrets(id string) entries {
	return slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.id != id || e.hash == "" })
}

func (all entries) add(added entry) (entries, error) {
	if all.has(added.id) {
		return nil, fmt.Errorf("%s is already in the file", added.id)
	}
	if added.owner == added.id {
		added.owner = ""
	}
	return append(all, added), nil
}

func (all entries) rotate(added entry) (entries, error) {
	all, err := all.retire(added.id, true)
	if err != nil {
		return nil, err
	}
	added.owner = all.secrets(added.id)[0].owner
	return append(all, added), nil
}

// retire removes all the client's secrets, and disables the client so that nobody reuses its
// id. With old, it keeps the newest that still signs in, and disables nothing.
func (all entries) retire(id string, old bool) (entries, error) {
	switch {
	case !all.has(id):
		return nil, fmt.Errorf("%s is not in the file", id)
	case all.disabled(id):
		return nil, fmt.Errorf("%s is already retired", id)
	}
	newest := all.newest(id)
	kept := slices.DeleteFunc(all, func(e entry) bool { return e.id == id && e != newest })
	if !old {
		kept[slices.Index(kept, newest)] = entry{id: id, owner: newest.owner, disabled: true}
	}
	return kept, nil
}
