package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// test is a Test of package portal. It sends a notification that changes nothing.
func (s *service) test(ctx context.Context, client, entity string) (reason string, err error) {
	r := s.sender.Test(ctx, client, entity, deliver.Message{ID: "test_" + rand.Text(), Body: []byte(`{"type":"test"}`)})
	switch {
	case r.Outcome == deliver.Delivered:
		return "", nil
	case r.Reason == deliver.ReasonBusy, r.Reason == deliver.ReasonPaused:
		return "", tooSoonError{r.Wait}
	case r.Reason.Public() != "":
		return r.Reason.Public(), nil
	case r.Err != nil:
		return "", r.Err
	default:
		return "", errors.New("no webhook is in effect")
	}
}

// tooSoonError asks to wait.
type tooSoonError struct{ wait time.Duration }

func (e tooSoonError) Error() string             { return "tested a moment ago" }
func (e tooSoonError) RetryAfter() time.Duration { return e.wait }
