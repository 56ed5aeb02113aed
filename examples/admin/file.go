package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	running "example.com/go-webhookcfg/examples/internal/backup"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sealed"
)

// fileRecord is a report on a file in JSON.
type fileRecord struct {
	File    string             `json:"file"`
	Changes int                `json:"changes"`
	Bytes   int64              `json:"bytes"`
	Lost    []store.FileRegion `json:"lost,omitzero"` // the first ones
	// What salvage left out.
	LostRegions int   `json:"lost_regions,omitzero"`
	LostBytes   int64 `json:"lost_bytes,omitzero"`
}

// checkRecord has the findings in another store, in JSON.
type checkRecord struct {
	Read     string   `json:"read"` // everything or webhooks
	Clients  int      `json:"clients"`
	Webhooks int      `json:"webhooks"`
	Warnings []string `json:"warnings,omitzero"`
}

// damageRecord says in JSON how a database is damaged.
type damageRecord struct {
	Store  string   `json:"store"`
	Damage []string `json:"damage"`
}

func check(ctx context.Context, s *session) (code int, err error) {
	at, err := parseAddress(s.args[0], s.prefix)
	if err == nil && at.scheme == "file" {
		return s.checkFile(ctx, at.place)
	}
	err = s.useFirst(ctx, func(st *opened) error {
		code, err = s.checkStore(ctx, st)
		return err
	})
	return code, err
}

// checkStore checks a store that isn't a file.
func (s *session) checkStore(ctx context.Context, st *opened) (code int, err error) {
	if st.integrity != nil { // first, because anything else fails at the first damage, or misses it
		damage, err := st.integrity(ctx)
		if err != nil {
			return failure, err
		}
		if len(damage) > 0 {
			return found, s.print(damageRecord{st.name, damage}, "%s is damaged, so restore a backup, and before that remove the files next to it that end in -wal, -shm and -journal:\n\t%s", st.name, strings.Join(damage, "\n\t"))
		}
	}
	var settings []string
	if st.settings != nil {
		if settings, err = st.settings(ctx); err != nil {
			return failure, err
		}
	}
	box, warnings, err := s.queue(ctx, st) // if there is one, it has all its tables
	if err != nil {
		return failure, err
	}
	for _, warning := range warnings {
		if !slices.Contains(settings, warning) {
			settings = append(settings, warning)
		}
	}
	r, n, err := s.readAll(ctx, st)
	if err != nil {
		return failure, err
	}
	if n > 0 {
		return found, nil
	}
	r.Warnings = append(settings, r.Warnings...)
	if len(r.Warnings) > 0 {
		code = found
	}
	format := "the webhooks of %s are readable: %d clients with %d webhooks"
	r.Read = "webhooks"
	switch {
	case st.integrity != nil:
		format = "%s is readable: %d clients with %d webhooks, and SQLite finds no damage in any table or index"
		r.Read = "everything"
	case st.outbox != nil:
		format += "; the records of deliveries and the queue weren't read"
	}
	err = s.print(r, format, st.name, r.Clients, r.Webhooks)
	if err == nil && !s.json && st.outbox != nil && box == nil {
		err = s.print(nil, "There is no queue with the prefix %s, so only the store's tables were looked for.", cmp.Or(s.prefix, defaultPrefix))
	}
	if err == nil && !s.json && st.settings != nil {
		err = s.print(nil, "The settings of your service's connections can't be seen from here: have it log the warnings of Store.Check.")
	}
	for _, warning := range r.Warnings {
		if err == nil && !s.json {
			err = s.print(nil, "%s", warning)
		}
	}
	return code, err
}

// readAll reads all webhooks of a store. It warns about URLs that aren't encrypted, if others are.
// If all have to be, it only names those that aren't, and returns how many there are.
func (s *session) readAll(ctx context.Context, st *opened) (r checkRecord, n int, err error) {
	if n, err := s.namePlain(ctx, "", st); n > 0 || err != nil {
		return r, n, err
	}
	var encrypted bool
	var plain []string
	more := 0
	for client, err := range admin.Clients(ctx, st) {
		if err != nil {
			return r, 0, err
		}
		r.Clients++
		for e, err := range admin.Webhooks(ctx, st, client) {
			if err != nil {
				return r, 0, err
			}
			r.Webhooks++
			switch {
			case sealed.IsEnvelope(e.Webhook.URL):
				encrypted = true
			case e.Webhook.URL.IsZero():
			case len(plain) == maxPlain:
				more++
			default:
				plain = append(plain, fmt.Sprintf("%s: %v isn't encrypted, and others are: have it set again", printable(client), s.record(client, e.Scope.Entity(), e.Webhook)))
			}
		}
	}
	if encrypted {
		r.Warnings = plain
		if more > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%d more aren't encrypted", more))
		}
	}
	return r, 0, nil
}

func (s *session) checkFile(ctx context.Context, path string) (int, error) {
	r, err := store.CheckFile(ctx, path, s.openOptions().file())
	if err != nil {
		return failure, err
	}
	if s.keys != nil {
		if len(r.Lost) > 0 {
			return failure, fmt.Errorf("%s: the last write didn't complete, so its URLs can't be checked without cutting the file: check a copy by admin salvage", path)
		}
		n := 0
		err := s.useFirst(ctx, func(st *opened) (err error) {
			_, n, err = s.readAll(ctx, st)
			return err
		})
		if err != nil {
			return failure, err
		}
		if n > 0 {
			return found, nil
		}
	}
	err = s.print(fileRecord{path, r.Changes, r.Bytes, r.Lost, r.LostRegions, r.LostBytes}, "%s is intact: %d changes, %d bytes", path, r.Changes, r.Bytes)
	for _, torn := range r.Lost {
		if err == nil && !s.json {
			err = s.print(nil, "the last %d bytes, from byte %d on, are from a write that didn't complete; they are cut when the store is opened", torn.Length, torn.Offset)
		}
	}
	return success, err
}

// filePaths returns the paths of the two file stores that the arguments name.
func (s *session) filePaths() (from, to string, err error) {
	from, err = filePath(s.args[0], s.prefix)
	if err == nil {
		to, err = filePath(s.args[1], s.prefix)
	}
	return from, to, err
}

// copyRecord is a copy of a file in JSON.
type copyRecord struct {
	File string `json:"file"`
	Copy string `json:"copy"`
}

// askForBackup asks the service that has a store open, even if the store's file was removed.
func askForBackup(ctx context.Context, path, target string) error {
	socket := path + running.Suffix
	if _, err := os.Lstat(socket); err != nil {
		return running.ErrNobodyListens
	}
	if _, err := os.Lstat(target); err == nil { // the service could see another directory there
		return &fs.PathError{Op: "backup", Path: target, Err: fs.ErrExist}
	}
	return running.Ask(ctx, socket, target)
}

func backup(ctx context.Context, s *session) (code int, err error) {
	path, target, err := s.filePaths()
	if err != nil {
		return failure, err
	}
	done := copyRecord{path, target}
	asked := askForBackup(ctx, path, target)
	if asked == nil {
		if _, err := os.Lstat(target); err != nil {
			return failure, fmt.Errorf("%w: the service wrote the backup to that path as it sees it, so look in its container or, with PrivateTmp of systemd, in its own /tmp", err)
		}
		return success, s.print(done, "%s is a copy of %s, written by the service that has it open", target, path)
	}
	if !errors.Is(asked, running.ErrNobodyListens) {
		return failure, asked
	}
	if err := checkFilled(path); err != nil {
		return failure, err
	}
	file, err := store.OpenFile(path, s.openOptions().file())
	if errors.Is(err, store.ErrLocked) {
		err = fmt.Errorf("%w (%w)", err, asked)
	}
	if err != nil {
		return failure, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Backup(ctx, target); err != nil {
		return failure, err
	}
	return success, s.print(done, "%s is a copy of %s", target, path)
}

func salvage(ctx context.Context, s *session) (code int, err error) {
	path, target, err := s.filePaths()
	if err != nil {
		return failure, err
	}
	r, err := store.SalvageFile(ctx, path, target, s.openOptions().file())
	if err != nil {
		return failure, err
	}
	if r.LostRegions > 0 {
		code = found
	}
	if s.json {
		return code, s.print(fileRecord{target, r.Changes, r.Bytes, r.Lost, r.LostRegions, r.LostBytes}, "")
	}
	fmt.Fprintf(s.stdout, "%s has the result of %d intact changes from %s\n", target, r.Changes, path)
	if r.LostRegions == 0 {
		return code, nil
	}
	fmt.Fprintf(s.stdout, "left out, because damaged or out of place (bytes: %d, regions: %d):\n", r.LostBytes, r.LostRegions)
	for _, lost := range r.Lost {
		fmt.Fprintf(s.stdout, "\tline %d, byte %d: %d bytes\n", lost.Line, lost.Offset, lost.Length)
	}
	if more := r.LostRegions - len(r.Lost); more > 0 {
		fmt.Fprintf(s.stdout, "\tand %d more\n", more)
	}
	fmt.Fprintln(s.stdout, "An entity whose last change is lost has its previous webhook again: compare with what your clients want before you send.")
	return code, nil
}
