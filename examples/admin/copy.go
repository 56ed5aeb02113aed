package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"example.com/go-webhookcfg/examples/internal/filled"
	"example.com/go-webhookcfg/store/admin"
)

// reportRecord is the report of a copy or a comparison in JSON.
type reportRecord struct {
	Clients     int                `json:"clients"`
	Webhooks    int                `json:"webhooks"`
	Changes     int                `json:"changes"`
	Seconds     float64            `json:"seconds"`
	Partial     []string           `json:"partial,omitzero"`
	Different   int                `json:"different"`
	Differences []differenceRecord `json:"differences,omitzero"`
}

// differenceRecord is a difference in JSON.
type differenceRecord struct {
	Want  webhookRecord `json:"want"`
	Got   webhookRecord `json:"got"`
	Error string        `json:"error,omitzero"`
}

func pairFlags(s *session, flags *flag.FlagSet) {
	filled.Var(flags, &s.toPrefix, "to-prefix", "the `prefix` of TO; -prefix is the one of FROM")
}

func copyFlags(s *session, flags *flag.FlagSet) {
	pairFlags(s, flags)
	flags.BoolVar(&s.migrate, "migrate", false, "create TO, or update its tables")
	flags.BoolVar(&s.replace, "replace", false, "change TO although it has webhooks, and unset there what FROM doesn't have")
}

// checkPair refuses two arguments that name the same store, which is equal to itself.
func (s *session) checkPair() (code int, err error) {
	from, err := parseAddress(s.args[0], s.prefix)
	if err != nil {
		return failure, err
	}
	to, err := parseAddress(s.args[1], s.toPrefix)
	if err != nil {
		return failure, err
	}
	for _, at := range []*address{&from, &to} {
		if at.scheme != "file" && at.scheme != "sqlite" {
			continue
		}
		if at.place, err = filepath.Abs(at.place); err != nil {
			return failure, err
		}
	}
	if from == to {
		return wrongUsage, errors.New("FROM and TO are the same store")
	}
	return success, nil
}

// usePair calls do with the stores of both arguments.
func (s *session) usePair(ctx context.Context, o openOptions, do func(from, to *opened) error) error {
	return s.useFirst(ctx, func(from *opened) error {
		return s.use(ctx, s.args[1], s.toPrefix, o, false, func(to *opened) error { return do(from, to) })
	})
}

func copyAll(ctx context.Context, s *session) (code int, err error) {
	if code, err := s.checkPair(); err != nil {
		return code, err
	}
	o := s.openOptions()
	o.migrate, o.bulk = s.migrate, true
	err = s.useFirst(ctx, func(from *opened) error {
		isOpen := false
		err := s.use(ctx, s.args[1], s.toPrefix, o, false, func(to *opened) (err error) {
			isOpen = true
			code, err = s.copy(ctx, to, from)
			return err
		})
		if err != nil && !isOpen && !s.migrate {
			err = fmt.Errorf("%w\nIf TO doesn't exist yet, give -migrate", err)
		}
		return err
	})
	return code, err
}

// copy makes to equal to from, and prints a report. It returns the exit code.
func (s *session) copy(ctx context.Context, to, from *opened) (int, error) {
	if n, err := s.namePlain(ctx, "", from, to); n > 0 || err != nil {
		return found, err
	}
	if s.replace {
		if err := s.checkReplace(ctx, to, from); err != nil {
			return 0, err
		}
		if err := s.confirm([]string{to.name}, "You are about to make %s equal to %s. It loses what only it has.", to.name, from.name); err != nil {
			return 0, err
		}
	}
	r, err := admin.Copy(ctx, to, from, &admin.CopyOptions{Workers: connections, Replace: s.replace, Progress: s.progress(copied)})
	if err == nil && to.flush != nil {
		err = to.flush(ctx)
	}
	if errors.Is(err, admin.ErrNotEmpty) {
		return 0, fmt.Errorf("%s has webhooks already; give -replace to make it equal to %s, or to complete a copy that ended early", to.name, from.name)
	}
	return codeOf(r), errors.Join(err, s.report(copied(r), "refused", r))
}

func verify(ctx context.Context, s *session) (code int, err error) {
	if code, err := s.checkPair(); err != nil {
		return code, err
	}
	err = s.usePair(ctx, s.openOptions(), func(from, to *opened) error {
		if n, err := s.namePlain(ctx, "", from, to); n > 0 || err != nil {
			code = found
			return err
		}
		r, err := admin.Verify(ctx, to, from, &admin.CopyOptions{Workers: connections, Progress: s.progress(compared)})
		code = codeOf(r)
		return errors.Join(err, s.report(compared(r), "different", r))
	})
	return code, err
}

func codeOf(r admin.Report) int {
	if r.Different > 0 {
		return found
	}
	return success
}

// report prints a report, even of a copy that ended early. done and different are words for
// the work and for what remains.
func (s *session) report(done, different string, r admin.Report) error {
	if isTerminal(s.screen) {
		fmt.Fprint(s.screen, clearLine)
	}
	record := reportRecord{Clients: r.Clients, Webhooks: r.Webhooks, Changes: r.Changes, Seconds: r.Elapsed.Seconds(), Partial: r.Partial, Different: r.Different}
	for _, d := range r.Differences {
		text := ""
		if d.Err != nil {
			text = d.Err.Error()
		}
		entity := d.Scope.Entity()
		record.Differences = append(record.Differences, differenceRecord{s.record(d.Client, entity, d.Want), s.record(d.Client, entity, d.Got), text})
	}
	err := s.print(record, "%s; %s: %d", done, different, r.Different)
	if s.json {
		return err
	}
	for _, client := range r.Partial {
		fmt.Fprintf(s.stdout, "partial: %s\n", printable(client))
	}
	if len(r.Partial) > 0 {
		fmt.Fprintln(s.stdout, "Copy again with -replace to complete it, and don't send from TO until then.")
	}
	for _, d := range r.Differences {
		fmt.Fprintf(s.stdout, "%s: %v\n", different, d)
	}
	if more := r.Different - len(r.Differences); more > 0 {
		fmt.Fprintf(s.stdout, "and %d more\n", more)
	}
	return err
}

// copied says how far a copy is.
func copied(r admin.Report) string {
	return fmt.Sprintf("copied: %d clients with %d webhooks, %d changes in %v (%.0f a second)",
		r.Clients, r.Webhooks, r.Changes, r.Elapsed.Round(100*time.Millisecond), float64(r.Changes)/max(r.Elapsed.Seconds(), 1e-3))
}

// compared says how far a comparison is.
func compared(r admin.Report) string {
	return fmt.Sprintf("compared: %d clients with %d webhooks in %v", r.Clients, r.Webhooks, r.Elapsed.Round(100*time.Millisecond))
}

// clearLine clears a terminal's line.
const clearLine = "\r\x1b[K"

// errUnconfirmed is the error of a command that you didn't confirm.
var errUnconfirmed = errors.New("not confirmed, so nothing was changed")
