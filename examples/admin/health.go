package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/store"
)

// healthRecord is the health of a store in JSON.
type healthRecord struct {
	Store   string `json:"store"`
	Healthy bool   `json:"healthy"`
}

func health(ctx context.Context, s *session) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, err := parseAddress(s.args[0], s.prefix)
	if err != nil {
		return failure, err
	}
	st, err := at.open(ctx, s.openOptions())
	if errors.Is(err, store.ErrLocked) {
		return failure, fmt.Errorf("%s is open in a service: ask its path /healthz instead", at.place)
	}
	if err != nil {
		return failure, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	if err := st.health(ctx); err != nil {
		return failure, fmt.Errorf("%s: %w", st.name, err)
	}
	if err := st.mustHaveSomething(ctx); err != nil {
		return failure, err
	}
	return success, s.print(healthRecord{st.name, true}, "%s is healthy", st.name)
}
