package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// watch stands for a sender with a constant flow of notifications: it resolves from its
// own copy, and prints the webhook in effect whenever that changes.
func watch(ctx context.Context, shared *shared, cfg config, out io.Writer, logger *slog.Logger) (err error) {
	client, entity, ok := strings.Cut(cfg.watch, "/")
	if !ok {
		return errors.New("-watch: want CLIENT/ENTITY")
	}
	copied, err := cache.New(shared.store, &cache.Options{MaxStale: cfg.maxStale, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var last string
	for {
		hook, err := copied.Resolve(ctx, client, entity)
		if ctx.Err() != nil {
			return nil
		}
		if now := describe(hook, err); now != last {
			fmt.Fprintln(out, now)
			last = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// describe returns the destination of a notification. The URL prints without its path.
func describe(hook webhookcfg.Webhook, err error) string {
	switch {
	case err != nil:
		return "unknown: " + err.Error()
	case hook.URL.IsZero():
		return fmt.Sprintf("nowhere (%s)", hook.Source)
	}
	return fmt.Sprintf("to %s (%s)", hook.URL, hook.Source)
}
