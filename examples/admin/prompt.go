package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/go-webhookcfg/store/admin"
)

// confirm shows a warning, and asks you to type a name. You can type it in any of its forms.
// The first one is in the question.
func (s *session) confirm(forms []string, warning string, args ...any) error {
	line, err := s.ask(fmt.Sprintf(warning, args...) + "\nType " + forms[0] + " to confirm: ")
	if err == nil && !slices.Contains(forms, line) {
		err = errUnconfirmed
	}
	return err
}

// ask reads a line from the standard input.
func (s *session) ask(prompt string) (string, error) {
	fmt.Fprint(s.stderr, prompt)
	line, err := s.stdin.ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

// endOfInput refuses further text on the standard input, which would be ignored.
func (s *session) endOfInput() error {
	for {
		line, err := s.stdin.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			return errors.New("the standard input has more than the line with the URL, so nothing was changed: give one URL")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// confirmClient asks you to type the client's name again. It names the first entities that lose
// what is set for them, since nothing brings that back.
func (s *session) confirmClient(ctx context.Context, st *opened, warning string) error {
	const named = 10
	client, webhooks, others := s.args[1], 0, 0
	var entities []string
	for e, err := range admin.Webhooks(ctx, st, client) {
		if err != nil {
			return err
		}
		webhooks++
		switch {
		case e.Scope.IsAll():
		case len(entities) < named:
			entities = append(entities, printable(e.Scope.Entity()))
		default:
			others++
		}
	}
	if len(entities) > 0 {
		warning += " What is set for these entities is dropped, and there is no way back: " + strings.Join(entities, ", ")
	}
	if others > 0 {
		warning += fmt.Sprintf(", and %d more", others)
	}
	return s.confirm([]string{printable(client), client}, "%s has %d webhooks in %s. %s", printable(client), webhooks, st.name, warning)
}
